package native

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// conversation is the messages that the model reads, and the history that stores them. No other process appends to it before leave.
type conversation struct {
	history history
	guards  []*lock.Guard
	now     func() time.Time
	run     string               // id of the run, which marks its prompt
	entries []transcript.Entry   // entries that the model reads
	start   int                  // index of the turn's first entry; -1 before the prompt
	said    []transcript.Message // messages of the agent and its tools in this turn
	mid     bool                 // the conversation begins with a summary that includes a part of this turn
	full    int                  // length in tokens at which a compaction failed, which the next entry records
}

// enter continues the session of a history. With follow it continues the latest compaction of it, even one that was made while this
// process waited for the lock.
func enter(ctx context.Context, c conversation, h history, follow bool) (*conversation, error) {
	c.start = -1
	err := c.move(ctx, h)
	for follow && err == nil {
		next, none := c.history.successor()
		if errors.Is(none, transcript.ErrUnknown) {
			break
		}
		if err = none; err == nil {
			err = c.move(ctx, next)
		}
	}
	if err == nil {
		c.entries, err = c.history.load()
	}
	if err != nil {
		c.leave()
	}
	return &c, err
}

// move locks a history and continues in it. Its entries are not loaded.
func (c *conversation) move(ctx context.Context, h history) error {
	guard, err := h.lock(ctx)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	c.history, c.guards = h, append(c.guards, guard)
	return nil
}

// leave releases the locks.
func (c *conversation) leave() {
	for _, guard := range c.guards {
		guard.Release()
	}
}

// files returns the locks that a child of this process must inherit, so that they outlive this process.
func (c *conversation) files() (files []*os.File) {
	if guard := c.guards[len(c.guards)-1]; guard != nil {
		files = append(files, guard.File())
	}
	return files
}

// id returns the id of the session.
func (c *conversation) id() string { return c.history.header().ID }

// say adds the prompt, with files before its text. It does not add a prompt that the run has added already, as after an overload of the
// service.
func (c *conversation) say(prompt string, files []transcript.Block) error {
	said := c.entry(transcript.Said(transcript.User, prompt))
	said.Message.Content = append(files, said.Message.Content...)
	said.Run = c.run
	n := len(c.entries)
	again := n > 0 && c.entries[n-1].Run == said.Run && c.entries[n-1].Message.Text() == prompt
	var old transcript.Entry
	if again {
		n--
		old = c.entries[n]
	}
	c.entries = c.history.header().Settled(c.entries[:n])
	c.start = len(c.entries)
	if again {
		c.entries = append(c.entries, old)
		return nil
	}
	return c.store(store.Buffered, said)
}

func (c *conversation) entry(m transcript.Message) transcript.Entry {
	return transcript.Entry{Message: m, At: c.now(), Full: c.full}
}

// add adds a message of the agent or its tools.
func (c *conversation) add(d store.Durability, entry transcript.Entry) error {
	if err := c.store(d, entry); err != nil {
		return err
	}
	if m := entry.Message.Unthought(); len(m.Content) > 0 {
		c.said = append(c.said, m)
	}
	return nil
}

func (c *conversation) store(d store.Durability, entry transcript.Entry) error {
	if err := c.history.append(d, entry); err != nil {
		return err
	}
	c.entries, c.full = append(c.entries, entry), 0
	return nil
}

// noteFull records a failed compaction that no message has recorded: the turn failed before an answer.
func (c *conversation) noteFull() error {
	if c.full == 0 {
		return nil
	}
	return c.store(store.Buffered, c.entry(transcript.Said(transcript.Assistant, transcript.CutOff)))
}

// compact begins the history that continues this one with a summary and the entries from index from. It does not switch to it. In the
// middle of a turn it keeps the whole prompt with its files, unless that has more than most tokens.
func (c *conversation) compact(summary string, entries []transcript.Entry, from, most int, h transcript.Header) (history, error) {
	old, kept := c.history.header(), entries[from:]
	h.Cwd, h.ParentID, h.MidTurn = old.Cwd, old.ID, c.start >= 0 && (c.mid || c.prompt(kept) < 0)
	if at := c.prompt(entries); at >= 0 && at < from && bytesOf(entries[at].Message)/engine.BytesPerToken <= most {
		kept = append([]transcript.Entry{entries[at]}, kept...)
	}
	return c.history.compact("Summary of the conversation so far:\n\n"+summary, kept, h)
}

// replace continues in the history that compact began.
func (c *conversation) replace(ctx context.Context, next history) error {
	err := c.move(ctx, next)
	if err == nil {
		c.entries, err = next.load()
	}
	if err != nil {
		return err
	}
	if at := c.prompt(c.entries); at >= 0 {
		c.entries = append(next.header().Settled(c.entries[:at]), c.entries[at:]...)
	}
	c.start, c.mid = min(c.start, 0), next.header().MidTurn
	return nil
}

// prompt returns the index of the run's last prompt; -1 if the entries do not contain it.
func (c *conversation) prompt(entries []transcript.Entry) int {
	for i, e := range slices.Backward(entries) {
		if e.Run == c.run {
			return i
		}
	}
	return -1
}
