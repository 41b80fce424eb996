package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// command is the real binary, built once, over a data directory of its own.
type command struct {
	t    testing.TB
	path string
	data string
	env  []string // besides
}

func newCommand(t testing.TB) *command {
	t.Helper()
	c := &command{t: t, path: program, data: t.TempDir()}
	c.ok("init", "--timezone", "America/New_York")
	return c
}

func (c *command) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(c.path, args...)
	cmd.Env = []string{"OLLIM_DATA_DIR=" + c.data, "HOME=" + c.data, "PATH=/usr/bin:/bin", "OLLIM_QUIET=none"} // at any hour of the day
	cmd.Env = append(cmd.Env, c.env...)
	return cmd
}

func (c *command) ok(args ...string) string {
	c.t.Helper()
	var errOut bytes.Buffer
	cmd := c.cmd(args...)
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("ollim %s: %v: %s", strings.Join(args, " "), err, errOut.String())
	}
	return string(out)
}

func (c *command) write(name, text string) {
	c.t.Helper()
	if err := testkit.WriteFile(filepath.Join(c.data, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func status(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -2
	}
	return 0
}

// killAfter starts cmd and kills it after d; it returns the exit status, -1 when the kill came in time.
func killAfter(cmd *exec.Cmd, d time.Duration) int {
	if err := cmd.Start(); err != nil {
		return -2
	}
	timer := time.AfterFunc(d, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	return status(cmd.Wait())
}

type update struct {
	Message string `json:"message"`
	Became  string `json:"became"`
	Omitted int    `json:"omitted"`
}

func decodeLines(t testing.TB, text string) (list []update) {
	t.Helper()
	for line := range strings.Lines(text) {
		var u update
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, u)
	}
	return list
}

func omitted(message string) (n int) {
	_, _ = fmt.Sscanf(message, "(%d earlier update(s) omitted", &n)
	return n
}

// TestNoUpdateIsLostOrDoubled lets 16 writers add 20 updates each while readers pop, a third of them killed with -9 at
// random moments. What was delivered, what remains and what the sentinels count must be exactly what was added.
func TestNoUpdateIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	writers, each := testkit.Full(16, 8), rounds(t, 20)
	c := newCommand(t)
	stop := make(chan struct{})
	popped, killed := c.popUntil(stop)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				add := func() *exec.Cmd { return c.cmd("updates", "add", fmt.Sprintf("message %d-%d", w, i)) }
				err, end := add().Run(), time.Now().Add(patience)
				for busy := (*exec.ExitError)(nil); errors.As(err, &busy) && busy.ExitCode() == 75 && time.Now().Before(end); { // locked by others for long
					err = add().Run()
				}
				if err != nil {
					t.Errorf("add: %v", err)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	printed := popped()
	t.Logf("%d readers killed", *killed)
	if *killed == 0 {
		t.Error("no reader was killed in time")
	}
	c.accountFor(writers*each, printed)
}

// popUntil runs readers until stop is closed. The function returns what readers that lived have printed.
func (c *command) popUntil(stop chan struct{}) (printed func() []update, killed *int) {
	var mu sync.Mutex
	var reading sync.WaitGroup
	var out []update
	killed = new(int)
	for seed := range 3 {
		random := rand.New(rand.NewSource(int64(seed)))
		reading.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				var text bytes.Buffer
				cmd := c.cmd("updates", "pop", "--json")
				cmd.Stdout = &text
				limit := time.Minute
				if n%3 == 0 {
					limit = time.Duration(random.Intn(12_000)) * time.Microsecond
				}
				code := killAfter(cmd, limit)
				mu.Lock()
				switch code {
				case 0:
					out = append(out, decodeLines(c.t, text.String())...)
				case -1:
					*killed++
				default:
					c.t.Errorf("pop: exit %d", code)
				}
				mu.Unlock()
			}
		})
	}
	return func() []update { reading.Wait(); return out }, killed
}

func (c *command) accountFor(added int, printed []update) {
	t := c.t
	t.Helper()
	fate := map[string]string{}
	total, dropped := 0, 0
	note := func(message, became string) {
		if n := omitted(message); n > 0 {
			if became != "dropped" {
				dropped -= n
			}
			return
		}
		if before, twice := fate[message]; twice {
			t.Errorf("%q: %s and %s", message, before, became)
		}
		fate[message] = became
		total++
		if became == "dropped" {
			dropped++
		}
	}
	for _, u := range decodeLines(t, c.ok("updates", "list", "--all", "--json")) {
		note(u.Message, u.Became)
	}
	if total != added {
		t.Errorf("%d updates accounted for, %d were added", total, added)
	}
	if dropped != 0 {
		t.Errorf("dropped updates and the counts of sentinels differ by %d", dropped)
	}
	for _, u := range printed {
		if omitted(u.Message) == 0 && fate[u.Message] != "popped" {
			t.Errorf("%q was printed by a pop that exited 0, but is %q", u.Message, fate[u.Message])
		}
	}
	t.Logf("%d added, %d printed by readers that lived", added, len(printed))
}

const stressRoutine = `---
id: stress
cron: "0 9 * * *"
background: true
session: persistent
update-main-session: freely
engine: script:stress.yaml
---
Go.
`

const stressScript = `turns:
  - - text: one
    - tool: report_updates
      input: {message: "reported"}
    - tool: ping_user
      input: {message: "pinged"}
    - delay: 3ms
    - tool: compact_session
      input: {instructions: "keep all"}
    - text: done
`

// TestTwoFiresAtOnce: exactly one runs, the other is told to come back later.
func TestTwoFiresAtOnce(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.write("routines/stress.md", stressRoutine)
	hold := filepath.Join(c.data, "hold")
	c.write("stress.yaml", "turns:\n  - - text: one\n    - touch: "+hold+"\n")
	if err := syscall.Mkfifo(hold, 0o600); err != nil {
		t.Fatal(err)
	}
	for round := range 5 {
		codes := make(chan int, 2)
		for range 2 {
			go func() { codes <- status(c.cmd("fire", "stress").Run()) }()
		}
		select {
		case code := <-codes:
			if code != 75 {
				t.Errorf("round %d: exit status %d of the first to end, want 75", round, code)
			}
		case <-time.After(patience):
			_, _ = os.ReadFile(hold)
			t.Fatalf("round %d: both run", round)
		}
		if _, err := os.ReadFile(hold); err != nil { // the other may go on
			t.Fatal(err)
		}
		if code := <-codes; code != 0 {
			t.Fatalf("round %d: exit status %d of the other, want 0", round, code)
		}
	}
}

// TestKillDuringFire kills a fire with -9 at random moments. After each the state parses, no session is lost once it
// is known, and the next fire works.
func TestKillDuringFire(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 20)
	c := newCommand(t)
	c.write("routines/stress.md", stressRoutine)
	c.write("stress.yaml", stressScript)
	c.ok("config", "set", "delivery.command", "/bin/sh", "-c", "cat >> delivered.txt")
	random := rand.New(rand.NewSource(1))
	killed := 0
	for range rounds {
		before := c.session()
		if killAfter(c.cmd("fire", "stress"), time.Duration(random.Intn(25_000))*time.Microsecond) == -1 {
			killed++
		}
		c.stateParses()
		if after := c.session(); before != "" && after == "" {
			t.Fatalf("the session %s is lost", before)
		}
		c.unlocked("stress")
		c.ok("fire", "stress")
		if c.session() == "" {
			t.Fatal("no session after a fire")
		}
	}
	t.Logf("%d of %d fires were killed in time", killed, rounds)
	if killed < rounds/4 {
		t.Errorf("only %d of %d fires were killed in time", killed, rounds)
	}
	c.everyRunEnded()
}

func (c *command) session() string {
	id, err := os.ReadFile(filepath.Join(c.data, "state/routine_sessions/stress"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(id))
}

// stateParses reads every file under state/: JSON whole, JSON lines with at most a torn last one.
func (c *command) stateParses() {
	c.t.Helper()
	err := filepath.WalkDir(filepath.Join(c.data, "state"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(filepath.Base(path), ".") {
			return err
		}
		if strings.Contains(path, ".corrupt-") {
			c.t.Errorf("%s: something was found corrupt", path)
		}
		text, readErr := os.ReadFile(path)
		switch filepath.Ext(path) {
		case ".json":
			if filepath.Base(path) != "sessions.json" && !json.Valid(text) {
				c.t.Errorf("%s: %q does not parse", path, text)
			}
			return readErr
		case ".jsonl":
			lines := strings.SplitAfter(string(text), "\n")
			for _, line := range lines[:len(lines)-1] {
				if strings.TrimSpace(line) != "" && !json.Valid([]byte(line)) {
					c.t.Errorf("%s: a line that does not parse: %q", path, line)
				}
			}
			return readErr
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
}

// everyRunEnded: each record says how its run ended, those of killed fires included.
func (c *command) everyRunEnded() {
	c.t.Helper()
	outcomes := map[string]int{}
	for line := range strings.Lines(c.ok("run", "list", "-n", "0", "--json")) {
		var r struct{ ID, Outcome string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			c.t.Fatal(err)
		}
		outcomes[r.Outcome]++
	}
	c.t.Log(outcomes)
	for outcome := range outcomes {
		if outcome != "ok" && outcome != "interrupted" {
			c.t.Errorf("outcome %q", outcome)
		}
	}
}
