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

// asking is how the model is asked.
type asking struct {
	model    model.Model
	thinking string       // as in requests
	plain    bool         // the service takes no thoughts, or not the wish for them
	cache    engine.Cache // for how long the service is asked to keep the conversation
	prefix   string       // of the latest question, see prefix
	earlier  bool         // the latest question has files that did not come with the prompt
	without  bool         // such files are left out
}

// withoutThoughts asks without thoughts from now on.
func (h *asking) withoutThoughts() { h.plain, h.thinking = true, "" }

const (
	keptPart     = 256 << 10 // bytes of an answer that broke off
	patience     = 3         // how often an answer that broke off is asked for again
	outage       = 5         // how often an unreachable service is tried again: a machine that woke up has its network within half a minute
	firstPause   = time.Second
	longestPause = time.Minute // unless the service asks for more
)

// errMustCompact says that the service finds the conversation too long, and that a compaction may help.
var errMustCompact = errors.New("the conversation must be compacted")

// ask asks the model for the next answer, and again after a fault that may pass. An overload before the first tool use is left to
// the caller of the engine, who can begin the turn anew.
func (t *turn) ask(ctx context.Context, mayCompact bool) (provider.Answer, error) {
	broken, waited := 0, time.Duration(0)
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		shown := false // whether somebody has read a part of this answer
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
		case errors.Is(err, provider.ErrRejected) && t.how.earlier && !shown: // one of them may be the reason, in every later turn, too
			t.how.without = true
		case errors.Is(err, provider.ErrTooLong) && mayCompact && !shown && len(t.talk.entries) > 1:
			return a, cmp.Or(t.bill.bookPart(a.Usage), errMustCompact)
		case errors.As(err, &overloaded) && shown: // not as an overload: the caller would begin the turn anew
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

// tries returns how often to ask again after a fault. A person who is waiting learns at once that the service cannot be reached,
// unless tools were used before.
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

// question is the conversation as the model is asked it now.
func (t *turn) question() provider.Request {
	m := t.how.model
	q := provider.Request{
		Model: m.ID, System: t.request.Input.System, Tools: t.tools.offer(), Most: m.Output,
		MaxTokens: cmp.Or(max(0, t.e.MaxTokens), max(0, m.Output), commonOutput), Thinking: t.how.thinking, Cache: t.how.cache, Sent: t.request.Run.Sent,
	}
	if m.Window > 0 { // the answer counts in the window, whole
		left := max(leastOutput, m.Window*97/100-t.size())
		q.MaxTokens = min(q.MaxTokens, left)
		q.Most = min(cmp.Or(q.Most, left), left)
	}
	t.how.prefix = prefix(q)
	q.Messages = transcript.Repair(t.withFiles(t.messages(t.talk.entries)))
	return q
}

// leastOutput is the lowest limit of an answer, in tokens.
const leastOutput = 1024

// commonOutput is the limit of one answer, in tokens, of an unknown model: every service accepts it.
const commonOutput = 8192

// delta passes the agent's text on as it arrives, and notes in shown that it did; nil if nobody watches.
func (t *turn) delta(shown *bool) func(text string) error {
	if t.request.Input.Delta == nil {
		return nil
	}
	return func(text string) error {
		*shown = true
		return t.request.Input.Delta(text)
	}
}
