// Package outbox delivers messages to the owner by a configured command and by further carriers, such as a messenger, and keeps
// undelivered ones for another attempt.
//
// A message is on disk before the first attempt and leaves the disk only when every carrier has sent it or definitely refused it, so that a
// crash at any point costs at most a repetition: delivery is at least once, and a repetition has the same id. What each carrier has
// delivered is on disk as well, so that a repetition sends only the rest.
//
// The command gets the text on its standard input, ending in exactly one newline; that is a regular file, so that the command
// reads all of it even if ollim is killed meanwhile. Its exit status 0 means sent, 77 (EX_NOPERM) refused permanently, and any
// other status try again later. It runs in the data directory, with the environment that Post was given and OLLIM_MESSAGE_ID,
// OLLIM_MESSAGE_RUN, OLLIM_JOB, OLLIM_LABEL, OLLIM_KIND, OLLIM_CRITICAL (0 or 1) and OLLIM_FILE (if there is a file to send
// along); never with OLLIM_RUN, which would put an ollim inside it under that run's rules.
//
// With Post.JSON it gets a line of JSON instead of the text, with the buttons, and may print a line with the id of its message.
//
// The outbox holds one file per message, <message id>.jsonl: the message, then a line for every attempt that failed and for
// everything that a carrier has delivered. A process that sends or removes a message holds an flock on its file, whose inode does
// not change.
//
// With a carrier besides the command messages arrive in the order of their creation: before an attempt to send a message, the earlier ones
// are sent, and the message waits if one of them fails. A message that has failed five times no longer holds up others.
//
// Every carrier sends a message, unless Order names those that may, in order of preference: then the first that takes it is enough.
// An attempt tries each of them once. A carrier that another process has is left to that process, which reads the outbox once
// its directory has changed, and continues the attempt where it stands in the file. After handTime the attempt continues without it. A
// carrier that has delivered a part of a message delivers the rest.
package outbox

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Kind is the kind of a message.
type Kind string

// The kinds of message.
const (
	Ping    Kind = "ping"    // an alert that the agent sent
	Text    Kind = "text"    // the final text of a foreground run
	Failure Kind = "failure" // something does not work: an opening message of package notify, or its reminder
	Notice  Kind = "notice"  // any other message of that package
)

// Message is a message for the owner.
type Message struct {
	ID       string    `json:"id"` // "<run>.<n>", [A-Za-z0-9._-]{1,128} without a leading dot, never used twice
	Run      string    `json:"run"`
	Job      string    `json:"job"`
	Label    string    `json:"label"` // the job's description
	Kind     Kind      `json:"kind"`
	Critical bool      `json:"critical"`
	Text     string    `json:"text"`            // UTF-8; any other byte becomes U+FFFD
	Brief    string    `json:"brief,omitempty"` // Text for a messenger with replies and buttons; "": Text
	Embed    *Embed    `json:"embed,omitempty"` // what Text says, in parts
	File     string    `json:"file,omitempty"`  // absolute path of a file to send along
	Buttons  []Button  `json:"buttons,omitempty"`
	Created  time.Time `json:"created"` // zero: now

	NotBefore time.Time `json:"not_before,omitzero"` // quiet hours hold it until then; zero: they do not
}

// Fate is the outcome of a message; "" if it did not reach the outbox.
type Fate string

// The fates of a message.
const (
	Sent    Fate = "sent"
	Queued  Fate = "queued"  // in the outbox, for Flush
	Refused Fate = "refused" // for good; the reason was reported through Disk.Warn
)

// Receipt is the state of a message after an attempt to send it.
type Receipt struct {
	Fate    Fate
	Reason  error    // why the message is Queued or Refused, if there was an attempt
	Outside []string // the ids that a reply will quote, if the messenger assigns ids of its own; none: the message's ID
}

// Carrier is a way to the owner.
type Carrier interface {
	// Name returns the carrier's name in the outbox.
	Name() string

	// Carry tries once to deliver a message. done are the ids of its parts that were delivered before, in order; delivered is to
	// be called with the id of each further part as soon as it has one. The error says why the fate is Queued or Refused.
	Carry(ctx context.Context, m Message, done []string, delivered func(id string)) (Fate, error)
}

// Sender sends messages to the owner.
type Sender interface {
	// Configured reports whether messages can be sent. If not, important messages become pending updates.
	Configured() bool

	// Send tries to deliver a message. The receipt is valid with an error too, as for Post.Send.
	Send(ctx context.Context, m Message) (Receipt, error)
}

var (
	// errID is the error of a message id that cannot name a file.
	errID = errors.New("not a message id")
	// ErrTaken is the error of a message id that is in the outbox already.
	ErrTaken = errors.New("already in the outbox")
)

// Post delivers the messages of one data directory.
type Post struct {
	Home     paths.Dir
	Disk     store.Disk
	Command  []string      // argv; found in the PATH of Env, or relative to the data directory; empty: none configured
	JSON     bool          // the command gets a line of JSON, and may print the id of its message
	Env      []string      // the whole environment of the command, KEY=value
	Timeout  time.Duration // of one attempt; 0: 30 s. Then the command has min(5 s, Timeout) between SIGTERM and SIGKILL
	Terminal io.Writer     // if set, Send writes messages of kind Text there instead of using another carrier
	Carriers []Carrier     // besides the command
	Doors    []Carrier     // besides those; they send only what Order and Urgent let them
	Order    []string      // names of the carriers that send a message, the preferred first; the command is "command"; empty: all send it
	Urgent   []string      // the same for critical messages; empty: as Order
	Waits    bool          // another process has the carriers: Send only queues, Flush does nothing

	// Received records the id that a reply to a message or to a part of it will quote; nil: nothing does.
	Received func(ctx context.Context, message string, outside ...string) error
}

// Configured reports whether there is a carrier.
func (p Post) Configured() bool { return p.Waits || len(p.ways(Message{})) > 0 }

// ordered reports whether messages arrive in order. Messages for the command do not wait for each other.
func (p Post) ordered() bool { return len(p.Carriers)+len(p.Doors) > 0 }

// Send puts m into the outbox and tries once to deliver it. Without a carrier, or after ctx has ended, it only queues
// the message. A failed attempt is Queued and no error; Pending and the receipt have the reason.
//
// With an error, the fate is still valid. "" means that the message is not known to be on disk and was not sent (its id
// is bad or taken, or the error wraps a *store.NotWritten). Sent or Refused means that its entry could not be removed.
// Queued means that the failed attempt could not be recorded and will be repeated sooner.
func (p Post) Send(ctx context.Context, m Message) (Receipt, error) {
	if m.Created.IsZero() {
		m.Created = p.Disk.Now()
	}
	m.Brief = strings.ToValidUTF8(m.Brief, "\ufffd")
	m.Text = strings.ToValidUTF8(m.Text, "\ufffd") // as JSON stores it, so that a repetition has the same text
	held, err := p.put(ctx, m)
	if err != nil {
		return Receipt{}, err
	}
	r, err := p.first(ctx, m)
	if r.Fate != Queued || len(p.Order)+len(p.Urgent) == 0 {
		held.Release()
		return r, err
	}
	seen, openErr := store.Open(p.path(m.ID), os.O_RDONLY) // it can be read after its end
	held.Release()
	p.wake()
	if openErr != nil || !elsewhere(r.Reason) {
		return r, err
	}
	defer func() { _ = seen.Close() }()
	return p.await(ctx, seen, m.ID, r), err
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// first makes the first attempt to send a message. The caller holds the entry.
func (p Post) first(ctx context.Context, m Message) (Receipt, error) {
	ways := p.ways(m)
	switch {
	case ended(ctx), m.NotBefore.After(p.Disk.Now()):
		return Receipt{Fate: Queued}, nil
	case p.Terminal != nil && m.Kind == Text:
		return p.attempt(ctx, entry{Message: m}, []Carrier{simple{"terminal", p.print}})
	case len(ways) == 0:
		return Receipt{Fate: Queued}, nil
	}
	reason := p.sendEarlier(ctx, m)
	switch {
	case elsewhere(reason), errors.Is(reason, errBusy):
		return Receipt{Fate: Queued, Reason: reason}, nil
	case reason != nil:
		return Receipt{Fate: Queued, Reason: reason}, p.note(m.ID, line{Error: oneLine(reason.Error())})
	}
	return p.attempt(ctx, entry{Message: m}, ways)
}

// Report counts the results of one Flush. Messages that another process is sending at that moment are not counted.
type Report struct {
	Sent    int
	Queued  int // left in the outbox: failed, not yet due, or stuck
	Refused int
}

// Flush tries every message that is due, oldest first. Any number of processes may call it at once; each message is
// tried by one of them. An entry that is not a message is set aside and reported through Disk.Warn. When ctx ends, the
// remaining messages stay and the error wraps ctx.Err. A failure with one entry is part of the error and does not keep
// the others from being sent, unless they have to arrive in order. Without a carrier Flush does nothing.
func (p Post) Flush(ctx context.Context) (Report, error) {
	var r Report
	if !p.Configured() || p.Waits {
		return r, nil
	}
	errs := []error{p.finishDrafts()}
	entries, err := p.entries()
	errs = append(errs, err)
	due := func(e entry) bool { return e.needsWork(p.Disk.Now()) }
	end := len(entries)
	for end > 0 && !due(entries[end-1]) {
		end--
	}
	blocked := map[bool]bool{} // by whether the message goes the way of critical ones
	for i, e := range entries {
		lane := e.Critical && len(p.Urgent) > 0
		if ctx.Err() != nil {
			r.Queued += len(entries) - i
			errs = append(errs, ctx.Err())
			break
		}
		if i >= end || blocked[lane] || !due(e) && (!p.ordered() || e.Stuck || e.held(p.Disk.Now())) {
			r.Queued++
			continue
		}
		receipt, err := p.retry(ctx, e, lock.TryGuard)
		r.count(receipt.Fate)
		errs = append(errs, err)
		waits := receipt.Fate == Queued || receipt.Fate == "" && err == nil && p.busy(e.ID) // or another process is at it
		blocked[lane] = p.ordered() && waits && e.Attempts < patience
	}
	return r, errors.Join(errs...)
}

// longest is how long one attempt takes at most: by more ways than anybody has, after the earlier messages.
const longest = 10 * time.Minute

// busy reports whether a message that could not be locked is being sent by another process, which has set the time of its file when it began
// to. A process that was stopped during an attempt does not hold up later messages for ever.
func (p Post) busy(id string) bool {
	info, err := os.Lstat(p.path(id))
	return err == nil && p.Disk.Now().Sub(info.ModTime()) < longest
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

// closed returns what is known of an entry that cannot be read.
func (p Post) closed(e entry) entry {
	if info, err := os.Lstat(p.path(e.ID)); err == nil {
		e.Created = info.ModTime()
	}
	e.Attempts, e.LastError = 1, p.path(e.ID)+": "+store.Cause(e.broken)
	return e
}

// Pending lists the messages in the outbox, oldest first, including those that are being sent right now. It is
// read-only; an entry that is not a message is omitted and reported through Disk.Warn. One that cannot be read is reported so too, and listed
// as a message of which an attempt has failed with that error.
func (p Post) Pending() ([]entry, error) {
	entries, err := p.entries()
	var pending []entry
	for _, e := range entries {
		switch {
		case errors.Is(e.broken, errEmpty): // never was one
		case errors.Is(e.broken, errNoMessage):
			p.Disk.Warn(p.path(e.ID) + ": " + e.broken.Error())
		case e.broken != nil:
			e = p.closed(e)
			p.Disk.Warn(e.LastError)
			pending = append(pending, e)
		case !e.done:
			pending = append(pending, e)
		}
	}
	return pending, err
}
