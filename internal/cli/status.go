package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newStatus(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "status",
		Short:       "Show running, waiting and failed runs, the next fires, the ping budget and the spending",
		Long: "Status prints one fact per line; the first column names its kind: running (runs in progress), failed (jobs whose latest " +
			"run in the last day did not succeed), waiting (questions, see ollim answer), queued and cut-off (messages to the main " +
			"conversation), inbox (events of a webhook that wait for their runs), updates (pending), undelivered (messages to you), invalid (job files, see ollim check), next (fires), " +
			"paused, pings and spent.",
		Args: checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), d) }),
	}
}

// statusWindow is how far back status looks for runs, statusFires how many fires it lists.
const (
	statusWindow = 24 * time.Hour
	statusFires  = 3
)

func runStatus(ctx context.Context, d *Deps) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	t := d.table("")
	for _, part := range []func(context.Context, *Deps, app.Home) ([][]string, error){statusRuns, statusQuestions, statusQueue, statusInbox, statusMessages, statusNext, statusMoney} {
		rows, err := part(ctx, d, h)
		if err != nil {
			return err
		}
		for _, row := range rows {
			t.row(cellsOf(row)...)
		}
	}
	t.end()
	return nil
}

// statusRuns lists the runs in progress and the jobs whose latest run did not end well.
func statusRuns(_ context.Context, d *Deps, h app.Home) (rows [][]string, err error) {
	seen := map[string]bool{}
	var failed [][]string
	for r, err := range h.Runs().Since(d.Now().Add(-statusWindow)) {
		if err != nil {
			return nil, err
		}
		r = h.Runs().CutOff(r)
		at := r.Started.In(h.Config.Zone).Format("15:04:05")
		switch r.Outcome {
		case "":
			rows = append(rows, []string{"running", at, r.Label(), r.ID})
		case runlog.Skipped, runlog.Paused:
			continue
		case runlog.OK, runlog.Gated, runlog.Waiting:
		default:
			if !seen[r.Job] {
				failed = append(failed, []string{"failed", at, r.Label(), fmt.Sprintf("%s: %s", r.Outcome, plaintext.Short(r.Error, 120)), r.ID})
			}
		}
		seen[r.Job] = true
	}
	slices.Reverse(rows)
	return append(rows, failed...), nil
}

// statusQuestions lists the runs that wait for an answer, and those that have one and could not go on yet.
func statusQuestions(_ context.Context, d *Deps, h app.Home) (rows [][]string, err error) {
	all, err := h.Questions().List()
	for _, q := range all {
		state := "until " + clock(q.Expires.In(h.Config.Zone))
		if q.Answer != "" {
			state = "answered"
		}
		if !q.Expired(d.Now()) {
			rows = append(rows, []string{"waiting", q.Asked.Format("15:04:05"), q.Name, plaintext.Short(plaintext.Line(q.Text), 120), state, q.Run})
		}
	}
	return rows, err
}

// statusQueue lists the messages to the main conversation that have no answer yet.
func statusQueue(_ context.Context, _ *Deps, h app.Home) (rows [][]string, err error) {
	c, err := h.Queue().Contents()
	for _, m := range c.Waiting {
		rows = append(rows, []string{"queued", m.Arrived.Format("15:04:05"), plaintext.Short(plaintext.Line(m.Text), 60)})
	}
	for _, m := range c.CutOff {
		rows = append(rows, []string{"cut-off", m.Arrived.Format("15:04:05"), plaintext.Short(plaintext.Line(m.Text), 60)})
	}
	return rows, err
}

// statusInbox counts the events of each webhook that have not run.
func statusInbox(_ context.Context, _ *Deps, h app.Home) (rows [][]string, err error) {
	hooks, err := h.Inbox().Hooks()
	if len(hooks) == 0 || err != nil {
		return nil, err
	}
	files, err := h.Jobs().Load()
	for _, hook := range hooks {
		first, n, firstErr := h.Inbox().First(hook)
		if firstErr == nil {
			row := []string{"inbox", first.Arrived.In(h.Config.Zone).Format("15:04:05"), hook, strconv.Itoa(n)}
			if j, known := files.Only(job.Webhook).ByID(hook); known {
				row[2] = j.Name()
			} else {
				row = append(row, "no valid file has this id")
			}
			rows = append(rows, row)
		} else if !errors.Is(firstErr, inbox.ErrGone) {
			err = errors.Join(err, firstErr)
		}
	}
	return rows, err
}

// statusMessages counts what has not reached the owner.
func statusMessages(ctx context.Context, _ *Deps, h app.Home) (rows [][]string, err error) {
	updates, err := h.Updates().Peek(ctx)
	if err != nil {
		return nil, err
	}
	undelivered, err := h.Post().Pending()
	if n := len(updates); n > 0 {
		rows = append(rows, []string{"updates", strconv.Itoa(n)})
	}
	if n := len(undelivered); n > 0 {
		rows = append(rows, []string{"undelivered", strconv.Itoa(n)})
	}
	return rows, err
}

// statusNext lists the next fires.
func statusNext(ctx context.Context, d *Deps, h app.Home) (rows [][]string, err error) {
	files, err := h.Jobs().Load()
	if err != nil {
		return nil, err
	}
	if n := len(files.Faults); n > 0 {
		rows = append(rows, []string{"invalid", strconv.Itoa(n) + " job files", "see: ollim check"})
	}
	fires, err := (&scheduleListOptions{n: statusFires}).fires(ctx, files.Jobs, h, d.Now())
	for _, f := range fires[:min(statusFires, len(fires))] {
		rows = append(rows, []string{"next", clock(f.At.In(h.Config.Zone)), f.Job.Label()})
	}
	if paused, until, pauseErr := h.Spend().Paused(); pauseErr != nil {
		rows = append(rows, []string{"paused", pauseErr.Error()})
	} else if paused && until.IsZero() {
		rows = append(rows, []string{"paused", "until: ollim resume"})
	} else if paused {
		rows = append(rows, []string{"paused", "until " + clock(until.In(h.Config.Zone))})
	}
	return rows, err
}

// statusMoney shows the ping budget, and what was spent of each limit.
func statusMoney(_ context.Context, _ *Deps, h app.Home) ([][]string, error) {
	pings, err := h.Budget().Status()
	if err != nil {
		return nil, err
	}
	totals, err := h.Spend().Totals()
	if err != nil {
		return nil, err
	}
	of := func(spent, limit float64) string {
		if math.IsInf(limit, 1) {
			return fmt.Sprintf("$%.2f", spent)
		}
		return fmt.Sprintf("$%.2f of $%.2f", spent, limit)
	}
	limits := h.Spend().Limits
	return [][]string{
		{"pings", fmt.Sprintf("%d of %d left", int(pings.Available), pings.Capacity)},
		{"spent", of(totals.Today.Spent, limits.PerDay) + " today", of(totals.Month.Spent, limits.PerMonth) + " this month", fmt.Sprintf("%d runs today", totals.Runs)},
	}, nil
}
