package listener

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Claim is the right to send by a messenger for which no listener runs.
type Claim struct {
	sending, held *lock.Held
	handled       *handled
}

// sendLock is the lock of those who claim a messenger. A listener waits for it before it takes its own lock, so that a message that is
// sent meanwhile does not keep it from starting.
func sendLock(dir paths.Dir, name string) string { return dir.Lock(stateOf(name) + "_send") }

// mostSending bounds the wait of a listener for those who send.
const mostSending = 2 * time.Minute

// NewClaim waits for others who send, until ctx ends. The error wraps lock.ErrBusy while a listener serves the messenger.
func NewClaim(ctx context.Context, dir paths.Dir, d store.Disk, name string) (c *Claim, err error) {
	c = &Claim{}
	if c.sending, err = d.Locks.Wait(ctx, sendLock(dir, name)); err != nil {
		return nil, err
	}
	if c.held, err = lock.Try(dir.Lock(stateOf(name))); err != nil {
		c.sending.Release()
		return nil, err
	}
	if c.handled, err = loadHandled(dir.State(stateOf(name)+".json"), d, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close lets a listener start.
func (c *Claim) Close() {
	c.held.Release()
	c.sending.Release()
}

// Messenger returns a messenger whose buttons are lines of the text if it has no buttons. The next listener knows them.
func (c *Claim) Messenger(m messenger.Messenger) messenger.Messenger { return numbered{m, c.handled} }

// Direct returns the channel of the direct messages of the owner, a user id, or "" for the messenger's; "" if it is not known.
func (c *Claim) Direct(owner string, self Self) string { return c.handled.direct(owner, self) }

// Direct returns the channel of the owner's direct messages; "" if it is not known.
func (l *Listener) Direct() string { return l.handled.direct(l.now().Owner, l.self) }

// waitForSenders waits until nobody sends by a messenger that is about to be served. release lets them continue.
func waitForSenders(h Home, name string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), mostSending)
	defer cancel()
	sending, err := h.Disk.Locks.Wait(ctx, sendLock(h.Dir, name))
	if errors.Is(err, lock.ErrBusy) {
		return nil, fmt.Errorf("another process sends by %s for %s: %w", name, mostSending, lock.ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	return sending.Release, nil
}

// direct returns the channel of the direct messages of an owner; "" if it is not known. The messenger's own answer is about the first owner
// that it names.
func (h *handled) direct(owner string, self Self) string {
	if self.Direct != "" && (owner == "" || len(self.Owners) == 0 || self.Owners[0] == owner) {
		return self.Direct
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, user := range (Home{Owner: owner}).Owned(self) {
		if channel := h.state.Direct[user]; channel != "" {
			return channel
		}
	}
	return ""
}

// wrote notes the channel in which an owner has written directly, and forgets those of users who do not own the bot any more.
func (h *handled) wrote(owners []string, user, channel string) error {
	h.mu.Lock()
	known := h.state.Direct[user] == channel
	h.mu.Unlock()
	if known {
		return nil
	}
	return h.change(func(s *noted) {
		s.Direct = maps.Clone(s.Direct)
		maps.DeleteFunc(s.Direct, func(user, _ string) bool { return !slices.Contains(owners, user) })
		if s.Direct == nil {
			s.Direct = map[string]string{}
		}
		s.Direct[user] = channel
	})
}
