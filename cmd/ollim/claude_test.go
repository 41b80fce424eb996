package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// withClaude is ollim with the real claude command as its engine, over an API server of the test.
func withClaude(t testing.TB) (*command, *anthropicapi.Server) {
	t.Helper()
	api := anthropicapi.New(t)
	c := newCommand(t)
	c.ok(append([]string{"config", "set", "env"}, anthropicapi.ClaudeEnv(t, api)...)...)
	c.useClaude(anthropicapi.Claude(t))
	c.ok("config", "set", "engine", "claude-code")
	c.ok("config", "set", "quiet", "none") // at any hour of the day; the server of tools gets no environment of the test
	return c, api
}

// examined is what the first test has found out about the real claude command, which is the same for all.
var examined struct {
	sync.Once
	known claudecode.Known
	err   error
}

// useClaude sets the claude command: the real one, or one in its place. It spares the test the trial that a new command is given.
func (c *command) useClaude(path string) {
	c.t.Helper()
	c.ok("config", "set", "claude-code.command", path)
	examined.Do(func() {
		real := newCommand(c.t)
		real.ok("config", "set", "claude-code.command", anthropicapi.Claude(c.t))
		real.ok("config", "set", "engine", "claude-code")
		_ = real.cmd("doctor").Run() // which may find other things wrong
		text, err := os.ReadFile(filepath.Join(real.data, "state/cache/claude.json"))
		examined.err = errors.Join(err, json.Unmarshal(text, &examined.known))
	})
	if examined.err != nil {
		c.t.Fatal(examined.err)
	}
	c.knowClaude(path, examined.known)
}

// knowClaude writes what is known of a claude command.
func (c *command) knowClaude(path string, known claudecode.Known) {
	c.t.Helper()
	if err := knowClaude(c.data, path, known); err != nil {
		c.t.Fatal(err)
	}
}

// knowClaude writes what is known of a claude command into a data directory.
func knowClaude(data, path string, known claudecode.Known) error {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	known.Path, known.File, known.Size, known.Modified = path, file, info.Size(), info.ModTime().UTC()
	cache := filepath.Join(data, "state/cache/claude.json")
	text, err := json.Marshal(known)
	return errors.Join(err, os.MkdirAll(filepath.Dir(cache), 0o700), os.WriteFile(cache, text, 0o600))
}

// standIn is what is known of a command of a test that stands in for claude.
func standIn() claudecode.Known { return claudecode.Known{Version: "2.1.330", Canaries: 1} }

// kept lists what the claude command keeps under a name, in the directories of sealed processes and in the one of others.
func (c *command) kept(name string) (list []string) {
	c.t.Helper()
	for _, dir := range []string{filepath.Join(c.data, "sessions/claude/*"), c.variable("CLAUDE_CONFIG_DIR")} {
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			c.t.Error(err)
		}
		list = append(list, found...)
	}
	return list
}

// requestsAreKept wants all that the service was asked kept with the runs, byte for byte and with prices that are together what was booked,
// in USD.
func (c *command) requestsAreKept(api *anthropicapi.Server, booked float64) {
	c.t.Helper()
	sent := map[string]int{}
	for _, q := range api.Requests() {
		sent[string(q.Raw)]++
	}
	cost, requests := 0.0, 0
	for _, dir := range c.runs() {
		run := filepath.Base(dir)
		for line := range strings.Lines(c.ok("run", "show", "--requests", "--json", run)) {
			var r struct {
				Request int
				Cost    float64
				Cut     string
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Cost <= 0 || r.Cut != "" {
				c.t.Errorf("%v: %s", err, line)
			}
			cost += r.Cost
			requests++
			sent[c.ok("run", "show", "--request", strconv.Itoa(r.Request), run)]--
		}
	}
	for body, n := range sent {
		if n != 0 {
			c.t.Errorf("kept %d times less than sent: %.300s", n, body)
		}
	}
	if n := len(api.Requests()); n != requests || math.Abs(cost-booked) > booked/10 {
		c.t.Errorf("%d of %d requests are kept, for %v USD; %v are booked", requests, n, cost, booked)
	}
}

// begins reports whether the last message begins with a text, after the reminders that the claude command may add.
func begins(q anthropicapi.Request, text string) bool {
	return strings.Contains("\n"+q.LastUserText(), "\n"+text)
}

func (c *command) fails(want int, args ...string) string {
	c.t.Helper()
	var errOut bytes.Buffer
	cmd := c.cmd(args...)
	cmd.Stderr = &errOut
	if got := status(cmd.Run()); got != want {
		c.t.Errorf("ollim %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, errOut.String())
	}
	return errOut.String()
}

func (c *command) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}
