package conversation

import (
	"context"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// Branches of one session, such as forked routines that are due in one minute, begin with the same messages. A service reads them from its
// cache, at a small part of the price, once the answer to an earlier request has begun. So of several branches the first goes ahead, and the
// others wait until its answer begins, or for ten seconds.

// prefix is the beginning that the service has cached last, in state/cache/prefix.json.
type prefix struct {
	Session  string    `json:"session"`
	Model    string    `json:"model"`
	Thinking string    `json:"thinking"`
	At       time.Time `json:"at"` // when an answer began
}

// lead waits for its place among the branches of a session. It returns the request, which tells when its answer begins, and what to call when
// the turn has ended. Any other turn goes on at once.
func (t *Turn) lead(ctx context.Context, r engine.Request) (engine.Request, func()) {
	branch := t.current.session == "" && t.current.parent != ""
	if name := t.Run.Engine; !branch || r.Run.Sent == nil || name != engine.Native && name != engine.ClaudeCode {
		return r, func() {}
	}
	disk, path := t.book.Sessions.Disk, t.book.Home.State("cache", "prefix.json")
	held, err := disk.Lock(ctx, t.book.Home.Lock("prefix"))
	if err != nil {
		return r, func() {} // the answer to the first takes longer than that, or nothing can be locked: a lead only saves money
	}
	own := prefix{Session: t.current.parent, Model: r.Model.Name, Thinking: r.Model.Thinking}
	last, _, _ := store.PeekJSON[prefix](path) // an error is a cache that is not known
	if since := disk.Now().Sub(last.At); last.same(own) && 0 <= since && since < engine.CacheLife {
		held.Release()
		return r, func() {}
	}
	return leading(r, held, func() {
		own.At = disk.Now()
		_ = store.WriteJSON(path, own, store.Buffered) // an error only costs the next branch its lead
	})
}

func (p prefix) same(q prefix) bool {
	p.At, q.At = time.Time{}, time.Time{}
	return p == q
}

// leading returns a request that releases the lock when its answer begins, after note, and what releases it in any case.
func leading(r engine.Request, held *lock.Held, note func()) (engine.Request, func()) {
	release := sync.OnceFunc(held.Release)
	begun := sync.OnceFunc(func() { note(); release() })
	sent := r.Run.Sent
	r.Run.Sent = func(body []byte) engine.Kept {
		kept := sent(body)
		return engine.Kept{Begun: func() { kept.Begun(); begun() }, Answered: kept.Answered}
	}
	return r, release
}
