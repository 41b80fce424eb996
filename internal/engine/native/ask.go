package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// asking is the way in which the model is asked.
type asking struct {
	model    model.Model
	thinking string       // amount of thinking, as in requests
	plain    bool         // the service rejects thoughts, or the request to think
	cache    engine.Cache // how long the service is asked to cache the conversation
	prefix   string       // prefix of the latest question, see prefix
	earlier  bool         // the latest question has files from before the prompt
	without  bool         // such files are omitted
}

// withoutThoughts makes further questions omit thoughts.
func (h *asking) withoutThoughts() { h.plain, h.thinking = true, "" }

const (
	keptPart = 256 << 10 // longest part of a broken answer that is kept, in bytes
	patience = 3         // how often an answer that broke off is requested again
	// how often an unreachable service is tried again: a machine that wakes up has its network within half a minute
	outage       = 5
	firstPause   = time.Second
	longestPause = time.Minute // longest pause between tries, unless the service asks for a longer one
)

// errMustCompact means that the service rejects the conversation as too long, and that a compaction may help.
var errMustCompact = errors.New("the conversation must be compacted")

// ask asks the model for the next answer, and repeats the question after a fault that may be temporary. An overload before the first tool
// use is returned to the caller of the engine, who can start the turn again.
func (t *turn) ask(ctx context.Context, mayCompact bool) (provider.Answer, error) {
	broken, waited := 0, time.Duration(0)
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		shown := false // a part of this answer was shown to a person
		a, err := t.query(ctx, t.question(), t.delta(&shown))
		var overloaded *engine.Overloaded
		var pause time.Duration
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, errors.Join(context.Cause(ctx), t.hearPart(a))
		case errors.Is(err, provider.ErrThinking) && !t.how.plain:
			t.how.withoutThoughts()
		case errors.Is(err, provider.ErrRejected) && t.how.earlier && !shown: // the files may be the reason, in later turns too
			t.how.without = true
		case errors.Is(err, provider.ErrTooLong) && mayCompact && !shown && len(t.talk.entries) > 1:
			return a, cmp.Or(t.bill.bookPart(a.Usage), errMustCompact)
		case errors.As(err, &overloaded) && shown: // not returned as an overload, which would start the turn again
			return a, errors.Join(fmt.Errorf("%w: %s", provider.ErrCut, overloaded.Reason), t.hearPart(a))
		case errors.As(err, &overloaded) && t.tools.used == 0:
			return a, errors.Join(err, t.bill.bookPart(a.Usage))
		case overloaded != nil:
			pause = max(overloaded.After, wait)
		case broken < t.tries(err, shown):
			broken++
			pause = wait
		default:
			return a, errors.Join(err, t.hearPart(a))
		}
		if waited += pause; t.request.Limits.Patience > 0 && waited > t.request.Limits.Patience {
			return a, errors.Join(err, t.hearPart(a))
		}
		if err := t.again(ctx, a.Usage, err, pause); err != nil {
			return a, err
		}
	}
}

// tries returns how often to repeat a question after a fault. If a person is waiting and no tool was used yet, an unreachable service is
// reported at once.
func (t *turn) tries(err error, shown bool) int {
	switch {
	case errors.Is(err, provider.ErrCut) && !shown:
		return patience
	case errors.Is(err, provider.ErrUnreached) && (t.tools.used > 0 || !t.request.Input.Awaited):
		return outage
	}
	return 0
}

func (t *turn) again(ctx context.Context, spent runlog.Usage, why error, pause time.Duration) error {
	if err := errors.Join(t.bill.bookPart(spent), t.sink(runlog.Event{Type: runlog.Retry, Text: why.Error()})); err != nil {
		return err
	}
	return t.e.Sleep(ctx, pause)
}

// question returns the conversation as the next request to the model.
func (t *turn) question() provider.Request {
	m := t.how.model
	q := provider.Request{
		Model: m.ID, System: t.request.Input.System, Tools: t.tools.offer(), Most: m.Output,
		MaxTokens: cmp.Or(max(0, t.e.MaxTokens), max(0, m.Output), commonOutput), Thinking: t.how.thinking, Cache: t.how.cache, Sent: t.sent(),
	}
	if m.Window > 0 { // the window must also hold the whole answer
		left := max(leastOutput, m.Window*97/100-t.size())
		q.MaxTokens = min(q.MaxTokens, left)
		q.Most = min(cmp.Or(q.Most, left), left)
	}
	t.how.prefix = prefix(q)
	q.Messages = transcript.Repair(t.withFiles(t.messages(t.talk.entries)))
	return q
}

// leastOutput is the lowest answer limit, in tokens.
const leastOutput = 1024

// commonOutput is the answer limit, in tokens, for an unknown model. Every service accepts it.
const commonOutput = 8192

// delta returns a function that passes the agent's text on as it arrives and sets shown; nil if nobody watches.
func (t *turn) delta(shown *bool) func(text string) error {
	if t.request.Input.Delta == nil {
		return nil
	}
	return func(text string) error {
		*shown = true
		return t.request.Input.Delta(text)
	}
}
