package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

const (
	// keptMessages is how many of the last messages a compaction keeps at most. It never keeps more than half of them, nor more than an
	// eighth of the length at which the conversation is compacted.
	keptMessages = 20
	// keptPrompt divides the length at which the conversation is compacted. A compaction in the middle of a turn keeps its prompt up to
	// that size. A compaction must replace half as much to be worth its price, unless the window is nearly full.
	keptPrompt = 2
	// summaryOutput is the first limit of a summary with its thoughts, in tokens.
	summaryOutput = 16384
)

// compactNow carries out the compaction that the agent requested by a tool use, whose result is results[at]. The other results are those
// of tools that the agent used in the same answer. If it fails, the agent is told and the conversation is not changed.
func (t *turn) compactNow(ctx context.Context, use transcript.Block, results []transcript.Block, at int) error {
	var in struct{ Instructions string }
	_ = json.Unmarshal(use.Input, &in) // the tool rejects invalid input
	said := engine.ToolResult{Text: fmt.Sprintf("The session was compacted: about %d tokens were replaced by your summary "+
		"and the last messages. It continues from here; the old transcript is kept as %s.", t.size(), t.talk.id())}
	results[at] = answer(use.ID, said)
	whole := append(slices.Clip(t.talk.entries), t.talk.entry(user(results)))
	keep := t.keep(2) // the tool use and its result
	summary, next, err := t.successor(ctx, whole, in.Instructions, keep)
	if err != nil {
		said = engine.ToolResult{Text: "The compaction failed, and the session is as it was: " + err.Error(), IsError: true}
		results[at] = answer(use.ID, said)
	}
	if appendErr := t.talk.add(store.Synced, t.talk.entry(user(results))); appendErr != nil || ctx.Err() != nil {
		return errors.Join(appendErr, context.Cause(ctx))
	}
	if err == nil {
		_, err = t.moveTo(ctx, next, summary)
	} else {
		err = t.sink(runlog.Event{Type: runlog.CompactFailed, Tool: use.Name, Text: err.Error()})
	}
	return errors.Join(err, t.sink(runlog.Event{Type: runlog.ToolResult, Tool: use.Name, ToolID: use.ID, Text: said.Text, IsError: said.IsError}))
}

func user(blocks []transcript.Block) transcript.Message {
	return transcript.Message{Role: transcript.User, Content: blocks}
}

// tryCompact compacts automatically. If that fails, the turn continues as long as the service accepts the conversation. A failure that
// cost money is recorded in the transcript, for later turns.
func (t *turn) tryCompact(ctx context.Context) error {
	if t.failedLately() {
		t.uncompacted = true
		return nil
	}
	spent := t.bill.usage
	_, err := t.compact(ctx, engine.SummaryInstructions, t.keep(1))
	if err == nil || ctx.Err() != nil {
		return err
	}
	if t.uncompacted = true; errors.Is(err, engine.ErrMaxCost) && t.bill.usage == spent && t.size() < t.nearWindow() {
		return nil // the run cannot pay for it, but the next one may
	}
	if t.bill.usage != spent {
		t.talk.full = t.size()
	}
	return t.sink(runlog.Event{Type: runlog.CompactFailed, Text: err.Error()})
}

// failedLately reports whether a compaction failed in an earlier turn, less than a day ago, when the conversation had about its present
// length.
func (t *turn) failedLately() bool {
	for _, e := range slices.Backward(t.talk.entries) {
		if e.Full > 0 {
			return !engine.CompactAgain(t.size(), t.full(), e.Full, t.e.Now().Sub(e.At))
		}
	}
	return false
}

// compact replaces the conversation by a summary and its last messages, in a new transcript.
func (t *turn) compact(ctx context.Context, instructions string, keep int) (engine.Compaction, error) {
	summary, next, err := t.successor(ctx, t.talk.entries, instructions, keep)
	if err != nil {
		return engine.Compaction{}, err
	}
	return t.moveTo(ctx, next, summary)
}

// successor summarizes some entries, and begins the history that continues with the summary and the last keep entries.
func (t *turn) successor(ctx context.Context, entries []transcript.Entry, instructions string, keep int) (string, history, error) {
	at := transcript.Cut(entries, keep)
	summary, err := t.summary(ctx, entries[:at], instructions)
	if err != nil {
		return "", nil, err
	}
	h, err := t.e.header(t.request)
	if err != nil {
		return "", nil, err
	}
	next, err := t.talk.compact(summary, entries, at, t.full()/keptPrompt, h)
	return summary, next, err
}

// moveTo continues in the history that successor began.
func (t *turn) moveTo(ctx context.Context, next history, summary string) (engine.Compaction, error) {
	before, old := t.size(), t.talk.id()
	if err := t.talk.replace(ctx, next); err != nil {
		return engine.Compaction{}, err
	}
	c := engine.Compaction{Session: t.talk.id(), Summary: summary, Before: before, After: t.size()}
	t.bill.length = 0
	return c, t.sink(runlog.Event{Type: runlog.Compacted, Session: c.Session, Parent: old, Text: summary, Before: c.Before, After: c.After})
}

// summary asks the model to summarize a conversation. It asks once more if the summary is empty or lacks a name that the instructions
// pin.
func (t *turn) summary(ctx context.Context, entries []transcript.Entry, instructions string) (string, error) {
	if len(entries) == 0 {
		return "", errors.New("nothing to compact yet")
	}
	pins, more := pinned(instructions), ""
	var lost []string
	for range 2 {
		text, err := t.sumUp(ctx, entries, instructions, more)
		if err != nil {
			return "", err
		}
		lost = slices.DeleteFunc(slices.Clone(pins), func(pin string) bool { return names(text, pin) })
		switch {
		case text == "":
			more = "You gave no summary. Answer with the summary only, and use no tool."
		case len(lost) > 0:
			more = "Your last summary omitted what it must contain literally: " + strings.Join(lost, ", ")
		default:
			return text, nil
		}
	}
	if len(lost) > 0 {
		return "", fmt.Errorf("the model made no summary that keeps %s", strings.Join(lost, ", "))
	}
	return "", errors.New("the model made no summary")
}

// sumUp asks for one summary. It shortens a conversation that is too long for the model, or costs more than any run may.
func (t *turn) sumUp(ctx context.Context, entries []transcript.Entry, instructions, more string) (string, error) {
	ask := "[system] The conversation above is about to be replaced by a summary of it. Write that summary: all that is not in it is " +
		"forgotten. Answer with the summary alone, and use no tool.\n\n" + instructions
	if more != "" {
		ask += "\n\n" + more
	}
	var tooLong error
	for _, most := range []int{0, 2000, 200} {
		a, err := t.wholeAnswer(ctx, func() []transcript.Message {
			messages := t.messages(entries)
			if most > 0 {
				messages = clipped(labelled(messages), most)
			} else {
				messages = t.withFiles(messages) // the same as in the question before, which the service has cached
			}
			return transcript.Repair(append(messages, transcript.Said(transcript.User, ask)))
		})
		if tooLong = err; errors.Is(err, provider.ErrTooLong) || errors.Is(err, engine.ErrMaxCost) && t.beyondMeans() {
			continue
		}
		if err != nil {
			return "", err
		}
		switch {
		case a.Stop == provider.MaxTokens:
			return "", errors.New("the summary is longer than the maximum answer")
		case a.Stop == provider.Refusal:
			return "", errors.New("the model refused to make a summary")
		case len(toolUses(a.Message)) > 0:
			return "", nil // the model used tools instead of summarizing
		}
		return strings.TrimSpace(a.Message.Text()), nil
	}
	return "", tooLong
}

// beyondMeans reports whether a question with the whole conversation costs more than any run may.
func (t *turn) beyondMeans() bool {
	most := t.request.Session.Full.MaxCost
	return most > 0 && t.how.model.Question(t.size(), 0) > most/2
}

// wholeAnswer asks for a summary with a low limit. If the limit cuts the answer, as thoughts can cause, it asks again with the model's
// own limit. It records what the answers cost.
func (t *turn) wholeAnswer(ctx context.Context, messages func() []transcript.Message) (provider.Answer, error) {
	q := t.question()
	most := q.MaxTokens
	q.Messages, q.MaxTokens = messages(), min(most, summaryOutput)
	for {
		t.bill.cached.tokens = 0 // the cache belongs to another question
		a, err := t.query(ctx, q, nil)
		if errors.Is(err, provider.ErrThinking) && !t.how.plain {
			t.how.withoutThoughts()
			q.Thinking = ""
			q.Messages = messages()
			a, err = t.query(ctx, q, nil)
		}
		if errors.Is(err, provider.ErrRejected) && t.how.earlier {
			t.how.without = true
			q.Messages = messages()
			a, err = t.query(ctx, q, nil)
		}
		if err == nil {
			err = t.bill.book(a.Usage, "")
		} else {
			err = errors.Join(err, t.bill.bookPart(a.Usage))
		}
		if err != nil || a.Stop != provider.MaxTokens || q.MaxTokens == most {
			return a, err
		}
		q.MaxTokens = most
	}
}

// clipped returns messages without thoughts and with their long parts cut.
func clipped(messages []transcript.Message, most int) []transcript.Message {
	short := make([]transcript.Message, 0, len(messages)+1)
	for _, m := range messages {
		m = m.Unthought()
		for i, b := range m.Content {
			m.Content[i].Text, m.Content[i].Content = head(b.Text, most), head(b.Content, most)
			if len(b.Input) > most {
				m.Content[i].Input, _ = json.Marshal(map[string]string{"input": head(string(b.Input), most)}) // a string can always be encoded
			}
		}
		short = append(short, m)
	}
	return short
}

func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " […]"
}

// pinned returns the names in lines of the instructions such as "keep: AAPL, 2026-03-14".
func pinned(instructions string) (pins []string) {
	for line := range strings.Lines(instructions) {
		key, rest, found := strings.Cut(line, ":")
		if key = strings.Trim(key, marks); !found || !strings.EqualFold(key, "keep") {
			continue
		}
		for pin := range strings.SplitSeq(rest, ",") {
			if pin = strings.TrimLeft(strings.TrimRight(pin, marks+"."), marks); pin != "" {
				pins = append(pins, pin)
			}
		}
	}
	return pins
}

// marks are the Markdown characters around a word.
const marks = " \t\r\n*_-+>`\"'"

// names reports whether a text contains a name as a whole word.
func names(text, name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		at := from + i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(name):])
		if (!isWord(before) || !isWord(first)) && (!isWord(last) || !isWord(after)) {
			return true
		}
		from = at + 1
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func (t *turn) window() int { return cmp.Or(max(0, t.how.model.Window), engine.CommonWindow) }

// nearWindow returns the length, in tokens, at which every conversation is compacted.
func (t *turn) nearWindow() int { return t.window() * engine.FullAt / 100 }

// full returns the length, in tokens, at which this conversation is compacted. For a new branch and a session that is not kept only the
// window counts: no later turn would save the price of the summary.
func (t *turn) full() int {
	if s := t.request.Session; s.Fork || !s.Kept() {
		return t.nearWindow()
	}
	return t.request.Session.Full.At(t.how.model, t.nearWindow())
}

// due reports whether the conversation must be compacted now.
func (t *turn) due() bool {
	size := t.size()
	if t.uncompacted || size < t.full() {
		return false
	}
	if size >= t.nearWindow() {
		return true
	}
	replaced := 0
	for _, e := range t.talk.entries[:transcript.Cut(t.talk.entries, t.keep(1))] {
		replaced += bytesOf(e.Message)
	}
	return replaced/engine.BytesPerToken >= t.full()/keptPrompt/2
}

// keep returns how many of the last messages a compaction keeps, but at least least.
func (t *turn) keep(least int) int {
	left := t.full() / 8 * engine.BytesPerToken
	n := 0
	for n < len(t.talk.entries)/2 && n < keptMessages {
		left -= bytesOf(t.talk.entries[len(t.talk.entries)-1-n].Message)
		if left < 0 {
			break
		}
		n++
	}
	return max(n, least)
}

// size returns the length of the conversation in tokens: the service's last count and an estimate of what was added since.
func (t *turn) size() int {
	bytes := 0
	for _, e := range slices.Backward(t.talk.entries) {
		if e.Tokens > 0 {
			return e.Tokens + bytes/engine.BytesPerToken
		}
		bytes += bytesOf(e.Message)
	}
	return (bytes + len(t.request.Input.System)) / engine.BytesPerToken
}

func bytesOf(m transcript.Message) (n int) {
	for _, b := range m.Content {
		n += len(b.Text) + len(b.Thinking) + len(b.Data) + len(b.Input) + len(b.Content) + len(b.Name) + b.Source.Tokens()*engine.BytesPerToken
	}
	return n
}
