package turn

import (
	"context"
	"errors"
	"testing"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// ending is an engine whose first turn ends as the test wants.
type ending struct {
	runtest.Answering

	first func(ctx context.Context, run string) error
}

func (e ending) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	if len(*e.Asked) == 0 {
		if err := e.first(ctx, r.Run.ID); err != nil {
			*e.Asked = append(*e.Asked, r)
			return engine.Result{}, err
		}
	}
	return e.Answering.Run(ctx, r, tools, sink)
}

// TestAbandonedMessage: a message whose sender has died is answered by another process. It waits on if that is stopped by a signal, is
// answered by the next turn if the owner stops the run, and is gone if its turn fails.
func TestAbandonedMessage(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		first func(r *run.Runner, stop func()) func(ctx context.Context, run string) error
		asked int
		left  int
		fails bool
	}{
		"answered": {func(*run.Runner, func()) func(context.Context, string) error {
			return func(context.Context, string) error { return nil }
		}, 1, 0, false},
		"failed": {func(*run.Runner, func()) func(context.Context, string) error {
			return func(context.Context, string) error { return errors.New("broken") }
		}, 1, 0, false},
		"stopped by the owner": {func(r *run.Runner, _ func()) func(context.Context, string) error {
			return func(ctx context.Context, id string) error {
				if err := r.Runs.AskStop(id, "stopped"); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}
		}, 2, 0, false},
		"ended by a signal": {func(_ *run.Runner, stop func()) func(context.Context, string) error {
			return func(ctx context.Context, _ string) error {
				stop()
				<-ctx.Done()
				return context.Cause(ctx)
			}
		}, 1, 1, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			e := &ending{Answering: runtest.Answering{Asked: new([]engine.Request)}}
			r := runtest.New(t, e)
			e.first = c.first(r, stop)
			ticket, _, err := Queue{r}.Enqueue(t.Context(), Message{Text: "hi"}, Options{Owner: true})
			if err != nil {
				t.Fatal(err)
			}
			ticket.Leave()
			err = Queue{r}.AnswerAbandoned(ctx, Options{})
			contents, listErr := r.Queue.Contents()
			if n := len(contents.Waiting); (err != nil) != c.fails || listErr != nil || n != c.left || len(*e.Asked) != c.asked {
				t.Errorf("%v, %v: %d wait, asked %d times", err, listErr, n, len(*e.Asked))
			}
		})
	}
}

// TestStopOfAQuestion: a question in progress is no turn of the conversation, so the owner's stop does not reach it.
func TestStopOfAQuestion(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := ""
	var r *run.Runner
	r = runtest.New(t, stoppable{stop: func() { stopped, _ = Queue{r}.Stop(); cancel() }})
	record, err := New(r).Ask(ctx, Question{Text: "Why?", Discard: true}, Options{Owner: true})
	if stopped != "" || record.Outcome != runlog.Interrupted {
		t.Errorf("stopped %q: %+v, %v", stopped, record, err)
	}
}
