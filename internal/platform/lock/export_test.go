package lock

import (
	"context"
	"time"
)

// WaitAtMost is WaitShort with another limit.
func (t *Table) WaitAtMost(ctx context.Context, path string, limit time.Duration) (*Held, error) {
	return t.waitAtMost(ctx, path, limit)
}

// Hung reports whether a WaitShort has timed out on the holder of the lock at path.
func (t *Table) Hung(path string) (hung bool) {
	_, hung = t.look(key{path: path})
	return hung
}

// Waiters returns the number of waiters for the lock at path.
func (t *Table) Waiters(path string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, q := range t.queues {
		if k.path == path {
			n += len(q.waiters)
		}
	}
	return n
}

// Queues counts the locks that are waited for.
func (t *Table) Queues() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queues)
}
