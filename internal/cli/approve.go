package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/skill"
)

type approveOptions struct {
	names             []string
	all, list, asJSON bool
}

func newApprove(d *Deps) *cobra.Command {
	var o approveOptions
	cmd := &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "approve [JOB...]",
		Short:       "List and approve jobs that ask for more permissions",
		Long: "Approve lists what waits for approval: id, name, kind, new or changed, and the fields that need approval. " +
			"With jobs, skill:NAME, tool-policy.yaml or --all it prints the unapproved changes of each and asks on the " +
			"terminal; it exits 1 if an answer was no. A job with allowed-tools, gate, after, dirs, subagent or skills runs " +
			"only in the form that was approved; other jobs need no approval.",
		Example: "  ollim approve\n  ollim approve daily-market",
		Args:    checked(cobra.ArbitraryArgs),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			o.names = args
			return runApprove(cmd.Context(), d, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "ask about everything that waits for approval")
	f.BoolVar(&o.list, "list", false, "list what is already approved as well")
	f.BoolVar(&o.asJSON, "json", false, "list as one JSON object per line")
	return cmd
}

func runApprove(ctx context.Context, d *Deps, o approveOptions) error {
	asks := o.all || len(o.names) > 0
	if o.all && len(o.names) > 0 || asks && (o.list || o.asJSON) {
		return usage("want JOB... or --all; --list and --json are for lists")
	}
	s, h, err := d.shelf(o.names...)
	if err != nil {
		return err
	}
	a := approver{d: d, h: h, failed: failures{d: d, verb: "approve"}}
	if len(o.names) > 0 {
		a.collect(s, o.names)
	} else if err := a.collectAll(s); err != nil {
		return err
	}
	if asks {
		err = a.askAll(ctx)
	} else {
		err = a.print(o)
	}
	if err != nil {
		return err // its line is still to be written, those of the failures are not
	}
	return a.failed.err()
}

// approver is one `ollim approve`.
type approver struct {
	d      *Deps
	h      app.Home
	failed failures
	found  []candidate
}

// candidate is a widened job, a skill or tool-policy.yaml.
type candidate struct {
	name    string // for the owner, and for Find
	subject approval.Subject
	last    approval.Approval
	state   string
	again   func() (approval.Subject, error) // the subject as it is now
}

// skillPrefix is in front of a skill's name, where a job's could stand.
const skillPrefix = "skill:"

// The states of a candidate.
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
	skills, faults, err := a.skills().Load()
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
		if which, named := strings.CutPrefix(name, skillPrefix); named {
			a.failed.add(name, a.addSkill(which))
			continue
		}
		if name == approval.PolicyName {
			a.failed.add(name, a.addPolicy())
			continue
		}
		j, err := s.Find(name)
		if err == nil {
			err = a.addJob(j)
		}
		a.failed.add(name, explain(err))
	}
}

func (a *approver) addJob(j job.Job) error {
	s, widened, err := a.h.Approvals().Of(j)
	if err != nil {
		return &withStatus{err, statusData}
	}
	if !widened {
		return nil
	}
	return a.add(candidate{name: j.Name(), subject: s, again: func() (approval.Subject, error) {
		shelf, err := a.h.Jobs().Load()
		if err != nil {
			return approval.Subject{}, err
		}
		for _, now := range shelf.Jobs {
			if now.Path == j.Path {
				s, _, err := a.h.Approvals().Of(now)
				return s, err
			}
		}
		return approval.Subject{}, nil
	}})
}

func (a *approver) addPolicy() error {
	p, err := a.h.Approvals().Policy()
	if err != nil {
		return &withStatus{err, statusData}
	}
	if p.Empty && !p.Waits {
		return nil
	}
	return a.add(candidate{name: approval.PolicyName, subject: p.Subject, again: func() (approval.Subject, error) {
		p, err := a.h.Approvals().Policy()
		return p.Subject, err
	}})
}

func (a *approver) addSkill(name string) error {
	found, err := a.skills().Find(name)
	if as[*skill.Unknown](err) {
		return &withStatus{err, statusNoJob}
	}
	if err != nil || len(found.Commands()) == 0 {
		return err
	}
	again := func() (approval.Subject, error) { return a.h.Approvals().OfSkill(name) }
	s, err := again()
	if err != nil {
		return &withStatus{err, statusData}
	}
	return a.add(candidate{name: s.Key, subject: s, again: again})
}

func (a *approver) skills() skill.Library { return skill.Library{Home: a.h.Dir} }

func (a *approver) add(c candidate) error {
	if slices.ContainsFunc(a.found, func(other candidate) bool { return other.subject.Key == c.subject.Key }) {
		return nil // named twice
	}
	last, known, err := a.h.Approvals().Last(c.subject.Key)
	if err != nil {
		return err
	}
	c.last, c.state = last, stateNew
	if known {
		c.state = stateChanged
	}
	if known && last.Digest == c.subject.Digest() {
		c.state = stateApproved
	}
	a.found = append(a.found, c)
	return nil
}

// approvalRow is a candidate as the list shows it; Approved and By are of the last approval.
type approvalRow struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	State    string    `json:"state"`
	Widening []string  `json:"widening"`
	Approved time.Time `json:"approved,omitzero"`
	By       string    `json:"by,omitempty"`
}

func (r approvalRow) cells() []string {
	return []string{r.ID, r.Name, r.Kind, r.State, strings.Join(r.Widening, ", ")}
}

func (a *approver) print(o approveOptions) error {
	var rows []approvalRow
	for _, c := range a.found {
		if o.list || c.state != stateApproved {
			rows = append(rows, approvalRow{
				ID: c.subject.Key, Name: c.name, Kind: c.subject.Kind, State: c.state, Widening: c.subject.Widening(),
				Approved: c.last.At, By: c.last.By,
			})
		}
	}
	return records(a.d, o.asJSON, rows, approvalRow.cells)
}
