package update

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// noon is when every test begins.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func paris(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// world is a box with a clock that moves one second per look, runs that have started, and warnings.
type world struct {
	Box
	t       testing.TB
	now     time.Time
	step    time.Duration
	started map[string]bool
	warned  []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldAt(t, t.TempDir())
}

func worldAt(t testing.TB, dir string) *world {
	w := &world{t: t, now: noon(), step: time.Second, started: map[string]bool{}}
	w.Box = Box{
		Home: paths.Dir(dir),
		Disk: store.Disk{
			Now:  func() time.Time { w.now = w.now.Add(w.step); return w.now },
			Warn: func(m string) { w.warned = append(w.warned, m) },
		},
		Zone:    paris(t),
		Started: func(run string) bool { return w.started[run] },
	}
	w.Ledger = ledgerOf(w.Box)
	return w
}

func ledgerOf(b Box) *ledger.Ledger { return ledger.New(b.Home, b.Disk, Facts()) }

func (w *world) add(messages ...string) {
	w.t.Helper()
	for _, m := range messages {
		if err := w.Add(context.Background(), m, "run-of-"+m); err != nil {
			w.t.Fatalf("Add(%q): %v", m, err)
		}
	}
}

// addN adds from, from+1, … to.
func (w *world) addN(from, to int) {
	w.t.Helper()
	for i := from; i <= to; i++ {
		w.add(fmt.Sprint(i))
	}
}

func (w *world) pop(owner Owner) *Claim {
	w.t.Helper()
	c, err := w.Pop(context.Background(), owner)
	if err != nil {
		w.t.Fatalf("Pop: %v", err)
	}
	return c
}

func (w *world) deliver(c *Claim) {
	w.t.Helper()
	if err := c.Deliver(context.Background()); err != nil {
		w.t.Fatalf("Deliver: %v", err)
	}
}

func (w *world) giveBack(c *Claim) {
	w.t.Helper()
	if err := c.Return(context.Background()); err != nil {
		w.t.Fatalf("Return: %v", err)
	}
}

// crash leaves a claim as the death of its process would.
func (w *world) crash(c *Claim) { c.held.Release() }

// peek is the messages that wait, in short: "(3) a b".
func (w *world) peek() string {
	w.t.Helper()
	list, err := w.Peek(context.Background())
	if err != nil {
		w.t.Fatalf("Peek: %v", err)
	}
	return brief(list)
}

func (w *world) expect(want string) {
	w.t.Helper()
	if got := w.peek(); got != want {
		w.t.Fatalf("the box holds %q, want %q", got, want)
	}
}

func brief(list []Update) string {
	var words []string
	for i, u := range list {
		word := u.Message
		if n, ok := sentinelCount(word); ok && i == 0 {
			word = fmt.Sprintf("(%d)", n)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// fates is what became of updates as "message became to", with the count of sentinels.
func (w *world) fates() (list []string) {
	w.t.Helper()
	for f, err := range w.Fates(time.Time{}) {
		if err != nil {
			w.t.Fatalf("Fates: %v", err)
		}
		word := f.Message
		if f.Omitted > 0 {
			word = fmt.Sprintf("(%d)", f.Omitted)
		}
		list = append(list, strings.TrimSpace(word+" "+f.Became+" "+f.To))
	}
	return list
}

func (w *world) expectFates(want ...string) {
	w.t.Helper()
	if got := w.fates(); !slices.Equal(got, want) {
		w.t.Fatalf("archive\n got %q\nwant %q", got, want)
	}
}

// claims lists the claims that are not settled.
func (w *world) claims() []claimed {
	w.t.Helper()
	list, err := w.unsettled()
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (b Box) unsettled() (list []claimed, err error) {
	err = b.Ledger.Read(func(v ledger.View) error {
		q, err := ledger.Of(v, Facts())
		if err == nil {
			list = slices.Clone(q.Claims)
		}
		return err
	})
	return list, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (w *world) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) put(path, content string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// guard holds the main session's lock for a run.
func (w *world) guard() *lock.Guard {
	w.t.Helper()
	g, err := lock.TryGuard(w.Home.SessionLock(""))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(g.Release)
	return g
}

// disk is every file of the data directory but the locks, with its content.
type disk map[string]string

func (w *world) snapshot() disk {
	w.t.Helper()
	d := disk{}
	err := filepath.WalkDir(string(w.Home), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Dir(path) == w.Home.Locks() {
			return err
		}
		if text := w.read(path); text != "" { // an empty file of the ledger says nothing
			d[path] = text
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) restoreDisk(d disk) {
	w.t.Helper()
	for path := range w.snapshot() {
		if err := os.Remove(path); err != nil {
			w.t.Fatal(err)
		}
	}
	for path, content := range d {
		w.put(path, content)
	}
	w.Ledger = ledgerOf(w.Box) // of another process
}

// with is the disk where a file has another content; without, where it is not there.
func (d disk) with(path, content string) disk {
	d = maps.Clone(d)
	d[path] = content
	return d
}

func (d disk) without(path string) disk {
	d = maps.Clone(d)
	delete(d, path)
	return d
}
