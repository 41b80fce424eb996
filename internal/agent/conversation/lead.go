package conversation

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Branches of one session, such as forked routines that are due in one minute, begin with the same messages. A service reads them from its
// cache, at a small part of the price, once the answer to an earlier request has begun. So of several branches the first goes ahead, and the
// others wait until its answer begins, or for ten seconds.

// prefix is a beginning that the service has cached, in state/cache/prefix-N.json. N is one of sixteen, so that branches of different
// sessions rarely wait for each other.
type prefix struct {
	Session  string    `json:"session"`
	Model    string    `json:"model"`
	Thinking string    `json:"thinking"`
	At       time.Time `json:"at"` // when an answer began
}

// lead is the place of a turn among the branches of a session. A lead that nobody waits for does nothing.
type lead struct {
	begun func() // the answer begins
	ended func() // the turn has ended
}

// lead waits for the turn's place. A turn that is no branch goes on at once.
func (t *Turn) lead(ctx context.Context, r engine.Request) lead {
	none := lead{func() {}, func() {}}
	branch := t.current.session == "" && t.current.parent != ""
	if name := t.Run.Engine; !branch || name != engine.Native && name != engine.ClaudeCode {
		return none
	}
	own := prefix{Session: t.current.parent, Model: r.Model.Name, Thinking: r.Model.Thinking}
	name := own.name()
	disk, path := t.book.Sessions.Disk, t.book.Home.State("cache", name+".json")
	held, err := disk.Lock(ctx, t.book.Home.Lock(name))
	if err != nil {
		return none // the answer to the first takes longer than that, or nothing can be locked: a lead only saves money
	}
	last, _, _ := store.PeekJSON[prefix](path) // an error is a cache that is not known
	if since := disk.Now().Sub(last.At); last.same(own) && 0 <= since && since < engine.CacheLife {
		held.Release()
		return none
	}
	release := sync.OnceFunc(held.Release)
	return lead{ended: release, begun: sync.OnceFunc(func() {
		own.At = disk.Now()
		_ = store.WriteJSON(path, own, store.Buffered) // an error only costs the next branch its lead
		release()
	})}
}

// request returns a request that tells when its answer begins to arrive.
func (l lead) request(r engine.Request) engine.Request {
	if sent := r.Run.Sent; sent != nil {
		r.Run.Sent = func(body []byte) engine.Kept {
			kept := sent(body)
			return engine.Kept{Begun: func() { kept.Begun(); l.begun() }, Answered: kept.Answered}
		}
	}
	return r
}

// sink returns a sink that tells that the answer has begun, for a request that no gateway sees.
func (l lead) sink(to engine.Sink) engine.Sink {
	return func(e runlog.Event) error {
		if e.Type == runlog.Text || e.Type == runlog.Thinking || e.Type == runlog.ToolUse {
			l.begun()
		}
		return to(e)
	}
}

func (p prefix) name() string {
	sum := sha256.Sum256([]byte(p.Session + "\n" + p.Model + "\n" + p.Thinking))
	return fmt.Sprintf("prefix-%x", sum[0]>>4)
}

func (p prefix) same(q prefix) bool {
	p.At, q.At = time.Time{}, time.Time{}
	return p == q
}
