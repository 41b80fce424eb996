package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/runlog"
)

// When text that arrives is shown first, and what is shown while none arrives.
const (
	firstChars  = 40
	firstWait   = 700 * time.Millisecond
	quiet       = 3 * time.Second // without text, until a line says that the agent works
	statusEvery = 5 * time.Second // the seconds of that line are a multiple of this
	maxMessages = 4               // of an answer
)

// content is what is known of an answer.
type content struct {
	able     messenger.Able
	blocks   []string // complete texts of the agent, and lines about the turn, in order
	arriving []byte   // text of the block that is arriving
	texts    int      // blocks that are texts of the agent
	unsaid   bool     // the agent has said nothing since the last result
	opened   bool     // text of the agent is shown
	queued   bool
	doing    string    // what the agent does; "" if that is not known
	since    time.Time // when it last did something else
	began    time.Time // when the turn began
	first    time.Time // when text of the agent first arrived
}

func newContent(able messenger.Able, now time.Time) content {
	return content{able: able, unsaid: true, doing: "working…", since: now, began: now}
}

func (c *content) say(text string, now time.Time) {
	if text == "" {
		return
	}
	if c.first.IsZero() {
		c.first = now
	}
	c.arriving = append(c.arriving, text...)
	c.do("", now)
}

func (c *content) do(what string, now time.Time) {
	if c.queued {
		c.began = now
	}
	c.doing, c.since, c.queued = what, now, false
}

// wait sets a line that stays until the turn begins.
func (c *content) wait(line string, now time.Time) {
	c.do(line, now)
	c.queued = true
}

func (c *content) add(text string) {
	text = strings.Trim(strings.ToValidUTF8(text, "\ufffd"), "\r\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	if last := len(c.blocks) - 1; last >= 0 {
		c.blocks[last] = messenger.Closed(c.blocks[last])
	}
	c.blocks = append(c.blocks, text)
}

// note adds a line about the turn.
func (c *content) note(line string) {
	c.flush()
	c.add(c.able.Style.Line(line))
}

func (c *content) flush() {
	text := string(c.arriving)
	c.arriving = nil
	c.complete(text)
}

func (c *content) complete(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	c.add(text)
	c.texts, c.unsaid = c.texts+1, false
}

// hear follows the turn.
func (c *content) hear(e runlog.Event, now time.Time) {
	if e.Parent != "" && e.Type != runlog.ToolUse && e.Type != runlog.Compacted && e.Type != runlog.Session {
		return // of a subagent
	}
	switch e.Type {
	case runlog.Text: // the whole of what has arrived
		c.arriving = nil
		c.complete(e.Text)
		c.do("", now)
	case runlog.Thinking:
		c.do("thinking…", now)
	case runlog.ToolUse:
		c.flush()
		c.do(c.able.Style.Plain(toolLabel(e.Tool, e.Input)), now)
	case runlog.ToolResult:
		c.do("working…", now)
	case runlog.Retry: // the answer begins anew
		c.arriving = nil
		c.do("the service is busy, trying again…", now)
	case runlog.FellBack:
		c.note(e.Model + " answers: " + e.Text)
	case runlog.CarriedOver:
		c.note(prompt.CarriedOver(e.Tool, e.Session))
	case runlog.UpdatesPopped:
		c.note(prompt.CatchingUp)
	case runlog.Compacted:
		c.note(compacted(e))
	case runlog.CompactFailed:
		c.note("the conversation could not be compacted: " + InShort(e.Text))
	case runlog.Fork:
		if line := forkNote(e); line != "" {
			c.note(line)
		}
	case runlog.Result:
		if c.unsaid && len(c.arriving) == 0 {
			c.complete(e.Text)
		}
		c.unsaid = true
	}
}

func compacted(e runlog.Event) string {
	if e.Before == 0 || e.After == 0 {
		return "the conversation was compacted"
	}
	return fmt.Sprintf("the conversation was compacted: %d tokens became %d", e.Before, e.After)
}

// forkNote is the line about what became of the interactive fork; "" if the owner knows.
func forkNote(e runlog.Event) string {
	about := ""
	if e.Text != "" {
		about = ": " + InShort(e.Text)
	}
	switch e.Tool {
	case runlog.ForkOpened:
		return "fork: opened" + about
	case runlog.ForkSaved:
		return "fork: saved; it is the main conversation now"
	case runlog.ForkReported:
		return "fork: ended; the main conversation gets a summary"
	case runlog.ForkSilent:
		return "fork: ended; its agent left no summary, which the main conversation is told"
	case runlog.ForkDropped:
		return "fork: ended and dropped"
	case runlog.ForkKept:
		return "fork: not saved" + about
	}
	return ""
}

func (c *content) text() string {
	arriving := strings.Trim(strings.ToValidUTF8(string(c.arriving), ""), "\r\n")
	blocks := c.blocks
	if arriving != "" && c.opened {
		if last := len(blocks) - 1; last >= 0 {
			blocks = append(blocks[:last:last], messenger.Closed(blocks[last]))
		}
		blocks = append(blocks[:len(blocks):len(blocks)], arriving)
	}
	return strings.Join(blocks, "\n\n")
}

// live returns the texts of the messages that show the answer now, at least one, and when they change if nothing happens until
// then; zero is never.
func (c *content) live(now time.Time) (texts []string, next time.Time) {
	next = c.open(now)
	text, _ := plaintext.First(c.text(), (maxMessages+1)*c.able.Text)
	texts = messenger.Split(text, c.able.Text)
	if len(texts) > maxMessages { // the last one is replaced by a file
		return texts[:maxMessages], time.Time{}
	}
	status, change := c.status(now, len(texts) == 0)
	next = earlier(next, change)
	if len(texts) == 0 {
		return []string{status}, next
	}
	last := &texts[len(texts)-1]
	*last = messenger.Closed(*last)
	if status != "" && messenger.Size(*last)+1+messenger.Size(status) <= c.able.Text {
		*last = strings.TrimSuffix(*last, "\n") + "\n" + status
	}
	return texts, next
}

// open lets the first text be shown if there is enough of it, or it is old enough. Otherwise it returns when the text is that.
func (c *content) open(now time.Time) (next time.Time) {
	switch due := c.first.Add(firstWait); {
	case c.opened:
	case c.texts > 0, utf8.RuneCount(c.arriving) >= firstChars, len(c.arriving) > 0 && !now.Before(due):
		c.opened = true
	case len(c.arriving) > 0:
		return due
	}
	return time.Time{}
}

// status returns the line about what the agent does, and when it changes. While text arrives there is none, unless alone is set.
func (c *content) status(now time.Time, alone bool) (line string, next time.Time) {
	spent := now.Sub(c.since)
	if c.doing == "" && !alone && spent < quiet {
		return "", c.since.Add(quiet)
	}
	line = c.able.Style.Small + cmp.Or(c.doing, "working…")
	if c.queued {
		return line, time.Time{}
	}
	steps := spent / statusEvery
	if steps > 0 {
		line += " " + duration(steps*statusEvery)
	}
	return line, c.since.Add((steps + 1) * statusEvery)
}

func duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}

// earlier returns the earlier one of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Whole returns the whole answer of a run that has ended, as it is shown.
func Whole(able messenger.Able, record runlog.Record, events iter.Seq2[runlog.Event, error]) (string, error) {
	c := newContent(able, record.Started)
	for e, err := range events {
		if err != nil {
			return "", err
		}
		c.hear(e, record.Started)
	}
	c.conclude(record, nil)
	return c.text(), nil
}

// Begun returns the beginning of an answer that messages show, without the line that says what the agent does.
func Begun(able messenger.Able, texts []string) string {
	text := "\n" + strings.Join(texts, "\n")
	i := strings.LastIndex(text, "\n")
	if small := able.Style.Small; small != "" && strings.HasPrefix(text[i+1:], small) {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}

// conclude completes the answer with how the turn ended.
func (c *content) conclude(r runlog.Record, failed error) {
	c.opened = true
	c.flush()
	reason := InShort(r.Error)
	switch {
	case r.ID == "" && errors.Is(failed, context.Canceled):
		c.note("The turn was interrupted before it began.")
	case r.ID == "" && failed != nil: // there was no run, or it ended in a panic
		c.note("The turn failed: " + InShort(failed.Error()))
	case r.Outcome == runlog.Waiting:
		c.note("The turn waits for your answer.")
	case r.Outcome == runlog.Interrupted:
		c.note("The turn was interrupted: " + cmp.Or(reason, "it was stopped"))
	case r.Outcome != runlog.OK && r.Outcome != "":
		c.note("The turn failed: " + cmp.Or(reason, string(r.Outcome)))
	case c.texts == 0:
		c.note("The agent ended its turn without text.")
	}
	if r.Crossed() > 0 {
		c.note(fmt.Sprintf("The conversation has %s: /compact", r.Size()))
	}
}
