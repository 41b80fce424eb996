package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// MainKey and ForkKey are the keys of the locks of the main session and of the interactive fork.
const (
	MainKey = paths.MainKey
	ForkKey = "fork"
)

// Fork is the open interactive fork: a branch of the main session, or of the session of a background run, in which the owner talks with the
// agent. At most one is open.
type Fork struct {
	ID      string    `json:"id"`
	Session string    `json:"session,omitempty"` // "" until its first turn has begun
	Parent  string    `json:"parent,omitempty"`  // the session that its first turn branches; "" begins a new session
	Topic   string    `json:"topic,omitempty"`
	Begun   time.Time `json:"begun"`
	Last    time.Time `json:"last"`                      // when the latest turn began or ended
	Turns   int       `json:"turns"`                     // turns that have ended
	Heard   int       `json:"owner_turns"`               // turns that the owner has begun
	Prompts int       `json:"timeout_prompts,omitempty"` // sent since the owner's latest turn
	Shown   time.Time `json:"updates_shown,omitzero"`    // updates up to here were shown in it
	MainRun string    `json:"main_run,omitempty"`        // the latest run of main that it holds; busyMain if a run was in progress

	Run     string    `json:"resumed_run,omitempty"` // the run that sent Message, if Parent is its session
	Message string    `json:"message,omitempty"`     // that the owner replied to
	Quote   string    `json:"quote,omitempty"`       // the beginning of that message
	Sent    time.Time `json:"message_sent,omitzero"`
	Running bool      `json:"still_running,omitempty"` // Run was in progress when the owner replied
	Engine  string    `json:"engine,omitempty"`        // that keeps Parent; "" is the configured one
	Model   string    `json:"model,omitempty"`
}

// busyMain is the MainRun of a fork that began during a turn of main. The fork does not contain that turn.
const busyMain = "busy"

// Errors of forks.
var (
	ErrNoFork   = errors.New("no fork is open")
	ErrForkOpen = errors.New("a fork is already open")
	// ErrMainMoved: main had another turn since the fork began, so the fork cannot replace it.
	ErrMainMoved = errors.New("the main session has gone on since the fork began, so the fork cannot replace it")
	// ErrResumed: the fork holds the session of a background run, not of main.
	ErrResumed = errors.New("the fork was resumed from a background run, so it cannot replace the main session")
	// ErrNoTurn: there is nothing to save or to report.
	ErrNoTurn = errors.New("no turn of the fork has ended yet")
)

// Fork returns the open fork. A fork that was saved just before its process was killed is closed first.
func (b Book) Fork(ctx context.Context) (f Fork, open bool, err error) {
	if _, err := os.Lstat(b.Home.Fork()); errors.Is(err, fs.ErrNotExist) { // it is replaced as a whole: no lock is needed
		return f, false, nil
	}
	err = b.withFork(ctx, func(now *Fork) (*Fork, error) {
		if open = now != nil; open {
			f = *now
		}
		return now, nil
	})
	if err != nil || !open || f.Session == "" {
		return f, open, err
	}
	main, err := b.Main()
	if err != nil || main != f.Session {
		return f, err == nil, err
	}
	return Fork{}, false, b.finishSave(ctx, f)
}

// OpenFork writes the file of a new fork and waits for the disk. The error is ErrForkOpen if there is one already.
func (b Book) OpenFork(ctx context.Context, f Fork) error {
	if _, _, err := b.Fork(ctx); err != nil { // closes one that was saved
		return err
	}
	return b.withFork(ctx, func(now *Fork) (*Fork, error) {
		if now != nil {
			return nil, ErrForkOpen
		}
		return &f, nil
	})
}

// EditFork changes the open fork. The error is ErrNoFork unless the fork of that id is open.
func (b Book) EditFork(ctx context.Context, id string, edit func(*Fork)) error {
	return b.withFork(ctx, func(now *Fork) (*Fork, error) {
		if now == nil || now.ID != id {
			return nil, ErrNoFork
		}
		changed := *now
		edit(&changed)
		return &changed, nil
	})
}

// CloseFork removes the fork of an id. It succeeds if that fork is not open. The caller holds the fork's lock.
func (b Book) CloseFork(ctx context.Context, id string) error {
	return b.withFork(ctx, func(now *Fork) (*Fork, error) {
		if now != nil && now.ID == id {
			return nil, nil
		}
		return now, nil
	})
}

// Savable returns nil if the fork can become the main session, else ErrMainMoved, ErrResumed or ErrNoTurn.
func (b Book) Savable(f Fork) error {
	main, err := b.Main()
	switch {
	case err != nil:
		return err
	case f.Run != "":
		return ErrResumed
	case f.Turns == 0 || f.Session == "":
		return ErrNoTurn
	case main != f.Parent || b.lastMainRun() != f.MainRun:
		return ErrMainMoved
	}
	return nil
}

// MainRun returns the MainRun of a fork that begins now.
func (b Book) MainRun() string {
	if !lock.Free(b.Home.ConversationLock(MainKey)) {
		return busyMain
	}
	return b.lastMainRun()
}

// lastMainRun returns the run that last held the lock of main.
func (b Book) lastMainRun() string {
	return strings.TrimSpace(lock.ReadNote(b.Home.ConversationLock(MainKey)))
}

// SaveFork makes the fork the main session and closes it. The caller holds the fork's lock and main's. If it is killed in between, the next
// reader of the fork completes it.
func (b Book) SaveFork(ctx context.Context, f Fork) error {
	if err := b.SetMain(f.Session); err != nil {
		return err
	}
	return b.finishSave(ctx, f)
}

// finishSave logs that the fork became the main session, unless that is in the history, and closes it.
func (b Book) finishSave(ctx context.Context, f Fork) error {
	if err := b.log(ctx, Event{SessionID: f.Session, Event: Swapped, ParentSessionID: f.Parent}, store.Synced, true); err != nil {
		return err
	}
	return b.CloseFork(ctx, f.ID)
}

// withFork calls edit with the fork on disk, nil if there is none, and stores the fork that edit returns, nil for none. It holds the lock
// of the file. An unchanged pointer is not written.
func (b Book) withFork(ctx context.Context, edit func(*Fork) (*Fork, error)) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("fork"), b.Home.Fork(), func(f **Fork) error {
		now := *f
		if now != nil && now.ID == "" { // {} is no fork
			now = nil
		}
		next, err := edit(now)
		switch *f = next; {
		case err != nil:
			return err
		case next == now:
			return store.ErrUnchanged
		case next == nil:
			return store.ErrEmpty
		}
		return nil
	})
}
