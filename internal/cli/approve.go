package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
)

func newApprove(d *deps) *cobra.Command {
	var all, list bool
	cmd := command(agentNever(refused), "approve [JOB...]", "List and approve jobs that ask for more permissions",
		func(cmd *cobra.Command, args []string) error { return runApprove(cmd.Context(), d, args, all, list) })
	cmd.Flags().BoolVar(&all, "all", false, "ask about everything that waits for approval")
	cmd.Flags().BoolVar(&list, "list", false, "list what is already approved as well")
	return withJSON(d, cmd, jsonLines)
}

func runApprove(ctx context.Context, d *deps, names []string, all, list bool) error {
	asks := all || len(names) > 0
	if all && len(names) > 0 || asks && (list || d.json) {
		return usage("want JOB... or --all; --list and --json are for lists")
	}
	s, h, err := d.jobSet(names...)
	if err != nil {
		return err
	}
	a := approver{d: d, h: h, failed: failures{d: d, verb: "approve"}}
	if len(names) > 0 {
		a.collect(s, names)
	} else if err := a.collectAll(s); err != nil {
		return err
	}
	if asks {
		err = a.askAll(ctx)
	} else {
		err = a.print(list)
	}
	if err != nil {
		return err // the failures are printed already, this error is not
	}
	return a.failed.err()
}

type approver struct {
	d      *deps
	h      app.Home
	failed failures
	found  []candidate
}

// candidate is a widened job, a skill or tool-policy.yaml.
type candidate struct {
	name    string // as the owner reads it, and as Find takes it
	subject approval.Subject
	last    approval.Approval
	state   string
	again   func() (approval.Subject, error) // the subject as it is now
	note    string                           // the verdict about the job's gate; "": there is none
}

const skillPrefix = "skill:"

const (
	stateNew      = "new"
	stateChanged  = "changed"
	stateApproved = "approved"
)

func (a *approver) collectAll(s job.Set) error {
	for _, j := range s.Jobs {
		a.failed.add(j.Name(), a.addJob(j))
	}
	if err := a.addPolicy(); err != nil {
		a.d.warn(err.Error())
	}
	skills, faults, err := a.h.Skills.Load()
	for _, fault := range faults {
		a.d.warn(fault.Error())
	}
	for _, found := range skills {
		a.failed.add(skillPrefix+found.Name, a.addSkill(found.Name))
	}
	return err
}

func (a *approver) collect(s job.Set, names []string) {
	for _, name := range names {
		var err error
		if which, named := strings.CutPrefix(name, skillPrefix); named {
			err = a.addSkill(which)
		} else if name == approval.PolicyName {
			err = a.addPolicy()
		} else if j, unknown := s.Find(name); unknown != nil {
			err = explain(unknown)
		} else {
			err = a.addJob(j)
		}
		a.failed.add(name, err)
	}
}

func (a *approver) addJob(j job.Job) error {
	s, widened, err := a.h.Approvals.Of(j)
	n := len(a.found)
	err = a.add(j.Name(), s, widened, err, func() (approval.Subject, error) {
		now, err := a.h.Jobs.Load()
		i := slices.IndexFunc(now.Jobs, func(other job.Job) bool { return other.Path == j.Path })
		if err != nil || i < 0 {
			return approval.Subject{}, err
		}
		s, _, err := a.h.Approvals.Of(now.Jobs[i])
		return s, err
	})
	if len(a.found) > n {
		a.found[n].note = a.h.GateVerdict(j)
	}
	return err
}

func (a *approver) addPolicy() error {
	p, err := a.h.Approvals.Policy()
	return a.add(approval.PolicyName, p.Subject, !p.Empty || p.Waits, err, func() (approval.Subject, error) {
		p, err := a.h.Approvals.Policy()
		return p.Subject, err
	})
}

func (a *approver) addSkill(name string) error {
	found, err := a.h.Skills.Find(name)
	if err != nil || len(found.Commands()) == 0 {
		return err
	}
	again := func() (approval.Subject, error) { return a.h.Approvals.OfSkill(name) }
	s, err := again()
	return a.add(s.Key, s, true, err, again)
}

// add adds a subject to those found, unless it needs no approval or was added before. err is the error with which it was read.
func (a *approver) add(name string, s approval.Subject, asks bool, err error, again func() (approval.Subject, error)) error {
	if err != nil {
		return &withStatus{err, statusData}
	}
	if !asks || slices.ContainsFunc(a.found, func(other candidate) bool { return other.subject.Key == s.Key }) {
		return nil
	}
	last, known, err := a.h.Approvals.Last(s.Key)
	if err != nil {
		return err
	}
	c := candidate{name: name, subject: s, last: last, state: stateChanged, again: again}
	switch {
	case !known:
		c.state = stateNew
	case last.Digest == s.Digest():
		c.state = stateApproved
	}
	a.found = append(a.found, c)
	return nil
}

type approvalRow struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	State    string    `json:"state"`
	Widening []string  `json:"widening"`
	Approved time.Time `json:"approved,omitzero"`
	By       string    `json:"by,omitempty"`
}

func (a *approver) print(approved bool) error {
	var rows []approvalRow
	for _, c := range a.found {
		if approved || c.state != stateApproved {
			rows = append(rows, approvalRow{
				ID: c.subject.Key, Name: c.name, Kind: c.subject.Kind, State: c.state, Widening: c.subject.Widening(),
				Approved: c.last.At, By: c.last.By,
			})
		}
	}
	return records(a.d, "ID NAME KIND STATE ASKS-FOR", rows, func(r approvalRow) []any {
		return []any{r.ID, brief(r.Name), r.Kind, state(r.State), prose(strings.Join(r.Widening, ", "))}
	})
}

func (a *approver) askAll(ctx context.Context) error {
	var tty *terminalOf
	for _, c := range a.found {
		if c.state == stateApproved {
			continue
		}
		if tty == nil {
			var err error
			if tty, err = openTerminal(); err != nil {
				return err
			}
			defer func() { _ = tty.file.Close() }()
		}
		err := a.ask(ctx, tty, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.failed.add(c.name, err)
	}
	if tty == nil && len(a.failed.statuses) == 0 {
		a.d.note("nothing waits for approval")
	}
	return nil
}

func (a *approver) ask(ctx context.Context, tty *terminalOf, c candidate) error {
	lines, err := a.h.Approvals.Difference(c.subject)
	if err != nil {
		return err
	}
	if c.note != "" {
		lines = append(lines, "gate: "+c.note)
	}
	t := a.d.table("")
	for _, line := range lines {
		t.row(c.name, prose(line))
		if !isTerminal(a.d.Stdout) { // also on the terminal: the owner must see what is approved
			if _, err := fmt.Fprintln(tty.file, printable(c.name+" "+line)); err != nil {
				return err
			}
		}
	}
	t.end()
	if err := a.d.flush(); err != nil {
		return err
	}
	yes, err := tty.agrees(ctx, tty.file, printable(fmt.Sprintf("approve %s (%s)?", c.name, c.subject.Kind)), false)
	if err != nil {
		return err
	}
	if !yes {
		return &reported{statusFailed}
	}
	now, err := c.again()
	if err != nil || now.Digest() != c.subject.Digest() {
		err = &withStatus{errors.New("not approved: it changed while it was shown"), statusTempFail}
		return hint(err, "ollim approve %s", c.name)
	}
	return a.h.Approvals.Approve(ctx, c.subject, approval.Owner)
}

// terminalOf is the controlling terminal of this process, whatever its streams are.
type terminalOf struct {
	file *os.File
	*asker
}

func openTerminal() (*terminalOf, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, hint(fmt.Errorf("%w: no terminal to ask on", app.ErrNotAllowed), "run it in a terminal")
	}
	return &terminalOf{f, newAsker(f)}, nil
}

// approveOwn approves a job that the owner has just written with a command of ollim. Inside a run, or if a file that the job names differs
// from the approved one, which the owner has not seen, the job waits for approval and a warning says so. After an error the job file stays.
func (d *deps) approveOwn(ctx context.Context, h app.Home, j job.Job) error {
	book := h.Approvals
	s, widened, err := book.Of(j)
	if !widened {
		return nil
	}
	last, _, bookErr := book.Last(s.Key)
	if bookErr != nil || err == nil && last.Digest == s.Digest() {
		return bookErr
	}
	if err == nil {
		err = d.OwnerOnly()
	}
	if touched := last.Touched(s); err == nil && len(touched) > 0 {
		err = errors.New("changed since it was approved: " + strings.Join(touched, ", "))
	}
	if err != nil {
		d.warn(fmt.Sprintf("%s waits for approval: %v: ollim approve %s", j.Name(), err, j.Name()))
		return nil
	}
	return book.Approve(ctx, s, approval.Owner)
}

// offerApproval handles what waits for approval in a data directory that existed before init. On a terminal it asks about each item;
// elsewhere, or if silent is set, it names them. No answer changes what init has made.
func (d *deps) offerApproval(ctx context.Context, silent bool) error {
	s, h, err := d.jobSet()
	if as[*app.ConfigFault](err) {
		return nil // init leaves invalid settings as they are
	}
	if err != nil {
		return err
	}
	a := approver{d: d, h: h, failed: failures{d: d, verb: "init"}}
	if err := a.collectAll(s); err != nil {
		return err
	}
	a.found = slices.DeleteFunc(a.found, func(c candidate) bool { return c.state == stateApproved })
	if len(a.found) == 0 {
		return nil
	}
	var names []string
	for _, c := range a.found {
		names = append(names, c.name)
	}
	waiting := "wait for your approval: " + strings.Join(names, ", ")
	if silent || !isTerminal(d.In) || !isTerminal(d.Stderr) {
		d.warn(waiting + ": ollim approve --all")
		return nil
	}
	d.note("these %s", waiting)
	return a.askAll(ctx)
}
