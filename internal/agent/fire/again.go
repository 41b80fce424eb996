package fire

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// ErrNoFile is the error of a recorded run whose job has no file any more, neither its own nor one in the record.
var ErrNoFile = errors.New("its job does not exist any more, and the record does not have its file")

// Again returns a recorded run of a job as it would begin today, see run.Rebuild. The file of a job that does not exist any more, such
// as a reminder that is done, is that in the record.
func (b Firer) Again(record runlog.Record, past prompt.Past) (run.Again, error) {
	files, err := b.r.Jobs.Load()
	if err != nil {
		return run.Again{}, err
	}
	then, thenErr := b.recorded(record)
	j, err := files.Open(record.Job, true)
	gone := errors.As(err, new(*plaintext.Unknown)) || err == nil && (j.ID != record.Job || string(j.Kind) != record.Kind)
	switch {
	case gone && thenErr != nil:
		return run.Again{}, fmt.Errorf("%w: %w", ErrNoFile, thenErr)
	case gone:
		j = then
	case err != nil:
		return run.Again{}, err
	}
	o := Options{Engine: record.Engine, Owner: record.Owner}
	if slices.Contains(record.Typed, runlog.TypedModel) {
		o.Model = record.Model
	}
	c := &claim{}
	if record.Scheduled != nil {
		c.at = *record.Scheduled
	}
	f := &fire{r: b.r, run: record.ID, job: j, options: o, all: files.Jobs, claim: c}
	s := f.spec()
	if f.wrong != nil {
		return run.Again{}, f.wrong
	}
	s.Identity.Scheduled = c.at
	s.Origin = rebuilt{f}
	if record.Continued > 0 {
		s.Input.Piped.Answer = &question.Question{} // the prompt's answer comes from the record
		s.Input.Task.Background = true
	}
	a, err := run.Rebuild(b.r, s, record, past)
	a.Retries = j.Retry
	return a, err
}

// recorded returns the job as its file was when a run began.
func (b Firer) recorded(record runlog.Record) (job.Job, error) {
	text, _, err := b.r.Requests.ReadJob(record.ID)
	if err != nil {
		return job.Job{}, err
	}
	j, err := job.Parse(job.Kind(record.Kind), record.Path, text)
	if err != nil {
		return j, fmt.Errorf("%w: %w", request.ErrDamaged, err)
	}
	return j, nil
}

// rebuilt is the origin of a run that is only rebuilt: whether the owner has approved the job as it is now does not matter.
type rebuilt struct{ *fire }

func (o rebuilt) Complete(r *engine.Request) error {
	if err := o.fire.Complete(r); !errors.Is(err, run.ErrRefused) {
		return err
	}
	return nil
}
