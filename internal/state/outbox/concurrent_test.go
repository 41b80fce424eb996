package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// queue fills the outbox with n messages.
func (o *office) queue(t *testing.T, n int) {
	t.Helper()
	command := o.Command
	o.Command = nil
	for i := range n {
		o.send(t, message(fmt.Sprintf("r.%d", i)), Queued)
	}
	o.Command = command
}

// once checks that each of n messages was sent exactly once.
func (o *office) once(t *testing.T, n int) {
	t.Helper()
	sent := strings.Fields(o.read(t, "sent"))
	seen := map[string]int{}
	for _, id := range sent {
		seen[id]++
	}
	for i := range n {
		if id := fmt.Sprintf("r.%d", i); seen[id] != 1 {
			t.Errorf("%s was sent %d times", id, seen[id])
		}
	}
	if files := o.files(t); files != "" || len(sent) != n {
		t.Errorf("%d sent, left in the outbox: %q", len(sent), files)
	}
}

func TestConcurrentFlush(t *testing.T) {
	t.Parallel()
	const n = 40
	o := newOffice(t)
	o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"`)
	o.queue(t, n)
	var wg sync.WaitGroup
	var sent atomic.Int64
	for range 4 {
		wg.Go(func() {
			r, err := o.Flush(t.Context())
			if err != nil || r.Refused != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			sent.Add(int64(r.Sent))
		})
	}
	wg.Wait()
	if sent.Load() != n {
		t.Errorf("reports add up to %d", sent.Load())
	}
	o.once(t, n)
}

func TestConcurrentProcesses(t *testing.T) {
	t.Parallel()
	const n = 30
	o := newOffice(t)
	o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"; sleep 0.01`)
	o.queue(t, n)
	var wg sync.WaitGroup
	var sent atomic.Int64
	for range 4 {
		cmd := o.child(t, "flush")
		wg.Go(func() {
			out, err := cmd.Output()
			var r Report
			if err != nil || json.Unmarshal(out, &r) != nil {
				t.Errorf("%v: %s", err, out)
			}
			sent.Add(int64(r.Sent))
		})
	}
	wg.Wait()
	if sent.Load() != n {
		t.Errorf("reports add up to %d", sent.Load())
	}
	o.once(t, n)
}

// Who finds an entry due and gets it only after another process has tried it leaves it alone.
func TestConcurrentFlushTriesOnce(t *testing.T) {
	t.Parallel()
	const n = 12
	o := newOffice(t)
	o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"; exit 1`)
	o.queue(t, n)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := o.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if r, err := o.retry(t.Context(), o.load("r.0"), lock.TryGuard); r.Fate != Queued || err != nil {
		t.Errorf("%q, %v", r.Fate, err)
	}
	for _, e := range o.pending(t) {
		if e.Attempts != 1 {
			t.Errorf("%s: %d attempts", e.ID, e.Attempts)
		}
	}
	if got := strings.Count(o.read(t, "sent"), "\n"); got != n {
		t.Errorf("%d attempts, want %d", got, n)
	}
}

// Nothing that others do in the outbox keeps Send from having its message, or sends it twice.
func TestSendAmongFlushes(t *testing.T) {
	t.Parallel()
	const n = 40
	o := newOffice(t)
	o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"`)
	var senders, flushes sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		flushes.Go(func() {
			for !done.Load() {
				if r, err := o.Flush(t.Context()); err != nil || r != (Report{}) {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
	for first := range 2 {
		senders.Go(func() {
			for i := first; i < n; i += 2 {
				o.sendAnywhere(t, message(fmt.Sprintf("r.%d", i)))
			}
		})
	}
	senders.Wait()
	done.Store(true)
	flushes.Wait()
	o.once(t, n)
}

func (o *office) sendAnywhere(t *testing.T, m Message) {
	if fate, err := o.try(t.Context(), m); fate != Sent || err != nil {
		t.Errorf("%s: %q, %v", m.ID, fate, err)
	}
}

// A Flush that looks after drafts may have this one for a moment. Send waits, also when its context has ended.
func TestDraftIsBusy(t *testing.T) {
	o := newOffice(t)
	if err := os.MkdirAll(o.Home.Outbox(), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := lock.TryGuard(o.draft("r.1"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() {
		if err := os.Remove(o.draft("r.1")); err != nil {
			t.Error(err)
		}
		held.Release()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	entry, err := o.put(ctx, message("r.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Release()
	if _, named, err := identify(entry, o.path("r.1")); err != nil || !named {
		t.Error("what put holds is not the entry")
	}
	if e := o.pending(t); len(e) != 1 || e[0].Text != "text of r.1" || o.files(t) != "r.1.jsonl" {
		t.Errorf("%+v, %q", e, o.files(t))
	}
}

// A file that is locked after it has lost its name says nothing about what has the name now.
func TestClaimsAreExclusive(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const ids, rounds = 8, 60
	var taken [ids]atomic.Int64
	for range rounds {
		for i := range ids {
			o.file(t, fmt.Sprintf("r.%d.jsonl", i), "x")
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range ids {
					held, err := claim(o.path(fmt.Sprintf("r.%d", i)), lock.TryGuard)
					if err != nil {
						t.Error(err)
					}
					if held != nil {
						taken[i].Add(1)
						if err := os.Remove(o.path(fmt.Sprintf("r.%d", i))); err != nil {
							t.Error(err)
						}
						held.Release()
					}
				}
			})
		}
		wg.Wait()
	}
	for i := range ids {
		if got := taken[i].Load(); got != rounds {
			t.Errorf("r.%d was taken %d times, want %d", i, got, rounds)
		}
	}
	if files := o.files(t); files != "" {
		t.Errorf("left: %s", files)
	}
}

func TestLockOutlivesNoName(t *testing.T) {
	o := newOffice(t)
	o.file(t, "r.1.jsonl", "old")
	held, err := lock.TryGuard(o.path("r.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if size, named, err := identify(held, o.path("r.1")); err != nil || size != 3 || !named {
		t.Errorf("%d, %v", size, named)
	}
	if err := os.Remove(o.path("r.1")); err != nil {
		t.Fatal(err)
	}
	if _, named, err := identify(held, o.path("r.1")); err != nil || named {
		t.Error("removed, and still named")
	}
	o.file(t, "r.1.jsonl", "new")
	if _, named, err := identify(held, o.path("r.1")); err != nil || named {
		t.Error("replaced, and still named")
	}
}
