package runner

import "errors"

// Reasons why a run does not take place.
var (
	// ErrRefused: the job may not run as it is written.
	ErrRefused = errors.New("refused")
	// ErrPaused: the job, or everything, is switched off.
	ErrPaused = errors.New("paused")
)

// Refusal is why a run does not take place. Its text leaves out the kind, which the outcome says.
type Refusal struct {
	kind   error // ErrRefused or ErrPaused
	reason string
	key    string // under which it is reported once; "" is made of job and reason
	text   string // of the report; "" is made of job and reason
	cause  error  // may be nil
}

func (e *Refusal) Error() string { return e.reason }

// Unwrap returns the kind, and the cause if there is one.
func (e *Refusal) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// paused returns a *Refusal if the owner has paused everything, which does not hold for what the owner types.
func (r *Runner) paused(owner bool) error {
	paused, until, err := r.Spend.Paused()
	if err != nil {
		r.warn(err)
	}
	switch {
	case !paused || owner:
		return nil
	case until.IsZero():
		return &Refusal{kind: ErrPaused, reason: "everything is paused: ollim resume"}
	}
	return &Refusal{kind: ErrPaused, reason: "everything is paused until " + until.In(r.Zone).Format("2006-01-02 15:04") + ": ollim resume"}
}
