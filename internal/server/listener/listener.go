// Package listener answers messages of a messenger: it passes them to the agent, and shows its answers while they arrive.
//
// A messenger is a messenger.Messenger: eleven methods that send, edit, delete, react, show typing, and read. Its Able says what it can
// do; what it lacks is left out, or replaced by a text. The messenger's own package receives its events, and calls Hear, Press and
// React. Each messenger of a data directory has a Listener of its own, with a name, a lock and a file of what it has handled.
//
// Who is answered. The owner is the user of the settings, or else one of those whom the messenger takes for the owner. Direct messages
// from the owner are turns of the main conversation, or of the open fork. The settings allow others: users, who have a channel session
// in their direct messages, and channels of several users, where everyone who addresses the bot takes part in the channel's session.
// Each thread of such a channel has a session of its own. An empty list is nobody. For anybody else there is no answer, no request, no
// file and no line in the log.
//
// Each message once. A lane handles the messages of one channel in order, one at a time. A message from the owner is put into the
// queue of the conversation with the messenger's id of it; then the file of handled messages notes the id as handled and open; it is
// closed when the answer is shown. Where the messenger has a history, the lane first reads the channel's since the last handled
// message: at a start, and when the messenger's package says that events may be missing. If the process was killed between two of these
// steps, the next one finds the id in the queue or in the record of a run, and does not queue the message again; it shows an answer that
// was not shown.
//
// Edits and deletions. A message that its author edits before the agent has begun to answer it is answered in its new form, and one that is
// deleted is not answered. Nothing else follows from either: an answer that has begun stays as it is. They are known while the listener
// runs; after a restart a message is as its history, or its repetition, has it.
package listener

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Home is the data directory with its settings as they are now.
type Home struct {
	Dir    paths.Dir
	Disk   store.Disk
	Runner *run.Runner

	Owner      string   // a user id; "": those of Self
	Allow      []string // ids of channels and users; empty: nobody
	Transcribe []string // a command: audio on standard input, text on standard output; empty: none
	Env        []string // of that command
	Interrupt  bool     // a message stops the turn in progress
}

// Options are what a listener works with.
type Options struct {
	*Actions // API, Owns and Say are set by Open

	Messenger messenger.Messenger
	Home      func() (Home, error)   // the settings as they are now
	Notify    func(states ...string) // to the service manager, see process.Notifier
	Grace     time.Duration          // for turns in progress when the listener is ended; 0 ends them at once
	Free      func()                 // returns to the system what the start took and does not need any more; nil: it is kept
}

// Self is what a messenger knows of the bot.
type Self struct {
	Owners []string // user ids of those who own the bot
	Direct string   // the channel of the first owner's direct messages
}

// Owned returns the user ids of the owner, or of the owners.
func (h Home) Owned(by Self) []string {
	if h.Owner != "" {
		return []string{h.Owner}
	}
	return by.Owners
}

// Listener is one bot that listens.
type Listener struct {
	Options

	handled *handled
	held    *lock.Held
	self    Self

	latest latest
	heard  heard
	due    sync.Map // of channels whose history is to be read
	lanes  lanes
	talks  talks
	turns  context.Context // of turns: it ends later than that of Run
}

// latest is the latest settings that could be read.
type latest struct {
	mu    sync.Mutex
	home  Home
	wrong string // why the settings cannot be read now; "": they can
}

// now returns the settings as they are now. While they cannot be read it warns once, and returns the latest ones that could.
func (l *Listener) now() Home {
	h, err := l.Home()
	l.latest.mu.Lock()
	defer l.latest.mu.Unlock()
	if err == nil {
		l.latest.home, l.latest.wrong = h, ""
	} else if l.latest.wrong != err.Error() {
		l.latest.wrong = err.Error()
		l.warn(err)
	}
	return l.latest.home
}

// stopping is the cause of the end of turns: the owner did not ask for it, so the messages stay in the queue.
type stopping struct{}

func (stopping) Error() string { return "the listener was stopped: " + context.Canceled.Error() }

func (stopping) Unwrap() error { return context.Canceled }

// Times of the listener.
const (
	firstPause = time.Second
	mostPause  = time.Minute
	chores     = 30 * time.Second       // after which the outbox and the queue are read again
	glance     = 500 * time.Millisecond // between two looks whether the outbox has changed
)

// stateOf returns the name of a messenger's files in the data directory. Discord's are older than that there are others.
func stateOf(messenger string) string {
	if messenger == "discord" {
		return messenger
	}
	return "door_" + messenger
}

// Open returns a listener that does not listen yet. Its errors are lock.ErrBusy while another listener serves the messenger in the data
// directory, or those of a data directory that cannot be used.
func Open(o Options) (*Listener, error) {
	h, err := o.Home()
	if err != nil {
		return nil, err
	}
	release, err := waitForSenders(h, o.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	held, err := lock.Try(h.Dir.Lock(stateOf(o.Name)))
	if errors.Is(err, lock.ErrBusy) {
		return nil, fmt.Errorf("another listener serves this data directory: %w", lock.ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	l := &Listener{Options: o, held: held, latest: latest{home: h}}
	if l.handled, err = loadHandled(h.Dir.State(stateOf(o.Name)+".json"), h.Disk, o.Messenger.Able().Order); err != nil {
		held.Release()
		return nil, err
	}
	l.Messenger = numbered{o.Messenger, l.handled}
	l.API, l.Owns, l.Say = l.Messenger, l.ownsNow, l.say
	return l, nil
}

// Close lets another process listen.
func (l *Listener) Close() { l.held.Release() }

// Run listens until ctx ends, and returns the error of receive. That receives the messenger's events and calls Hear, Press and React
// with them, until its context ends, which is no error.
func (l *Listener) Run(ctx context.Context, self Self, receive func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	turns, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	l.turns, l.self = turns, self
	var beside sync.WaitGroup
	h := l.now()
	beside.Go(func() { l.keepChannels(turns, h) })
	beside.Go(func() { l.doChores(ctx) })
	l.handled.earlier = l.earlier(h)
	l.showOpen(ctx)
	l.CatchUp(ctx)

	err := receive(ctx)
	end()
	l.Notify("STOPPING=1", "STATUS=waiting for the turn in progress")
	overdue := time.AfterFunc(l.Grace, func() { cut(stopping{}) })
	defer overdue.Stop()
	l.talks.stop()
	l.Wait() // for the answers to commands and buttons
	l.lanes.wait()
	l.talks.wait()
	cut(stopping{})
	beside.Wait()
	return err
}

// Insist repeats do until it succeeds, or fails for good, or ctx ends, which is no error.
func (l *Listener) Insist(ctx context.Context, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := do()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it failed because ctx has ended
		}
		if err == nil || messenger.IsPermanent(err) {
			return err
		}
		l.warn(err)
		if process.Sleep(ctx, pause) != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

// keepChannels loads the sessions of channels, and saves what turns could not save, until ctx ends.
func (l *Listener) keepChannels(ctx context.Context, h Home) {
	loaded, err := h.Runner.Channels.Load(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
		l.warn(err)
	}
	if loaded.Damaged > 0 {
		l.warn(errors.New("channel sessions: " + loaded.String()))
	}
	if l.Free != nil {
		l.Free()
	}
	h.Runner.Channels.Persist(ctx)
}

// doChores sends what waits in the outbox, and answers messages whose process has ended before, until ctx ends.
func (l *Listener) doChores(ctx context.Context) {
	for {
		h, began := l.now(), l.Now()
		if _, err := h.Runner.Outbox.Flush(ctx); err != nil && ctx.Err() == nil {
			l.warn(err)
		}
		l.talks.abandoned(l, h)
		if !l.idle(ctx, h, began) {
			return
		}
	}
}

// idle waits until the chores that have begun at an instant are due again, or until the outbox has changed since shortly before, when the
// sender may still have held a message. It reports false when ctx has ended.
func (l *Listener) idle(ctx context.Context, h Home, began time.Time) bool {
	for range int(chores / glance) {
		if process.Sleep(ctx, glance) != nil {
			return false
		}
		if h.Runner.Outbox.Changed().After(began.Add(-glance)) {
			break
		}
	}
	return true
}
