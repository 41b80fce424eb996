package channel

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// obstruct makes saves fail until the returned function is called. The process must not be root's.
func (w *world) obstruct() (clear func()) {
	w.t.Helper()
	chmod := func(mode os.FileMode) {
		if err := os.Chmod(w.book.Home.Channels(), mode); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := os.MkdirAll(w.book.Home.Channels(), 0o700); err != nil {
		w.t.Fatal(err)
	}
	chmod(0o500)
	return func() { chmod(0o700) }
}

// TestDamagedFile: it is set aside by the next turn, which begins a new session, and never overwritten.
func TestDamagedFile(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	for i, text := range []string{"{", "\x00\x00", `{"session_id":"telegram_1"}`} {
		w.write(n, text)
		turn := w.begin(n, "hi")
		if got := turn.Messages(); len(got) > 0 {
			t.Errorf("%q: it reads %s", text, brief(got))
		}
		if err := turn.End(); err != nil {
			t.Error(err)
		}
		wantBrief(t, w.session(n).Messages, "user:hi")
		aside := w.path(n) + []string{".corrupted", ".corrupted-2", ".corrupted-3"}[i]
		if kept, err := os.ReadFile(aside); err != nil || string(kept) != text {
			t.Errorf("kept as %q, %v", kept, err)
		}
		if warned := w.warned(); len(warned) != i+1 || !strings.Contains(warned[i], aside) {
			t.Errorf("warned %q", warned)
		}
	}
}

// TestLoad: damaged files are set aside, also those with other faults than JSON has; the rest is loaded, and a session in a turn is
// left alone.
func TestLoad(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.say(name(t, "irc", numbered("%d", i)), "hi", "hello")
	}
	role, late, busy := name(t, "irc", "role"), name(t, "irc", "other"), name(t, "irc", "busy")
	w.write(role, strings.NewReplacer("irc_0", "irc_role", `"0"`, `"role"`, `"assistant"`, `"robot"`).Replace(w.text(name(t, "irc", "0"))))
	w.write(late, w.text(name(t, "irc", "1"))) // of another session
	w.write(busy, "{")
	w.write(name(t, "irc", "x"), "")
	for _, other := range []string{"Other.json", "irc_1", ".irc_1.json.tmp-123", "irc_%2f.json", "irc_9.json.corrupted"} {
		if err := os.WriteFile(filepath.Join(w.book.Home.Channels(), other), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := lock.Try(w.book.Home.ConversationLock(busy.Key()))
	if err != nil {
		t.Fatal(err)
	}
	w.book.Cache = &Cache{}
	l, err := w.book.Load(t.Context())
	if err != nil || l.String() != "20 channel sessions loaded, 3 damaged files set aside" {
		t.Errorf("%s, %v", l, err)
	}
	held.Release()
	for n, aside := range map[Name]bool{role: true, late: true, busy: false} {
		_, err := os.Lstat(w.path(n) + ".corrupted")
		if gone := errors.Is(err, fs.ErrNotExist); gone == aside {
			t.Errorf("%s: set aside: %v", n, !gone)
		}
	}
	if got := w.warned(); len(got) != 3 || !strings.Contains(strings.Join(got, "\n"), `unknown role "robot"`) {
		t.Errorf("warned %q", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.book.Cache = &Cache{}
	if l, err := w.book.Load(ended); l.Sessions != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %s, %v", l, err)
	}
}

// TestChangedOnDisk: a turn reads what another process has written meanwhile, and the cache alone if nothing has changed.
func TestChangedOnDisk(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	w.say(n, "one", "1")
	other := w.book
	other.Cache = &Cache{}
	if err := inTurn(t.Context(), other, n, func(turn *Turn) error {
		turn.Begin(t.Context(), "two", start)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.say(n, "three", "3")
	wantBrief(t, w.session(n).Messages, "user:one assistant:1 user:two user:three assistant:3")
	if err := w.book.Remove(n); err != nil {
		t.Fatal(err)
	}
	w.say(n, "four", "4")
	wantBrief(t, w.session(n).Messages, "user:four assistant:4")
}

// TestFailedSave: the turn goes on, a warning is given once, and saving is tried again every 30 seconds.
func TestFailedSave(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := telegram(t)
		w.say(n, "one", "1")
		restore := w.obstruct()
		turn := w.begin(n, "two")
		turn.Answer("2")
		time.Sleep(3 * saveEvery)
		synctest.Wait()
		if got := w.warned(); len(got) != 1 || !strings.Contains(got[0], "saving it is tried again") {
			t.Errorf("warned %q", got)
		}
		restore()
		time.Sleep(saveEvery)
		synctest.Wait()
		wantBrief(t, w.session(n).Messages, "user:one assistant:1 user:two assistant:2")
		if err := turn.End(); err != nil {
			t.Error(err)
		}
	})
}

// TestUnsaved: what could not be saved at the end of a turn is saved by Persist, or by the next turn, also beside what another process
// has written meanwhile.
func TestUnsaved(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	fail := func(w *world, n Name, text, answer string) {
		t.Helper()
		turn := w.begin(n, text)
		turn.Answer(answer)
		if err := turn.End(); !errors.As(err, new(*store.NotWritten)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for how, want := range map[string]string{
		"persist": "user:one assistant:1 user:two assistant:2 user:three assistant:3",
		"turn":    "user:one assistant:1 user:two assistant:2 user:three assistant:3 user:four assistant:4",
		"other":   "user:one assistant:1 user:else user:two assistant:2 user:three assistant:3",
		"removed": "user:two assistant:2 user:three assistant:3",
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				n := telegram(t)
				w.say(n, "one", "1")
				restore := w.obstruct()
				fail(w, n, "two", "2")
				fail(w, n, "three", "3")
				if got := len(w.book.Cache.waiting()); got != 1 {
					t.Errorf("%d sessions are unsaved", got)
				}
				ctx, end := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { w.book.Persist(ctx) })
				time.Sleep(saveEvery)
				synctest.Wait() // in vain
				restore()
				other := w.book
				other.Cache = nil
				switch how {
				case "turn":
					w.say(n, "four", "4")
				case "other":
					if err := inTurn(t.Context(), other, n, func(turn *Turn) error {
						turn.Begin(t.Context(), "else", start)
						return nil
					}); err != nil {
						t.Error(err)
					}
				case "removed":
					if err := other.Remove(n); err != nil {
						t.Error(err)
					}
				}
				if how == "persist" {
					time.Sleep(saveEvery)
					synctest.Wait()
				}
				end()
				running.Wait()
				wantBrief(t, w.session(n).Messages, want)
				if got := len(w.book.Cache.waiting()); got != 0 {
					t.Errorf("%d sessions are unsaved", got)
				}
			})
		})
	}
}

// TestUnsavedRest: of a turn that was saved in part before the disk failed, each message is there once it is saved, beside those of
// another process.
func TestUnsavedRest(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := telegram(t)
		turn := w.begin(n, "one")
		turn.Answer("half")
		time.Sleep(saveEvery)
		synctest.Wait()
		turn.Call(ToolCall{ID: "a", Name: "look"})
		restore := w.obstruct()
		turn.Result("a", "seen", false)
		turn.Answer("whole")
		if err := turn.End(); err == nil {
			t.Error("it was saved")
		}
		restore()
		other := w.book
		other.Cache = nil
		if err := inTurn(t.Context(), other, n, func(turn *Turn) error {
			turn.Begin(t.Context(), "else", start)
			return nil
		}); err != nil {
			t.Error(err)
		}
		w.say(n, "two", "2")
		wantBrief(t, w.session(n).Messages,
			"user:one assistant:half user:else assistant:half+look tool_result:seen assistant:whole user:two assistant:2")
	})
}

// TestSavedAtTheEndOfTheContext: a signal saves the session at once, while the engine is still stopping.
func TestSavedAtTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := telegram(t)
		ctx, stop := context.WithCancel(t.Context())
		turn, err := w.book.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		turn.Begin(ctx, "go", start)
		turn.Answer("half")
		stop()
		synctest.Wait()
		wantBrief(t, w.session(n).Messages, "user:go assistant:half")
		turn.Answer("more")
		time.Sleep(saveEvery)
		synctest.Wait()
		wantBrief(t, w.session(n).Messages, "user:go assistant:half\nmore")
		if err := turn.End(); err != nil {
			t.Error(err)
		}
	})
}

// TestExpiry: an access keeps a session for 30 days more; one in a turn never goes.
func TestExpiry(t *testing.T) {
	w := newWorld(t)
	old, used, busy, damaged := name(t, "irc", "old"), name(t, "irc", "used"), name(t, "irc", "busy"), name(t, "irc", "damaged")
	for _, n := range []Name{old, used, busy} {
		w.say(n, "hi", "hello")
	}
	w.write(damaged, "{")
	w.pass(life - time.Minute)
	w.begin(used, "still there?")
	if removed, err := w.book.Expire(w.clock()); removed != 0 || err != nil {
		t.Errorf("%d removed too early, %v", removed, err)
	}
	w.pass(time.Hour)
	held, err := lock.TryGuard(w.book.Home.ConversationLock(busy.Key()))
	if err != nil {
		t.Fatal(err)
	}
	removed, err := w.book.Expire(w.clock())
	if left, _ := w.book.Names(); removed != 1 || err != nil || len(left) != 3 {
		t.Errorf("%d removed, %v; %v are left", removed, err, left)
	}
	if _, err := os.Lstat(w.book.Home.ConversationLock(old.Key())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its lock: %v", err)
	}
	held.Release()
	if removed, err := w.book.Expire(w.clock()); removed != 1 || err != nil {
		t.Errorf("%d removed after the turn, %v", removed, err)
	}
}

func TestRemove(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	if err := w.book.Remove(n); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a session: %v", err)
	}
	w.say(n, "hi", "hello")
	held, err := lock.TryGuard(w.book.Home.ConversationLock(n.Key()))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.book.Remove(n); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("in a turn: %v", err)
	}
	held.Release()
	if err := w.book.Remove(n); err != nil {
		t.Error(err)
	}
	if got := w.begin(n, "who am I?").Messages(); len(got) > 0 {
		t.Errorf("it still reads %s", brief(got))
	}
}

// TestConcurrentTurns: of turns of one process and of others, each with a cache of its own, none loses a message of another, and each
// turn reads all before it.
func TestConcurrentTurns(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	other := w.book
	other.Cache, other.Disk.Locks = &Cache{}, &lock.Table{}
	var all sync.WaitGroup
	for i := range 20 {
		book := []Book{w.book, other}[i%2]
		all.Go(func() {
			err := inTurn(t.Context(), book, n, func(turn *Turn) error {
				before := len(turn.Messages())
				turn.Begin(t.Context(), numbered("%d", before), start)
				turn.Answer("yes")
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := w.session(n)
	for i, m := range s.Messages {
		if want := numbered("%d", i); i%2 == 0 && m.Content != want {
			t.Errorf("message %d read %s messages", i, m.Content)
		}
	}
	if len(s.Messages) != 40 {
		t.Errorf("%d messages", len(s.Messages))
	}
}
