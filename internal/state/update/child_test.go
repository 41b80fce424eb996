package update

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) {
	as := func(play func(player) error) func([]string) error {
		return func(args []string) error { return play(player{realBox(args[0]), args[1]}) }
	}
	testkit.Main(m, map[string]func([]string) error{
		"adder":  as(player.addMany),
		"run":    as(func(p player) error { return p.readAs(p.turn) }),
		"person": as(func(p player) error { return p.readAs(p.person) }),
		"nobody": as(player.withoutRights),
		"full":   as(player.withoutSpace),
	})
}

// withoutRights is an owner without the right to write.
func (p player) withoutRights() error {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	return p.tryAll()
}

// withoutSpace has a disk on which no file may grow beyond as many bytes as its name says.
func (p player) withoutSpace() error {
	var limit uint64
	if _, err := fmt.Sscan(p.name, &limit); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	return p.tryAll()
}

// realBox has a real clock; a run has started when its file is there.
func realBox(dir string) Box {
	b := Box{
		Home: paths.Dir(dir),
		Disk: store.Disk{Now: time.Now, Warn: func(m string) { fmt.Fprintln(os.Stderr, "warning:", m) }},
		Zone: time.UTC,
		Started: func(run string) bool {
			return exists(startedPath(dir, run))
		},
	}
	b.Ledger = ledgerOf(b)
	return b
}

func startedPath(dir, run string) string { return filepath.Join(dir, "started", run) }

// player is one child process. What it has seen succeed it notes in files of its own, which outlive it.
type player struct {
	Box
	name string
}

// note writes lines to a file in one go, so that it is there whole or not at all.
func (p player) note(path string, list []Update) error {
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return store.Create(path, data)
}

const addsPerChild = 50

func (p player) addMany() error {
	acks, err := os.OpenFile(p.Home.Path("acks", p.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for i := range addsPerChild {
		message := fmt.Sprintf("%s-%d", p.name, i)
		if err := p.Add(context.Background(), message, p.name); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(acks, message); err != nil {
			return err
		}
	}
	return nil
}

// readAs pops until the parent says stop.
func (p player) readAs(once func(n int) error) error {
	for n := 0; ; n++ {
		if exists(p.Home.Path("stop")) {
			return nil
		}
		if err := once(n); err != nil {
			return err
		}
		time.Sleep(rand.N(8 * time.Millisecond))
	}
}

// turn is a turn of the main conversation: it takes the session lock, pops, and starts, fails or gives up.
func (p player) turn(n int) error {
	guard, err := p.Disk.Locks.WaitGuard(context.Background(), p.Home.SessionLock(""))
	if err != nil {
		return err
	}
	defer guard.Release()
	run := fmt.Sprintf("%s.%d", p.name, n)
	c, err := p.Pop(context.Background(), Owner{Run: run, Lock: guard.File().Name()})
	if err != nil || len(c.Updates) == 0 {
		return err
	}
	switch rand.N(6) {
	case 0:
		return c.Return(context.Background())
	case 1:
		return nil // forgets it
	}
	if err := p.note(startedPath(string(p.Home), run), c.Updates); err != nil {
		return err
	}
	return c.Deliver(context.Background())
}

func (p player) person(n int) error {
	c, err := p.Pop(context.Background(), Owner{})
	if err != nil || len(c.Updates) == 0 {
		return err
	}
	switch rand.N(6) {
	case 0:
		return c.Return(context.Background())
	case 1:
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if err := c.Deliver(context.Background()); err != nil {
		return err
	}
	return p.note(p.Home.Path("read", fmt.Sprintf("%s.%d", p.name, n)), c.Updates)
}

// tryAll prints the result of each act without write permission: a line "act: result" each.
func (p player) tryAll() error {
	ctx := context.Background()
	list, err := p.Peek(ctx)
	fmt.Printf("peek: %s%s\n", brief(list), kind(err))
	c, err := p.Pop(ctx, Owner{Run: "r"})
	fmt.Printf("pop: %s\n", kind(err))
	if err == nil && len(c.Updates) > 0 {
		fmt.Printf("deliver: %s\n", kind(c.Deliver(ctx)))
		fmt.Printf("return: %s\n", kind(c.Return(ctx)))
	}
	fmt.Printf("add: %s\n", kind(p.Add(ctx, "new", "r")))
	_, err = p.Clear(ctx, "r")
	fmt.Printf("clear: %s\n", kind(err))
	return nil
}

func kind(err error) string {
	var notWritten *store.NotWritten
	var notLocked *lock.Failed
	switch {
	case err == nil:
		return ""
	case errors.As(err, &notWritten):
		return "not written"
	case errors.As(err, &notLocked):
		return "not locked"
	}
	return err.Error()
}
