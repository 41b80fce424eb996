// Package discord is the listener: a process that is connected to Discord as the owner's bot, passes messages to the agent, and shows
// its answers while they arrive.
//
// Who is answered. The owner is the user of the setting discord.owner, or else the owner of the application, or each member of the
// team that owns it. Direct messages from the owner are turns of the main conversation, or of the open fork. The setting
// discord.allow lists others: users, who have a channel session in their direct messages, and channels of servers, where everyone
// who mentions the bot takes part in the channel's session. Each thread of such a channel has a session of its own. An empty list is
// nobody. For anybody else there is no answer, no request, no file and no line in the log.
//
// Each message once. A lane handles the messages of one channel in order, one at a time. A message from the owner is put into the
// queue of the conversation with Discord's id of it; then state/discord.json notes the id as handled and open; it is closed when the
// answer is shown. At a start, and when a session of the gateway was not resumed, the lane first reads the channel's history since the
// last handled message. If the process was killed between two of these steps, the next one finds the id in the queue or in the record
// of a run, and does not queue the message again; it shows an answer that was not shown.
package discord

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
)

// Home is the data directory with its settings as they are now.
type Home struct {
	Dir    paths.Dir
	Disk   store.Disk
	Runner *run.Runner

	Owner      string   // a user id; "": whoever owns the application
	Allow      []string // ids of channels and users; empty: nobody
	Transcribe []string // a command: audio on standard input, text on standard output; empty: none
	Env        []string // of that command
	Interrupt  bool     // a message stops the turn in progress
}

// Options are what a listener works with.
type Options struct {
	*Interactions // Owns and Say are set here

	Token  string
	Home   func() (Home, error)   // the settings as they are now
	Notify func(states ...string) // to the service manager, see Notifier
	Grace  time.Duration          // for turns in progress when the listener is ended; 0 ends them at once
}

// listener is one bot that listens.
type listener struct {
	Options

	handled *handled
	app     api.Application
	dm      string // the channel of the first owner's direct messages
	self    string // the bot's user id

	latest latest
	places places
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
func (l *listener) now() Home {
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
	chores     = 30 * time.Second // after which the outbox and the queue are read again
)

// Run listens until ctx ends, which is no error. Its errors are api.ErrToken, api.ErrClosed, those of gateway.Run, lock.ErrBusy
// while another listener serves the data directory, or of a data directory that cannot be used.
func Run(ctx context.Context, o Options) error {
	h, err := o.Home()
	if err != nil {
		return err
	}
	held, err := lock.Try(h.Dir.Lock("discord"))
	if errors.Is(err, lock.ErrBusy) {
		return fmt.Errorf("another listener serves this data directory: %w", lock.ErrBusy)
	}
	if err != nil {
		return err
	}
	defer held.Release()
	l := &listener{Options: o, latest: latest{home: h}}
	if l.handled, err = loadHandled(h.Dir, h.Disk); err != nil {
		return err
	}
	return l.run(ctx, h)
}

func (l *listener) run(ctx context.Context, h Home) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	l.Notify("STATUS=connecting to Discord")
	newest := l.handled.newest()
	if err := l.introduce(ctx, h); err != nil || ctx.Err() != nil {
		return err
	}
	l.openDMs(ctx, h, newest)
	turns, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	l.turns = turns
	l.Owns, l.Say = l.ownsNow, l.say
	if _, err := SyncCommands(ctx, l.API, h.Dir, h.Disk, l.app.ID, false); err != nil && ctx.Err() == nil {
		l.warn(fmt.Errorf("register the commands: %w", err))
	}
	var beside sync.WaitGroup
	beside.Go(func() { l.keepChannels(turns, h) })
	beside.Go(func() { l.doChores(ctx) })
	l.handled.earlier = l.earlier(h)
	l.catchUp(ctx, true)

	options := gateway.Options{Token: l.Token, Intents: intents, REST: l.API, Now: l.Now, Beat: func() { l.Notify("WATCHDOG=1") }}
	options.Log = func(err error) { l.Warn("discord: " + err.Error()); l.Notify("STATUS=" + err.Error()) }
	options.Save = func(s gateway.Saved) { l.warn(store.WriteJSON(h.Dir.State("discord_session.json"), s, store.Buffered)) }
	options.Saved, _ = store.ReadJSON[gateway.Saved](h.Disk, h.Dir.State("discord_session.json"))
	err := gateway.Run(ctx, options, func(e gateway.Event) { l.hear(ctx, e) })
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

// intents are the events that the listener needs: messages and reactions in direct messages, messages in servers, and where
// their threads are. None of them is privileged; Discord shows the text of a message in a server only if that mentions the bot.
const intents = 1<<12 | 1<<13 | 1<<9 | 1<<0

// introduce asks who owns the bot, and opens the channel of the owner's direct messages. It repeats that until it succeeds, or fails
// for good, or ctx ends.
func (l *listener) introduce(ctx context.Context, h Home) error {
	return l.insist(ctx, func() (err error) {
		if l.app, err = l.API.Application(ctx); err != nil {
			return err
		}
		if l.self, err = l.API.Me(ctx); err != nil {
			return err
		}
		owners := l.owners(h)
		if len(owners) == 0 {
			return fmt.Errorf("%w: the application has no owner: set discord.owner", api.ErrRefused)
		}
		if l.dm, err = l.API.OpenDM(ctx, owners[0]); err != nil {
			return err
		}
		if err := l.API.Typing(ctx, l.dm); errors.Is(err, api.ErrClosed) { // opening the channel does not tell
			return err
		}
		if l.handled.upTo(l.dm) == "" {
			err = l.readHistory(ctx, l.dm) // where it ends is where the listener begins
		}
		return err
	})
}

// insist repeats do until it succeeds, or fails for good, or ctx ends, which is no error.
func (l *listener) insist(ctx context.Context, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := do()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it failed because ctx has ended
		}
		if err == nil || api.Permanent(err) {
			return err
		}
		l.Warn("discord: " + err.Error())
		if process.Sleep(ctx, pause) != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

// keepChannels loads the sessions of channels, and saves what turns could not save, until ctx ends.
func (l *listener) keepChannels(ctx context.Context, h Home) {
	loaded, err := h.Runner.Channels.Load(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
		l.warn(err)
	}
	if loaded.Damaged > 0 {
		l.Warn("discord: channel sessions: " + loaded.String())
	}
	debug.FreeOSMemory() // what the start took and does not need any more
	h.Runner.Channels.Persist(ctx)
}

// doChores sends what waits in the outbox, and answers messages whose process has ended before, until ctx ends.
func (l *listener) doChores(ctx context.Context) {
	for {
		h := l.now()
		if _, err := h.Runner.Outbox.Flush(ctx); err != nil && ctx.Err() == nil {
			l.warn(err)
		}
		l.talks.abandoned(l, h)
		if process.Sleep(ctx, chores) != nil {
			return
		}
	}
}

func (l *listener) warn(err error) {
	if err != nil {
		l.Warn("discord: " + err.Error())
	}
}
