package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// move is the change of one model to another in the files of jobs.
type move struct {
	d     *deps
	h     app.Home
	table model.Table

	from, to         string
	backtest, dryRun bool
	yes              bool
	last             int
	maxCost          float64
}

func newModelMove(d *deps) *cobra.Command {
	m := &move{d: d}
	cmd := command(agentNever(refused), "move OLD NEW [JOB...]", "Change the model in job files", nil)
	f := cmd.Flags()
	f.BoolVar(&m.backtest, "backtest", false, "change only the jobs whose recorded runs miss no decision with NEW")
	f.BoolVar(&m.dryRun, "dry-run", false, "print what would be changed, and ask and change nothing")
	f.IntVar(&m.last, "last", 30, "with --backtest: ask the last `N` runs of each job")
	f.Float64Var(&m.maxCost, "max-cost", 0, "with --backtest: spend at most this for each job, in `USD` (default: twice the estimate plus 0.50)")
	f.BoolVar(&m.yes, "yes", false, "move to a model that is not in the table; on a terminal, do not ask before money is spent and files are changed")
	cmd.RunE = inHome(d, func(ctx context.Context, h app.Home, args []string) (err error) {
		for _, name := range []string{"last", "max-cost"} {
			if f.Changed(name) && !m.backtest {
				return usage("--%s needs --backtest", name)
			}
		}
		if m.last < 1 {
			return usage("--last %d: want 1 or more", m.last)
		}
		if err := checkMaxCost(cmd, m.maxCost); err != nil {
			return err
		}
		m.h, m.from, m.to = h, args[0], args[1]
		if m.table, err = h.Models(); err != nil {
			return err
		}
		return m.run(ctx, args[2:])
	})
	return withJSON(d, cmd, jsonLines)
}

// moved is what becomes of one job.
type moved struct {
	Job      string `json:"job"`
	Name     string `json:"name"`
	Moves    bool   `json:"moves"`
	Why      string `json:"why,omitempty"`      // it does not move
	Backtest string `json:"backtest,omitempty"` // its id

	*backtest.Summary

	job  job.Job
	runs []string
}

func (m *move) run(ctx context.Context, names []string) error {
	m.d.pager = nil // it would hold back the table until the question about it is answered
	if err := model.CheckName(m.to); err != nil {
		return usage("NEW: %v", err)
	}
	switch to := m.table.Resolve(m.to); {
	case to.ID == m.table.Resolve(m.from).ID:
		return usage("%s and %s are the same model", m.from, m.to)
	case !to.Known && !m.yes:
		return hint(usage("the table of models does not have %s", m.to), "ollim model list shows it; --yes moves the jobs all the same")
	}
	list, err := m.candidates(names)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return &withStatus{fmt.Errorf("no file of a job names the model %s", m.from), statusNoJob}
	}
	var failed error
	if m.backtest {
		failed = m.judge(ctx, list)
	}
	if err := records(m.d, "JOB MOVES BACKTEST WHY", list, func(r moved) []any {
		return []any{brief(r.Name), map[bool]string{true: "yes", false: "no"}[r.Moves], r.Backtest, prose(r.Why)}
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	m.others()
	n := 0
	for _, r := range list {
		if r.Moves {
			n++
		}
	}
	if m.dryRun || n == 0 {
		return m.left(list)
	}
	if goOn, err := m.d.agreesOnTerminal(ctx, plaintext.Count(n, "file")+" will be changed.", "Change?", m.yes); err != nil || !goOn {
		return err
	}
	for _, r := range list {
		if !r.Moves {
			continue
		}
		failed = errors.Join(failed, m.write(r.job))
	}
	if failed != nil {
		return failed
	}
	return m.left(list)
}

// write changes the model in the file of a job, unless the file has changed since it was read.
func (m *move) write(j job.Job) error {
	text, err := j.WithModel(m.to)
	return rewriteJob(j, text, err)
}

// rewriteJob replaces the file of a job by a text with the error that making it had, unless the file has changed since it was read.
func rewriteJob(j job.Job, text []byte, err error) error {
	if err != nil {
		return &withStatus{err, statusData}
	}
	now, err := os.ReadFile(j.Path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, j.Source()) {
		return &withStatus{fmt.Errorf("%s was changed meanwhile, and is left as it is", j.Path), statusTempFail}
	}
	return store.Replace(j.Path, text)
}

// left returns the error that says by its exit status that a job does not move.
func (m *move) left(list []moved) error {
	for _, r := range list {
		if !r.Moves {
			return &reported{statusFailed}
		}
	}
	return nil
}

// candidates returns the jobs whose files name the old model, or the given ones.
func (m *move) candidates(names []string) (list []moved, err error) {
	set, _, err := m.d.jobSet(names...)
	if err != nil {
		return nil, err
	}
	old := m.table.Resolve(m.from).ID
	jobs := set.Jobs
	if len(names) > 0 {
		jobs = nil
		for _, name := range names {
			j, err := set.Find(name)
			if err != nil {
				return nil, explain(err)
			}
			jobs = append(jobs, j)
		}
	}
	for _, j := range jobs {
		uses := j.Model != "" && m.table.Resolve(j.Model).ID == old
		r := moved{Job: j.ID, Name: j.Name(), Moves: uses, job: j}
		switch {
		case uses:
		case len(names) == 0:
			continue
		case j.Model == "":
			r.Why = "it names no model"
		default:
			r.Why = "it names " + j.Model
		}
		list = append(list, r)
	}
	return list, nil
}

// judge asks the recorded runs of the jobs at the new model.
func (m *move) judge(ctx context.Context, list []moved) (err error) {
	total, known, runs := 0.0, true, 0
	for i := range list {
		r := &list[i]
		if !r.Moves {
			continue
		}
		if r.runs, err = backtest.Select(m.h.Runs, m.h.Requests, r.Job, m.last, m.h.Disk.Now().AddDate(-1, 0, 0)); err != nil {
			return err
		}
		usd, priced := m.plan(*r).Estimate(m.h.Runs, m.table)
		total, known, runs = total+usd, known && priced, runs+len(r.runs)
	}
	if m.dryRun {
		for i := range list {
			if r := &list[i]; r.Moves {
				r.Why = "if " + plaintext.Count(len(r.runs), "run") + " miss no decision"
			}
		}
		return nil
	}
	text := fmt.Sprintf("backtests of %s: about $%.4f", plaintext.Count(runs, "run"), total)
	if !known {
		text = fmt.Sprintf("backtests of %s; the price of the model is not known", plaintext.Count(runs, "run"))
	}
	goOn, err := m.d.agreesOnTerminal(ctx, text+".", "Start?", m.yes)
	if err != nil {
		return err
	}
	for i := range list {
		r := &list[i]
		switch {
		case !r.Moves:
		case len(r.runs) == 0:
			r.Moves, r.Why = false, "no recorded run can be asked"
		case !goOn:
			r.Moves, r.Why = false, "the backtest was declined"
		default:
			if err := m.judgeOne(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *move) plan(r moved) backtest.Plan {
	p := backtest.Plan{Job: r.Job, Name: r.Name, Begun: m.h.Disk.Now(), Model: m.to, Runs: r.runs, MaxCost: m.maxCost, Parallel: atOnce}
	if usd, _ := p.Estimate(m.h.Runs, m.table); m.maxCost == 0 {
		p.MaxCost = 2*usd + reserve
	}
	return p
}

// judgeOne asks the recorded runs of one job. A failure of the service is an error; a limit only keeps the job from moving.
func (m *move) judgeOne(ctx context.Context, r *moved) (err error) {
	p := m.plan(*r)
	if p.ID, err = runlog.NewID(m.d.Now(), m.d.Random); err != nil {
		return err
	}
	if err := m.h.Backtests().Begin(p); err != nil {
		return err
	}
	list, err := m.h.Backtest(ctx, p, m.d.atShell(), nil)
	s := backtest.Summarize(list, false)
	r.Backtest, r.Summary = p.ID, &s
	var doubts []string
	switch {
	case err != nil && !errors.Is(err, backtest.ErrMoney):
		return err
	case err != nil:
		doubts = append(doubts, err.Error())
	case s.Missed > 0:
		doubts = append(doubts, fmt.Sprintf("%d of %d missed", s.Missed, s.Decided()))
	case s.Weak():
		doubts = append(doubts, fmt.Sprintf("only %d of %s decided: too few to judge", s.Decided(), plaintext.Count(s.Runs, "run")))
	}
	r.Moves, r.Why = len(doubts) == 0, strings.Join(doubts, "; ")
	return nil
}

// others says on a terminal which settings name the old model.
func (m *move) others() {
	uses, err := m.h.ModelUses()
	if err != nil {
		return
	}
	old := m.table.Resolve(m.from).ID
	for _, u := range uses {
		if u.Name == "" && u.Model.ID == old {
			m.d.note("%s uses %s, too: %s", u.By, m.from, strings.ReplaceAll(u.Remedy(), "MODEL", m.to))
		}
	}
}
