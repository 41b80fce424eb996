package channel

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// Cache holds the sessions that a process has in memory. The zero Cache is ready to use by several goroutines and must not be copied; a nil
// *Cache holds nothing.
type Cache struct {
	mu      sync.Mutex
	files   map[Name]file
	unsaved map[Name]unsaved
}

// file is a session as it was last read or written.
type file struct {
	session Session
	info    fs.FileInfo
}

// unsaved is a session that could not be saved at the end of its turn.
type unsaved struct {
	session Session
	info    fs.FileInfo // of the file as the turn left it; nil: there was none
	tail    []Message   // messages that the file does not have
}

// same reports whether two states of a file are the same one.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// with calls do alone with the cache, if there is one.
func (c *Cache) with(do func()) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files, c.unsaved = map[Name]file{}, map[Name]unsaved{}
	}
	do()
}

func (c *Cache) get(n Name, info fs.FileInfo) (s Session, ok bool) {
	c.with(func() {
		f, known := c.files[n]
		s, ok = f.session, known && same(f.info, info)
	})
	return s, ok
}

func (c *Cache) put(n Name, s Session, info fs.FileInfo) {
	if info != nil {
		c.with(func() { c.files[n] = file{s, info} })
	}
}

// forget drops a session from the cache.
func (c *Cache) forget(n Name) {
	c.with(func() {
		delete(c.files, n)
		delete(c.unsaved, n)
	})
}

// pending returns what could not be saved of a session.
func (c *Cache) pending(n Name) (u unsaved, ok bool) {
	c.with(func() { u, ok = c.unsaved[n] })
	return u, ok
}

// postpone keeps what could not be saved; without a tail everything is saved.
func (c *Cache) postpone(n Name, u unsaved) {
	c.with(func() {
		if delete(c.unsaved, n); len(u.tail) > 0 {
			c.unsaved[n] = u
		}
	})
}

// waiting returns the sessions that have messages that are not on disk, besides those in a turn.
func (c *Cache) waiting() (names []Name) {
	c.with(func() { names = slices.Collect(maps.Keys(c.unsaved)) })
	return names
}

// Persist saves what turns could not save, every 30 seconds and once more when ctx ends; then it returns.
func (b Book) Persist(ctx context.Context) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.saveUnsaved()
		case <-ctx.Done():
			b.saveUnsaved()
			return
		}
	}
}

// saveUnsaved saves the sessions that wait for it. A session in a turn of this process is saved by that turn, a session in a turn of
// another process next time.
func (b Book) saveUnsaved() {
	for _, n := range b.Cache.waiting() {
		guard, err := lock.TryGuard(b.Home.ConversationLock(n.Key()))
		if err != nil {
			continue
		}
		if t, err := b.Open(n); err == nil {
			_ = t.End() // it was reported when the turn ended, and is tried again
		}
		guard.Release()
	}
}

// readEach reads sessions into the cache, several at once, and returns the errors in their order.
func (b Book) readEach(ctx context.Context, names []Name) []error {
	errs := make([]error, len(names))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
				if errs[i] = ctx.Err(); errs[i] == nil {
					_, errs[i] = b.Read(names[i])
				}
			}
		})
	}
	workers.Wait()
	return errs
}
