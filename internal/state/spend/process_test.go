package spend

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// family are the limits of the processes: five cents are left over when everybody takes ten.
var family = Limits{0.1, 2.05, 50, 500}

func processBook(args []string) Book {
	return bookAt(args[0], func(m string) { fmt.Fprintln(os.Stderr, m) })
}

// keep spends all it can and settles nothing.
func keep(args []string) error {
	return processBook(args).spendAll(args[1], func(string, float64) error { return nil })
}

// settle spends all it can and settles each run at a third of what it was granted.
func settle(args []string) error {
	b := processBook(args)
	return b.spendAll(args[1], func(run string, granted float64) error { return b.Settle(ctx, run, min(0.03, granted)) })
}

// nobody is the uid of an owner without write permission.
func nobody(args []string) error {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	b := processBook(args)
	return b.tryAll(b.Disk.Now())
}

// spendAll takes all it can get and prints it. It continues while other processes hold reservations that they may give back.
func (b Book) spendAll(name string, then func(run string, granted float64) error) error {
	refused := 0
	for i := 0; ; i++ {
		run := fmt.Sprintf("%s-%d", name, i)
		grant, err := b.Reserve(ctx, Claim{Run: run}, nil)
		granted := grant.Reserved
		var limit *Limit
		if errors.As(err, &limit) {
			if refused++; !limit.Passing || refused > 20 {
				return nil
			}
			time.Sleep(2 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println(granted)
		if err := then(run, granted); err != nil {
			return err
		}
	}
}

// tryAll prints what an owner can do.
func (b Book) tryAll(now time.Time) error {
	_, err := b.Reserve(ctx, Claim{Run: "b", Force: true}, nil)
	totals, terr := b.Totals()
	paused, _, perr := b.Paused()
	fmt.Println(err != nil, b.Settle(ctx, "a", 1) != nil, b.Pause(ctx, now.Add(1)) != nil, b.Resume(ctx) != nil, totals.Today, terr, paused, perr)
	return nil
}

func TestManyProcesses(t *testing.T) {
	for part, want := range map[string]string{"keep": "{0 2}", "settle": "{2.05 0}"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var mu sync.Mutex
			var group sync.WaitGroup
			total, grants := money(0), 0
			for i := range 16 {
				group.Go(func() {
					out, err := testkit.Child(t, part, dir, fmt.Sprint("p", i)).Output()
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					for line := range bytes.Lines(out) {
						var granted float64
						_, err := fmt.Sscan(string(line), &granted)
						if err != nil {
							t.Error(err)
						}
						total += known(granted, 0)
						grants++
					}
				})
			}
			group.Wait()
			d := deskAt(t, dir, "UTC", family)
			got, err := d.Totals()
			if err != nil {
				t.Fatal(err)
			}
			if part == "keep" && (total.usd() != 2 || grants != 20) {
				t.Errorf("%d grants of %v USD in all", grants, total.usd())
			}
			if s := fmt.Sprint(got.Today); s != want || got.Runs != grants {
				t.Errorf("got %s after %d grants, want %s after %d", s, got.Runs, want, grants)
			}
		})
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	d := deskAt(t, dir, "UTC", family)
	d.reserve("a", 0, 0.1)
	if err := d.Pause(ctx, time.Time{}); err != nil {
		t.Fatal(err)
	}
	before := d.file()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the child must get there
		t.Fatal(err)
	}
	mode := func(dirs, files os.FileMode) {
		_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if e.IsDir() {
				return errors.Join(err, os.Chmod(path, dirs))
			}
			return errors.Join(err, os.Chmod(path, files))
		})
	}
	mode(0o555, 0o444)
	t.Cleanup(func() { mode(0o700, 0o600) })
	out, err := testkit.Child(t, "nobody", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(out)), "true true true true {0 0.1} <nil> true <nil>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if d.file() != before {
		t.Error("changed")
	}
}
