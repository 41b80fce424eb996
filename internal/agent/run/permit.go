package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Reasons for which a run does not take place.
var (
	// ErrRefused means that the job may not run as it is written.
	ErrRefused = errors.New("refused")
	// ErrPaused means that the job, or everything, is paused.
	ErrPaused = errors.New("paused")
)

// Refusal is the error of a run that does not take place. Its text omits the kind, which the outcome shows.
type Refusal struct {
	Kind   error // ErrRefused or ErrPaused
	Reason string
	Notice notify.Cause // cause to report; if zero, it is made from job and reason
	cause  error        // may be nil
}

func (e *Refusal) Error() string { return e.Reason }

// Unwrap returns the kind, and the cause if there is one.
func (e *Refusal) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// Refuse returns an ErrRefused with a reason.
func Refuse(format string, args ...any) error {
	return &Refusal{Kind: ErrRefused, Reason: fmt.Sprintf(format, args...)}
}

// Paused returns a *Refusal if the owner has paused everything. A pause does not apply to what the owner types.
func (r *Runner) Paused(owner bool) error {
	paused, until, err := r.Spend.Paused()
	if err != nil {
		r.Warn(err)
	}
	switch {
	case !paused || owner:
		return nil
	case until.IsZero():
		return &Refusal{Kind: ErrPaused, Reason: "everything is paused: ollim resume"}
	}
	return &Refusal{Kind: ErrPaused, Reason: "everything is paused until " + until.In(r.Zone).Format("2006-01-02 15:04") + ": ollim resume"}
}

// Patterns returns the default tool patterns with those of tool-policy.yaml. own are the patterns of a run in the background or the
// foreground, main those of the main conversation. The error says what is wrong with the file.
func (r *Runner) Patterns(background bool) (own, main []string, err error) {
	extra, err := r.Approvals.Policy()
	if err != nil {
		return nil, nil, err
	}
	main = slices.Concat(policy.DefaultMain(), extra.Main)
	if !background {
		return slices.Clone(main), main, nil
	}
	own = policy.DefaultBackground()
	if extra.Override != nil {
		own = slices.Clone(extra.Override)
	}
	return append(own, extra.Background...), main, nil
}

// reach returns the patterns that file tools check at each use. If the owner can be asked, they cover everything that the owner may
// allow.
func reach(run *runlog.Run) []string {
	if policy.Mode(run.Permissions) == "" {
		return run.Tools
	}
	return append([]string{"Read(./**)", "Glob(./**)", "Grep(./**)", "Write(./**)", "Edit(./**)"}, run.Tools...)
}

// ReportRefusal notifies the owner why a run is refused. fires is the number of refused fires to count.
func (r *Runner) ReportRefusal(ctx context.Context, record runlog.Record, cause error, fires int) {
	c := refusalOf(record, cause)
	c.Jobs = []notify.Affected{{ID: record.Job, Name: cmp.Or(record.Label(), record.Job), Count: notice.Count{Failed: fires}}}
	c.Run = record.ID
	_, err := r.Notify().Open(ctx, c)
	r.Warn(err)
}

func refusalOf(record runlog.Record, cause error) notify.Cause {
	why := &Refusal{}
	switch errors.As(cause, &why); {
	case why.Notice.Kind != "":
		return why.Notice
	case errors.Is(cause, ErrNoEngine):
		return notify.Cause{
			Kind: notify.Engine, Subject: "none", Name: "The engine", Text: notify.NotRun(record.Label(), record.Error),
			Remedy: "`ollim config set engine claude-code`, or native",
		}
	}
	return notify.Cause{
		Kind: notify.Refused, Subject: record.Job, Name: record.Label(), Text: notify.NotRun(record.Label(), record.Error),
		Remedy: "correct its file: `ollim check` and `ollim doctor` name faults",
	}
}
