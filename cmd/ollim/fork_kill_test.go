package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// forkFile is what the test reads of state/fork.json; found is false if no fork is open.
func (c *command) forkFile() (session string, found bool) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, "state/fork.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	var f struct{ Session string }
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		c.t.Fatalf("fork.json: %v: %s", err, text)
	}
	return f.Session, true
}

// TestForkKilled: killed at any moment while a fork begins, has a turn, is reported or saved, the fork is open or closed as its file
// says, main is the old or the new session, no update is lost, and the conversation goes on. OLLIM_TEST_ROUNDS raises the rounds.
func TestForkKilled(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	const talk, report = "turns:\n  - - delay: 3ms\n    - text: one\n    - delay: 3ms\n", "turns:\n  - - tool: report_updates\n      input: {message: REPORTED}\n    - delay: 3ms\n    - text: bye\n"
	c.write("script.yaml", talk)
	c.ok("config", "set", "engine", "script:script.yaml")
	c.ok("chat", "hello")
	dice := rand.New(rand.NewSource(1))
	killed := 0
	for round := range rounds(t, 24) {
		if _, open := c.forkFile(); open {
			c.ok("fork", "exit")
		}
		verb := [][]string{{"fork", "start", "a topic"}, {"chat", "go on"}, {"fork", "report"}, {"fork", "save"}}[round%4]
		if verb[1] != "start" {
			c.ok("fork", "start", "a topic")
			c.ok("chat", "hi")
		}
		news := fmt.Sprintf("NEWS%d", round)
		c.ok("update", "add", news)
		before := c.read("state/sessions.json")
		if verb[1] == "report" {
			c.write("script.yaml", report)
		}
		cmd := c.cmd(verb...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(dice.Intn(50_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		kill.Stop()
		c.write("script.yaml", talk)
		c.checkFork(verb[1], before, news)
	}
	t.Logf("%d processes were killed", killed)
}

// checkFork checks what a killed command has left.
func (c *command) checkFork(verb, before, news string) {
	c.t.Helper()
	main := c.read("state/sessions.json")
	session, filed := c.forkFile()
	err := c.cmd("fork", "status").Run()
	open := err == nil
	switch {
	case !open && status(err) != 66:
		c.t.Errorf("%s: status exits %d", verb, status(err))
	case open && main == session:
		c.t.Errorf("%s: the open fork is the main session", verb)
	case open != (filed && session != main):
		c.t.Errorf("%s: status says open %v, the file %v with session %s, main is %s", verb, open, filed, session, main)
	case main != before && verb != "save":
		c.t.Errorf("%s: main is %s, was %s", verb, main, before)
	}
	if saved := main != before; saved && strings.Count(c.read("state/session_history.jsonl"), `{"session_id":"`+main+`","event":"swapped"`) != 1 {
		c.t.Errorf("%s: the history does not say once that %s became main", verb, main)
	}
	popped := c.ok("update", "pop")
	if strings.Count(popped, news) != 1 {
		c.t.Errorf("%s: %s was lost: %q", verb, news, popped)
	}
	if verb == "report" && !open && !strings.Contains(popped, "REPORTED") {
		c.t.Errorf("the fork was dropped without its report: %q", popped)
	}
	c.ok("chat", "and now?")
	if _, still := c.forkFile(); still != open {
		c.t.Errorf("%s: the fork is open %v after a turn, was %v", verb, still, open)
	}
}
