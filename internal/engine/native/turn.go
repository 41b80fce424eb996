package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// turn is one prompt being worked on.
type turn struct {
	e       *Engine
	request engine.Request
	tools   engine.Tools
	own     BuiltIns
	sink    engine.Sink
	model   model.Model
	asking  time.Duration // that the service took since the last usage event

	file    transcript.Transcript
	begun   []string // paths of the transcripts that it began
	guards  []*lock.Guard
	entries []transcript.Entry // the conversation, as it is on disk
	final   string
	usage   runlog.Usage
	cost    float64
	booked  bool // something of that was told, or assumed

	cached   int       // tokens that the service had in its cache after its latest answer
	cachedAt time.Time // when that was

	acted   bool   // a tool was used: the turn cannot be begun anew
	shown   bool   // text of the answer that is coming in was shown to somebody
	before  int    // how many of the entries are older than this turn
	said    bool   // the prompt stands in the transcript
	plain   bool   // the service takes no thoughts, or not the wish for them
	pressed bool   // the service found the conversation too long
	cramped bool   // the conversation fills its window, and could not be compacted
	prefix  string // of the latest question
	hour    bool   // the service is asked to keep the conversation in its cache for an hour
	full    int    // its length, in tokens, when that was found out; 0 once it is noted
}

// enter goes on in a transcript that nobody else writes meanwhile.
func (t *turn) enter(ctx context.Context, file transcript.Transcript, begun bool) error {
	guard, err := file.Lock(ctx, t.e.Locks)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	t.file, t.guards = file, append(t.guards, guard)
	if begun {
		t.begun = append(t.begun, file.Path)
	}
	return nil
}

// leave gives the transcripts to others; those that nobody wants kept it removes.
func (t *turn) leave() {
	for _, path := range t.begun {
		if t.request.Session.Discard {
			_ = store.Remove(path) // nothing refers to it
		}
	}
	for _, guard := range t.guards {
		guard.Release()
	}
}

// work is the loop: the model answers, its tools are used, until it uses none.
func (t *turn) work(ctx context.Context) error {
	most := mostTurns
	if t.request.Limits.MaxTurns > 0 {
		most = min(most, t.request.Limits.MaxTurns)
	}
	first := true
	for range most {
		if err := t.makeRoom(ctx); err != nil {
			return err
		}
		answer, err := t.ask(ctx)
		if errors.Is(err, provider.ErrTooLong) && t.canPress() {
			t.pressed = true
			if err := t.squeeze(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		t.pressed = false
		uses := toolUses(answer.Message)
		if err := t.hear(answer); err != nil {
			return err
		}
		over := t.ending(answer, first)
		first = false
		if len(uses) == 0 && answer.Stop != provider.Pause {
			return over
		}
		if over == nil {
			over = t.request.Limits.Affordable(t.cost)
		}
		if over != nil {
			return errors.Join(over, t.decline(uses))
		}
		if len(uses) > 0 {
			if err := t.act(ctx, uses); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%w: %d answers", engine.ErrMaxTurns, most)
}

// canPress says whether the turn can go on after a compaction: once, and not behind a text that somebody has read.
func (t *turn) canPress() bool { return !t.pressed && !t.shown && len(t.entries) > 1 }

// ending is nil for a model that has come to its end. Behind tools many end without a word, and who has thought may keep it to
// himself where nobody waits; any other answer that is the first has one.
func (t *turn) ending(a provider.Answer, first bool) error {
	switch a.Stop {
	case provider.EndTurn:
		thought := len(a.Message.Unthought().Content) < len(a.Message.Content)
		switch silent := first && !t.request.Input.Nudge && strings.TrimSpace(a.Message.Text()) == ""; {
		case silent && thought && t.request.Input.Awaited:
			return fmt.Errorf("%s thought, and said nothing", t.model.ID)
		case silent && !thought:
			return fmt.Errorf("%s said nothing", t.model.ID)
		}
	case provider.MaxTokens:
		return fmt.Errorf("the answer of %s reached its limit and is not whole: ollim config set native.max-tokens N", t.model.ID)
	case provider.Refusal:
		return fmt.Errorf("%s refused to answer", t.model.ID)
	}
	return nil
}

// hear keeps an answer, and tells what was said in it.
func (t *turn) hear(a provider.Answer) error {
	if len(a.Message.Content) > 0 {
		entry := t.entry(a.Message)
		entry.Prefix = t.thoughtUnder(a.Message)
		entry.Tokens, entry.More = length(a.Usage), len(toolUses(a.Message)) == 0 && a.Stop != provider.EndTurn
		if err := t.append(t.durability(a.Message), entry); err != nil {
			return err
		}
	}
	for _, b := range a.Message.Content {
		var err error
		switch b.Type {
		case transcript.ThinkingBlock:
			err = t.sink(runlog.Event{Type: runlog.Thinking, Text: b.Thinking})
		case transcript.TextBlock:
			err = t.sink(runlog.Event{Type: runlog.Text, Text: b.Text})
		}
		if err != nil {
			return err
		}
	}
	t.final = a.Message.Text()
	return t.book(a.Usage, a.Stop)
}

// book counts what an answer cost.
func (t *turn) book(u runlog.Usage, stop provider.Stop) error {
	cost, priced := t.model.Cost(model.Tokens(u))
	t.usage, t.cost, t.booked = t.usage.Add(u), t.cost+cost, true
	t.cached, t.cachedAt = u.CacheRead+u.CacheWrite, t.e.Now()
	took := t.asking.Milliseconds()
	t.asking = 0
	return t.sink(runlog.Event{
		Type: runlog.UsageEvent, Usage: &u, Cost: cost, Unpriced: !priced && !t.e.Local, Stop: string(stop), APIMillis: took,
	})
}

// freeOfCharge tells that a turn without an answer cost nothing.
func (t *turn) freeOfCharge() error {
	if t.booked {
		return nil
	}
	return t.sink(runlog.Event{Type: runlog.UsageEvent})
}

// durability: what a tool with effects does must be known to have begun. The end of a turn is worth a sync too.
func (t *turn) durability(m transcript.Message) store.Durability {
	uses := toolUses(m)
	for _, use := range uses {
		if !t.harmless(use.Name) {
			return store.Synced
		}
	}
	if len(uses) == 0 {
		return store.Synced
	}
	return store.Buffered
}

// length is the conversation's, in tokens, with the answer.
func length(u runlog.Usage) int { return u.In + u.CacheRead + u.CacheWrite + u.Out }

const (
	keptPart     = 256 << 10 // bytes of an answer that broke off
	patience     = 3         // how often an answer that broke off is asked for again
	outage       = 5         // how often a service is looked for again: in half a minute a machine that woke up finds its network
	firstPause   = time.Second
	longestPause = time.Minute // unless the service wants more
)

// ask asks the model for the next answer. What passes is waited for; before anything was done that is the caller's to do,
// who can still begin the turn anew.
func (t *turn) ask(ctx context.Context) (provider.Answer, error) {
	broken, waited := 0, time.Duration(0)
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		t.shown = false
		a, err := t.query(ctx, t.question(), t.delta())
		var overloaded *engine.Overloaded
		var pause time.Duration
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, errors.Join(context.Cause(ctx), t.keepPart(a))
		case errors.Is(err, provider.ErrThinking) && !t.plain:
			t.plain = true
		case errors.Is(err, provider.ErrTooLong) && t.canPress(): // what came of the answer is begun anew
			return a, errors.Join(err, t.bookPart(a.Usage))
		case errors.As(err, &overloaded) && t.shown: // or it would be begun anew by whoever waits for it
			return a, errors.Join(fmt.Errorf("%w: %s", provider.ErrCut, overloaded.Reason), t.keepPart(a))
		case errors.As(err, &overloaded) && !t.acted:
			return a, errors.Join(err, t.bookPart(a.Usage))
		case overloaded != nil:
			pause = max(overloaded.After, wait)
		case broken < t.tries(err):
			broken++
			pause = wait
		default:
			return a, errors.Join(err, t.keepPart(a))
		}
		if waited += pause; t.request.Limits.Patience > 0 && waited > t.request.Limits.Patience {
			return a, errors.Join(err, t.keepPart(a))
		}
		if err := t.again(ctx, a.Usage, err, pause); err != nil {
			return a, err
		}
	}
}

// tries is how often an answer that is not there may be asked for again. Who waits for it is told at once of a service that
// cannot be reached from the first.
func (t *turn) tries(err error) int {
	switch {
	case errors.Is(err, provider.ErrCut) && !t.shown:
		return patience
	case errors.Is(err, provider.ErrUnreached) && (t.acted || !t.request.Input.Awaited):
		return outage
	}
	return 0
}

func (t *turn) again(ctx context.Context, spent runlog.Usage, why error, pause time.Duration) error {
	if err := errors.Join(t.bookPart(spent), t.sink(runlog.Event{Type: runlog.Retry, Text: why.Error()})); err != nil {
		return err
	}
	return t.e.Sleep(ctx, pause)
}

// bookPart counts what is known of an answer that broke off.
func (t *turn) bookPart(u runlog.Usage) error {
	if u == (runlog.Usage{}) {
		return nil
	}
	return t.book(u, "")
}

// keepPart keeps the text of an answer that broke off: somebody may have read it. Its tool uses were never begun.
func (t *turn) keepPart(a provider.Answer) error {
	text := head(a.Message.Text(), keptPart)
	if err := t.bookPart(a.Usage); err != nil || text == "" {
		return err
	}
	t.final = text
	part := t.entry(transcript.Said(transcript.Assistant, text))
	part.More = true
	if err := t.append(store.Buffered, part); err != nil {
		return err
	}
	return t.sink(runlog.Event{Type: runlog.Text, Text: text})
}

func (t *turn) question() provider.Request {
	q := provider.Request{
		Model: t.model.ID, System: t.request.Input.System, Tools: t.offer(), MaxTokens: t.limit(), Thinking: t.request.Model.Thinking, Hour: t.hour,
	}
	q.Most = t.model.Output
	if t.model.Window > 0 { // services want room for the whole answer
		left := max(leastOutput, t.model.Window*97/100-t.size())
		q.MaxTokens = min(q.MaxTokens, left)
		q.Most = min(cmp.Or(q.Most, left), left)
	}
	if t.plain {
		q.Thinking = ""
	}
	t.prefix = prefix(q)
	q.Messages, _ = transcript.Repair(t.messages(t.entries))
	return q
}

// leastOutput is the least room, in tokens, that an answer is given.
const leastOutput = 1024

// commonOutput is the limit of one answer, in tokens, of a model of which nothing is known: every service takes it.
const commonOutput = 8192

func (t *turn) limit() int {
	switch {
	case t.e.MaxTokens > 0:
		return t.e.MaxTokens
	case t.model.Output > 0:
		return t.model.Output
	}
	return commonOutput
}

func (t *turn) delta() func(provider.Delta) error {
	if t.request.Input.Delta == nil {
		return nil
	}
	return func(d provider.Delta) error {
		if d.Text == "" {
			return nil
		}
		t.shown = true
		return t.request.Input.Delta(d.Text)
	}
}
