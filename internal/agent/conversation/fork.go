package conversation

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/session"
)

// Fork is the owner's interactive fork. Its first turn branches main, or the session of the run that the owner replied to; later
// turns continue the branch.
type Fork struct {
	Sessions session.Book
	ID       string      // of the fork; if another one or none is open, the turn fails with session.ErrNoFork
	First    bool        // the turn only begins the fork; if it has begun, the turn fails with session.ErrNoFork
	Busy     func() bool // reports whether main is in a turn

	now session.Fork // as Open found it
}

// Traits returns those of main.
func (*Fork) Traits() Traits { return Traits{Mode: "fork", Foreground: true, Shared: true} }

// Key returns one key for all forks: one is open at a time.
func (*Fork) Key() string { return session.ForkKey }

// Open continues the fork's session, or begins the fork with a branch. If the turn that began the fork was killed, the next one
// begins it again.
func (c *Fork) Open(ctx context.Context) (h History, err error) {
	now, open, err := c.Sessions.Fork(ctx)
	if err != nil {
		return h, err
	}
	if !open || now.ID != c.ID || c.First && now.Turns > 0 {
		return h, session.ErrNoFork
	}
	c.now, h.Session = now, now.Session
	if now.Turns > 0 {
		return h, nil
	}
	h.Parent = now.Parent
	if now.Run == "" && c.Busy() { // main's first turn
		h.Missing = startNew
	}
	begun := prompt.Fork{Topic: now.Topic, Quote: now.Quote, Resumed: now.Run != "", Running: now.Running}
	if !now.Sent.IsZero() {
		begun.Age = c.Sessions.Disk.Now().Sub(now.Sent)
	}
	h.Tag, h.Preface = "fork-started", prompt.ForkStarted(begun)
	return h, nil
}

// Save makes id the fork's session.
func (c *Fork) Save(ctx context.Context, id string) error {
	return c.Sessions.EditFork(context.WithoutCancel(ctx), c.ID, func(f *session.Fork) { f.Session = id })
}

// Updates shows each update once and leaves them for main. A fork of another run's session shows none.
func (c *Fork) Updates() UpdatePolicy {
	if c.now.Run != "" {
		return UpdatePolicy{}
	}
	return UpdatePolicy{Show: Peek, Since: c.now.Shown, Shown: func(ctx context.Context, until time.Time) error {
		return c.Sessions.EditFork(ctx, c.ID, func(f *session.Fork) { f.Shown = until })
	}}
}

// Event returns that of an interactive fork.
func (*Fork) Event() session.Kind { return session.InteractiveFork }
