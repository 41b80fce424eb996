package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// strace runs a command line under strace with further options, and returns what it printed, its exit status and the trace.
func (c *command) strace(options []string, args ...string) (out string, code int, trace string) {
	c.t.Helper()
	path := testkit.Program(c.t, "strace", "strace")
	log := filepath.Join(c.t.TempDir(), "trace")
	cmd := c.cmd()
	cmd.Path, cmd.Args = path, slices.Concat([]string{path, "-f", "-y", "-qq", "-s", "8", "-o", log}, options, []string{c.path}, args)
	text, runErr := cmd.CombinedOutput()
	traced, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(text), "PTRACE") {
		testkit.Missing(c.t, "strace may not trace here (allow ptrace): %v %s", err, text)
	}
	return string(text), status(runErr), string(traced)
}

var (
	traced  = regexp.MustCompile(`^\d+ +(write|fsync|linkat|unlinkat|renameat|execve)\((.*)`)
	opened  = regexp.MustCompile(`^\d+<([^>]*)>`)
	quoted  = regexp.MustCompile(`"(/[^"]*)"`)
	varying = regexp.MustCompile(`\d{8}T\d{6}[.\d]*Z-[0-9A-Za-z]+(\.\d+)?|\.tmp-\d+`)
)

// steps is what a command line did to files, in short: "fsync outbox", "linkat .ID.new ID.jsonl", "execve sh". Of a path its last
// element is left, with ID or .tmp in place of what differs each time.
func (c *command) steps(args ...string) (steps []string) {
	c.t.Helper()
	_, _, trace := c.strace([]string{"-e", "trace=write,fsync,linkat,unlinkat,renameat,execve"}, args...)
	short := func(path string) string {
		return varying.ReplaceAllStringFunc(filepath.Base(path), func(s string) string {
			if s[0] == '.' {
				return ".tmp"
			}
			return "ID"
		})
	}
	for line := range strings.Lines(trace) {
		m := traced.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		step := m[1]
		if file := opened.FindStringSubmatch(m[2]); file != nil && m[1] != "execve" {
			step += " " + short(file[1])
			if strings.HasPrefix(m[2], "1<") {
				step = "write stdout"
			}
		}
		paths := quoted.FindAllStringSubmatch(m[2], -1)
		if m[1] == "execve" || m[1] == "write" || m[1] == "fsync" {
			paths = paths[:min(len(paths), 1)]
		}
		if m[1] != "write" {
			for _, path := range paths {
				step += " " + short(path[1])
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// inOrder wants the steps among those that were made, in this order.
func inOrder(t *testing.T, name string, made []string, want ...string) {
	t.Helper()
	at := 0
	for _, step := range made {
		if at < len(want) && step == want[at] {
			at++
		}
	}
	if at < len(want) {
		t.Errorf("%s: no %q after %q in\n%s", name, want[at], want[:at], strings.Join(made, "\n"))
	}
}

// TestOutboxIsSynced: a message and its number are on disk before the delivery command starts, the removal of one that was sent and
// the reason of one that was not are too before the command line ends, and so is what a killed sender had left to do.
func TestOutboxIsSynced(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.ok("config", "set", "delivery.command", "/bin/cat")
	entered := []string{"write .ID.new", "fsync .ID.new", "linkat .ID.new ID.jsonl", "unlinkat .ID.new", "fsync outbox", "execve cat"}
	inOrder(t, "sent", c.steps("ping", "hello"), append(entered, "unlinkat ID.jsonl", "fsync outbox")...)
	c.write("answer.yaml", "turns:\n  - - text: yes\n")
	c.write("routines/answer.md", "---\nid: answer\ncron: \"0 9 * * *\"\nengine: script:answer.yaml\n---\nGo.\n")
	inOrder(t, "numbered", c.steps("fire", "answer"), append([]string{"write events.jsonl", "fsync events.jsonl"}, entered...)...)
	c.ok("config", "set", "delivery.command", "/bin/false")
	inOrder(t, "failed", c.steps("ping", "hello"), "execve false", "write ID.jsonl", "fsync ID.jsonl")

	left, err := filepath.Glob(filepath.Join(c.data, "state/outbox/*.jsonl"))
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	draft := filepath.Join(filepath.Dir(left[0]), "."+strings.TrimSuffix(filepath.Base(left[0]), ".jsonl")+".new")
	if err := os.Rename(left[0], draft); err != nil {
		t.Fatal(err)
	}
	inOrder(t, "a draft", c.steps("tick"), "linkat .ID.new ID.jsonl", "unlinkat .ID.new", "fsync outbox")
}

// ledgerFile returns the name of the file that the ledger is written to. At the end of the day it waits for the next one: the name changes at
// midnight UTC.
func ledgerFile() string {
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < 2*time.Minute {
		time.Sleep(left)
		now = now.Add(left)
	}
	return now.Format(time.DateOnly) + ".jsonl"
}

// TestUpdatesAreSynced: a first update is in the file before its fact is written, and on disk; what is popped is a fact before it leaves the
// file, and its use is on disk before the command ends. What a dead process took is back, on disk, before it is listed.
func TestUpdatesAreSynced(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	log := ledgerFile()
	shown := []string{"fsync .pending_updates.json.tmp", "renameat .pending_updates.json.tmp pending_updates.json"}
	fact := []string{"write " + log, "fsync " + log}
	inOrder(t, "first", c.steps("updates", "add", "one"), slices.Concat(shown, []string{"fsync state"}, fact)...)
	for range 9 {
		c.ok("updates", "add", "one")
	}
	inOrder(t, "add", c.steps("updates", "add", "eleven"), append(fact, shown[1])...)
	inOrder(t, "pop", c.steps("updates", "pop"), append([]string{"write " + log, "unlinkat pending_updates.json", "write stdout"}, fact...)...)
	c.ok("updates", "add", "one")
	cmd := c.cmd("updates", "pop", "--", "sh", "-c", "kill -9 $PPID; kill -9 $$")
	_ = cmd.Run()
	inOrder(t, "given back", c.steps("updates", "list"), slices.Concat(shown, []string{"fsync state"}, fact, []string{"write stdout"})...)
}

// TestRunIsSynced: the beginning of a run of a slot is a fact on disk before its gate starts, and its end before the record has it. A run
// by hand has only an end. Nothing else of them waits for the disk: what is reserved waits only for a second request.
func TestRunIsSynced(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	api := anthropicapi.New(t)
	echo(api)
	c.write("gates/open", "#!/bin/true\n")
	c.write("play.yaml", "turns:\n  - - text: well\n")
	if err := os.Chmod(filepath.Join(c.data, "gates/open"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("config", "set", "env", "ANTHROPIC_API_KEY=k")
	c.ok("config", "set", "native.base-url", api.URL())
	ids := map[string]string{}
	for _, engine := range []string{"script:play.yaml", "native"} {
		name := engine[:6]
		id := c.ok("routine", "add", name, "--cron", "* * * * *", "--background", "--gate", "open", "--engine", engine, "Go.")
		ids[name] = strings.TrimSpace(id)
		c.ok("fire", name) // what only the first run does is not counted
	}
	const never = "0 0 29 2 *" // else a fire by hand claims the slot of a minute that has just begun
	c.ok("routine", "add", "hand", "--cron", never, "--background", "--gate", "open", "--engine", "script:play.yaml", "Go.")
	c.ok("fire", "hand")
	log := ledgerFile()
	fact := []string{"write " + log, "fsync " + log}
	scheduled := func(engine string) []string {
		claims, err := filepath.Glob(filepath.Join(c.data, "state/slots", ids[engine], "*"))
		for _, path := range claims {
			err = errors.Join(err, os.Remove(path))
		}
		// the lock names the latest run: without it the fire does not look whether the ledger has a run of the slot
		err = errors.Join(err, os.Truncate(filepath.Join(c.data, "state/locks/job-"+ids[engine]+".lock"), 0))
		if err != nil || len(claims) == 0 {
			t.Fatal(claims, err)
		}
		return c.steps("fire", "--scheduled", ids[engine])
	}
	byHand := slices.Concat([]string{"execve open"}, fact, []string{"renameat .run.json.tmp run.json"})
	ofSlot := slices.Concat(fact, byHand)
	for name, test := range map[string]struct {
		steps, want []string
		waits       int
	}{
		"by hand":   {c.steps("fire", "hand"), byHand, 1},
		"of a slot": {scheduled("script"), ofSlot, 2},
		"native":    {scheduled("native"), ofSlot, 4}, // and the name of the session's file, and the answer
	} {
		waits := 0
		for _, step := range test.steps {
			if strings.HasPrefix(step, "fsync ") && !strings.Contains(step, "session_history") {
				waits++
			}
		}
		if inOrder(t, name, test.steps, test.want...); waits != test.waits {
			t.Errorf("%s: it waits %d times, not %d:\n%s", name, waits, test.waits, strings.Join(test.steps, "\n"))
		}
	}
}

// TestSessionNameIsSynced: the name of a new session's file is on disk before its first answer is written, and is not written there again
// when the session goes on.
func TestSessionNameIsSynced(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	api := anthropicapi.New(t)
	echo(api)
	c.ok("config", "set", "env", "ANTHROPIC_API_KEY=k")
	c.ok("config", "set", "native.base-url", api.URL())
	c.ok("config", "set", "engine", "native")
	session := regexp.MustCompile(`\S+_n-[0-9a-f]+\.jsonl`)
	folder := "fsync --" + strings.Trim(strings.NewReplacer("/", "-", ".", "-").Replace(c.data), "-") + "--"
	for _, want := range [][]string{{folder, "write SESSION", "fsync SESSION"}, {"write SESSION", "fsync SESSION"}} {
		var steps []string
		for _, step := range c.steps("chat", "hello") {
			if step = session.ReplaceAllString(step, "SESSION"); strings.HasPrefix(step, "fsync --") || strings.HasSuffix(step, " SESSION") {
				steps = append(steps, step)
			}
		}
		if n := len(steps) - len(want); n < 0 || !slices.Equal(steps[n:], want) || slices.Contains(steps[:n], folder) {
			t.Errorf("%q, want at the end %q", steps, want)
		}
	}
}

// TestQueueIsSynced: a message is on disk, with its run, before the run begins. Its removal does not wait, because the record of the run is on
// disk; that of a message whose run failed does.
func TestQueueIsSynced(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.write("play.yaml", "turns:\n  - - text: well\n")
	c.ok("config", "set", "engine", "script:play.yaml")
	message := regexp.MustCompile(`\d{9}-[0-9a-f]{6}`)
	chat := func() (steps []string, waits int) {
		for _, step := range c.steps("chat", "hello") {
			steps = append(steps, message.ReplaceAllString(step, "MESSAGE"))
			if step == "fsync queue" {
				waits++
			}
		}
		return steps, waits
	}
	log := ledgerFile()
	added := []string{
		"fsync .MESSAGE.json.tmp", "renameat .MESSAGE.json.tmp MESSAGE.json", "fsync queue",
		"renameat .run.json.tmp run.json", "write " + log, "fsync " + log, "renameat .run.json.tmp run.json", "unlinkat MESSAGE.json",
	}
	steps, waits := chat()
	if inOrder(t, "answered", steps, added...); waits != 1 {
		t.Errorf("it waits %d times for the queue:\n%s", waits, strings.Join(steps, "\n"))
	}
	c.write("play.yaml", "turns:\n  - - error: broken\n")
	steps, _ = chat()
	inOrder(t, "failed", steps, append(added, "fsync queue")...)
}

// TestSessionHistoryIsSynced: an event is on disk before the run goes on.
func TestSessionHistoryIsSynced(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.write("routines/stress.md", stressRoutine)
	c.write("stress.yaml", stressScript)
	event := []string{"write session_history.jsonl", "fsync session_history.jsonl"}
	inOrder(t, "history", c.steps("fire", "stress"), slices.Concat(
		[]string{"fsync .stress.tmp", "renameat .stress.tmp stress", "fsync routine_sessions"}, event, // the session begins
		event, []string{"fsync .stress.tmp", "renameat .stress.tmp stress", "fsync routine_sessions"})...) // and is compacted
}

// TestReservationIsSynced: a power failure hides one request of a run at most. Where the reservation cannot be synced, a first request goes
// out and a second one does not.
func TestReservationIsSynced(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Use("Glob", map[string]string{"pattern": "*.none"}), anthropicapi.Reply{Text: "done"})
	log := filepath.Join(c.data, "state/ledger", ledgerFile())
	out, code, trace := c.strace([]string{"-e", "trace=fsync", "-e", "inject=fsync:error=EIO", "-P", log}, "-p", "go")
	if n := len(api.Requests()); n != 1 || code == 0 || !strings.Contains(trace, "INJECTED") {
		t.Errorf("%d requests, exit status %d: %s", n, code, out)
	}
}

// TestReservationBeforeAnAgent: an agent that sends requests of its own is not started where the reservation cannot be synced.
func TestReservationBeforeAnAgent(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	started := filepath.Join(c.data, "started")
	c.write("config.yaml", "engine: acp:mine\ntimezone: UTC\nseal: 'off'\nacp:\n  mine:\n    command: [touch, "+started+"]\n    trusted: on\n")
	log := filepath.Join(c.data, "state/ledger", ledgerFile())
	out, code, trace := c.strace([]string{"-e", "trace=fsync", "-e", "inject=fsync:error=EIO", "-P", log}, "-p", "go")
	if _, err := os.Stat(started); !errors.Is(err, os.ErrNotExist) || code == 0 || !strings.Contains(trace, "INJECTED") {
		t.Errorf("started: %v, exit status %d: %s", err, code, out)
	}
	_ = c.cmd("-p", "go").Run() // touch is no agent
	if _, err := os.Stat(started); err != nil {
		t.Errorf("without a fault it is not started: %v", err)
	}
}

// TestSyncFails: a disk that fails fsync is an error that the caller sees, and nothing that depends on it goes on.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.ok("config", "set", "delivery.command", "/bin/sh", "-c", "cat > delivered")
	failing := func(file string, args ...string) (string, int) {
		t.Helper()
		out, code, trace := c.strace([]string{"-e", "trace=fsync", "-e", "inject=fsync:error=EIO", "-P", filepath.Join(c.data, file)}, args...)
		if code == 0 || !strings.Contains(out, "not written: input/output error") || !strings.Contains(trace, "INJECTED") {
			t.Errorf("fsync of %s fails: ollim %s: exit status %d: %s", file, strings.Join(args, " "), code, out)
		}
		return out, code
	}
	failing("state/outbox", "ping", "hello")
	if _, err := os.Stat(filepath.Join(c.data, "delivered")); !os.IsNotExist(err) {
		t.Errorf("delivered before it was on disk: %v", err)
	}
	c.ok("updates", "add", "one")
	log := "state/ledger/" + ledgerFile()
	failing(log, "updates", "pop")
	if out := c.ok("updates", "list"); !strings.Contains(out, "\tone") {
		t.Errorf("lost: %q", out)
	}
	failing(log, "updates", "add", "two")
	if out := c.ok("updates", "list"); strings.Contains(out, "\ttwo") {
		t.Errorf("added: %q", out)
	}
	c.write("routines/stress.md", stressRoutine)
	c.write("stress.yaml", stressScript)
	failing("state/session_history.jsonl", "fire", "stress")
}
