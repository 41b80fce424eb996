// Package outbox delivers messages to the owner by a configured command, and keeps undelivered ones for another attempt.
//
// A message is on disk before the first attempt and leaves the disk only when it was sent or definitely refused, so that a
// crash at any point costs at most a repetition: delivery is at least once, and a repetition has the same OLLIM_MESSAGE_ID.
// The command gets the text on its standard input, ending in exactly one newline; that is a regular file, so that the command
// reads all of it even if ollim is killed meanwhile. Its exit status 0 means sent, 77 (EX_NOPERM) refused permanently, and any
// other status try again later. It runs in the data directory, with the environment that Post was given and OLLIM_MESSAGE_ID,
// OLLIM_MESSAGE_RUN, OLLIM_JOB, OLLIM_LABEL, OLLIM_KIND, OLLIM_CRITICAL (0 or 1) and OLLIM_FILE (if there is a file to send
// along); never with OLLIM_RUN, which would put an ollim inside it under that run's rules.
//
// The outbox holds one file per message, <message id>.jsonl: the message, then a line for every attempt that failed. A process
// that sends or removes a message holds an flock on its file, whose inode does not change.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Kind says what a message is to the owner.
type Kind string

// The kinds of message.
const (
	Ping    Kind = "ping"    // an alert that the agent sent
	Text    Kind = "text"    // the final text of a foreground run
	Failure Kind = "failure" // a run failed or timed out
)

// Message is something for the owner.
type Message struct {
	ID       string    `json:"id"` // "<run>.<n>", [A-Za-z0-9._-]{1,128} without a leading dot, never used twice
	Run      string    `json:"run"`
	Job      string    `json:"job"`
	Label    string    `json:"label"` // the job's description
	Kind     Kind      `json:"kind"`
	Critical bool      `json:"critical"`
	Text     string    `json:"text"`            // UTF-8; any other byte becomes U+FFFD
	Embed    *Embed    `json:"embed,omitempty"` // what Text says, in parts
	File     string    `json:"file,omitempty"`  // absolute path of a file to send along
	Created  time.Time `json:"created"`         // zero: now
}

// Fate is what became of a message; "" if it never got as far as the outbox.
type Fate string

// The fates of a message.
const (
	Sent    Fate = "sent"
	Queued  Fate = "queued"  // in the outbox, for Flush
	Refused Fate = "refused" // for good; the reason was reported through Disk.Warn
)

// Receipt is what is known of a message after an attempt to send it.
type Receipt struct {
	Fate    Fate
	Outside string // the id that a reply will quote, where the way to the owner gives messages ids of its own; "": the message's ID
}

// Sender reaches the owner.
type Sender interface {
	// Configured reports whether there is a way to the owner. Without one, messages that matter become pending updates.
	Configured() bool

	// Send tries to deliver a message. With an error the receipt still says what is known of it, as for Post.Send.
	Send(ctx context.Context, m Message) (Receipt, error)
}

var (
	// errID says that a message's id cannot name its file.
	errID = errors.New("not a message id")
	// errTaken says that the outbox has a message of that id already.
	errTaken = errors.New("already in the outbox")
)

// Post delivers the messages of one data directory.
type Post struct {
	Home     paths.Dir
	Disk     store.Disk
	Command  []string      // argv; found in the PATH of Env, or relative to the data directory; empty: none configured
	Env      []string      // the whole environment of the command, KEY=value
	Timeout  time.Duration // of one attempt; 0: 30 s. Then the command has min(5 s, Timeout) between SIGTERM and SIGKILL
	Terminal io.Writer     // if set, Send writes messages of kind Text there instead of starting the command
}

// Configured reports whether there is a command.
func (p Post) Configured() bool { return len(p.Command) > 0 && p.Command[0] != "" }

// Send puts m into the outbox and tries once to deliver it. Without a command it only queues, and so it does if ctx has
// ended. A failed attempt is Queued and no error; Pending has the reason.
//
// With an error, the fate still says what is known of the message: "" means that it is not known to be on disk and nothing
// was sent (its id is bad or taken, or the error wraps a *store.NotWritten); Sent or Refused, that its entry could not be removed;
// Queued, that the failed attempt could not be noted and so will be repeated sooner.
func (p Post) Send(ctx context.Context, m Message) (Receipt, error) {
	fate, err := p.send(ctx, m)
	return Receipt{Fate: fate}, err
}

func (p Post) send(ctx context.Context, m Message) (Fate, error) {
	if m.Created.IsZero() {
		m.Created = p.Disk.Now()
	}
	m.Text = strings.ToValidUTF8(m.Text, "\ufffd") // as JSON will keep it, so that a repetition has the same text
	held, err := p.put(ctx, m)
	if err != nil {
		return "", err
	}
	defer held.Release()
	switch {
	case ctx.Err() != nil:
		return Queued, nil
	case p.Terminal != nil && m.Kind == Text:
		return p.attempt(ctx, m, p.show)
	case p.Configured():
		return p.attempt(ctx, m, p.command)
	}
	return Queued, nil
}

// Report counts what one Flush did. Messages that another process is sending at that moment are not in it.
type Report struct {
	Sent    int
	Queued  int // left in the outbox: tried in vain, not yet due, or stuck
	Refused int
}

// Flush tries every message that is due, oldest first. Any number of processes may do so at once; each message is tried
// by one of them. An entry that is not a message is set aside and reported through Disk.Warn. When ctx ends, the rest stays
// and the error wraps ctx.Err; trouble with one entry does not keep the others from being sent and is part of the error.
// Without a command nothing happens.
func (p Post) Flush(ctx context.Context) (Report, error) {
	var r Report
	if !p.Configured() {
		return r, nil
	}
	errs := []error{p.finishDrafts()}
	entries, err := p.entries()
	errs = append(errs, err)
	for i, e := range entries {
		if ctx.Err() != nil {
			r.Queued += len(entries) - i
			errs = append(errs, ctx.Err())
			break
		}
		if !e.needsWork(p.Disk.Now()) {
			r.Queued++
			continue
		}
		fate, err := p.retry(ctx, e.ID)
		r.count(fate)
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

func (r *Report) count(f Fate) {
	switch f {
	case Sent:
		r.Sent++
	case Queued:
		r.Queued++
	case Refused:
		r.Refused++
	}
}

// Pending lists the messages in the outbox, oldest first, also those that are being sent right now. It changes nothing;
// an entry that is not a message is omitted and reported through Disk.Warn.
func (p Post) Pending() ([]Entry, error) {
	entries, err := p.entries()
	var pending []Entry
	for _, e := range entries {
		switch {
		case errors.Is(e.broken, errEmpty): // never was one
		case e.broken != nil:
			p.Disk.Warn(p.path(e.ID) + ": " + oneLine(e.broken.Error()))
		case !e.done:
			pending = append(pending, e)
		}
	}
	return pending, err
}

// retry is Flush for one entry. What was read before is only a guess: another process may have been faster.
func (p Post) retry(ctx context.Context, id string) (Fate, error) {
	held, err := claim(p.path(id))
	if held == nil {
		return "", err
	}
	defer held.Release()
	e := p.load(id)
	switch {
	case e.broken != nil:
		return "", p.setAside(e)
	case e.done:
		return "", store.Remove(p.path(id))
	case !e.needsWork(p.Disk.Now()):
		return Queued, nil
	}
	return p.attempt(ctx, e.Message, p.command)
}

// attempt tries once, and records what came of it. The caller holds the entry.
func (p Post) attempt(ctx context.Context, m Message, try func(context.Context, Message) (Fate, string)) (Fate, error) {
	fate, reason := try(ctx, m)
	if fate == Queued {
		return Queued, p.note(m.ID, cmp.Or(reason, "no reason given"))
	}
	if fate == Refused {
		p.Disk.Warn("message " + m.ID + " was refused: " + reason)
	}
	err := store.Remove(p.path(m.ID))
	if err != nil { // at least do not send it again every minute
		err = errors.Join(err, p.note(m.ID, ""))
	}
	return fate, err
}

// show writes to the terminal; a terminal that has gone away leaves the message to the command.
func (p Post) show(_ context.Context, m Message) (Fate, string) {
	if _, err := io.WriteString(p.Terminal, body(m)); err != nil {
		return Queued, oneLine(err.Error())
	}
	return Sent, ""
}
