package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
)

const questionScript = `turns:
  - - text: thinking
    - tool: ask_owner
      input: {question: "Which?", choices: [red, blue]}
    - delay: 3ms
    - text: asked
  - - expect: "- the answer:\n  blue"
    - text: answered
    - delay: 3ms
    - text: done
`

// questionRun is what these tests look at in a record.
type questionRun struct {
	ID, Outcome string
	After       string `json:"session_after"`
	Continued   int
}

// latest is the job's latest record, as a list shows it; the zero one when there is none.
func (c *command) latest(job string) (r questionRun) {
	c.t.Helper()
	if text := c.ok("run", "list", "-n", "1", "--json", job); text != "" {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			c.t.Fatal(err)
		}
	}
	return r
}

// reboot makes a record one of another boot of the machine.
func (c *command) reboot(run string) {
	c.t.Helper()
	path := paths.Dir(c.data).Run(run, "run.json")
	text, err := os.ReadFile(path)
	if err == nil {
		text = regexp.MustCompile(`"boot_id": "[^"]*"`).ReplaceAll(text, []byte(`"boot_id": "00000000-0000-0000-0000-000000000000"`))
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil || !strings.Contains(string(text), "00000000-0000") {
		c.t.Fatalf("%s: %v", text, err)
	}
}

// readings counts how often the agent of a run has read an answer. Each is an answer to a question that it had asked before, which
// nobody had answered.
func (c *command) readings(run string) (n int) {
	c.t.Helper()
	asked, answered := false, false
	for line := range strings.Lines(c.ok("run", "log", "--json", run)) {
		var e struct{ Type, Tool string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			c.t.Fatal(err)
		}
		switch {
		case e.Type == "ping" && e.Tool == "ask_owner":
			asked = true
		case e.Type == "answered":
			if answered = true; !asked {
				c.t.Errorf("run %s: an answer to no question", run)
			}
		case answered && (e.Type == "text" || e.Type == "thinking" || e.Type == "tool_use"):
			n, asked, answered = n+1, false, false
		}
	}
	return n
}

// TestKillQuestion kills with -9, at random moments, whoever asks, answers, goes on and ends, and reboots the machine between the
// question and the answer. The agent reads each answer at most once, and no run ends before it has read one; the
// run keeps its id and its session; a question is answered once; nothing is left. (A turn that was cut off is not in the script
// engine's session: its agent asks again.)
func TestKillQuestion(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 5)
	c := newCommand(t)
	c.ok("config", "set", "delivery.command", "true")
	c.write("question.yaml", questionScript)
	c.ok("config", "set", "engine", "script:question.yaml")
	random := rand.New(rand.NewSource(2))
	killed := map[string]int{}
	ends := map[string]int{}
	kill := func(what string, round, try int, args ...string) {
		late := 40_000 << (try / 4)
		if killAfter(c.cmd(args...), time.Duration(random.Intn(late))*time.Microsecond) == -1 {
			killed[what]++
		}
		c.unlocked(fmt.Sprintf("q%d", round))
		c.stateParses()
	}
	for round := range rounds {
		job := fmt.Sprintf("q%d", round)
		c.write("routines/"+job+".md", "---\nid: "+job+"\ncron: \"0 0 1 1 *\"\nbackground: true\nisolated: true\nupdate-main-session: freely\n---\nPaint.\n")
		if err := os.RemoveAll(filepath.Join(c.data, "state/ping_budget.json")); err != nil { // full again
			t.Fatal(err)
		}
		c.ok("budget", "set", "--capacity", "1000")
		var run questionRun
		for try := 0; run.Outcome != "waiting"; try++ {
			if try == 40 {
				t.Fatalf("%s: nobody asked in %d fires: %+v", job, try, run)
			}
			kill("fire", round, try, "fire", job)
			run = c.latest(job)
		}
		c.reboot(run.ID)
		for try := 0; run.Outcome == "waiting"; try++ {
			if try == 40 {
				t.Fatalf("%s still waits: %+v", job, run)
			}
			if _, after, _ := strings.Cut(c.read("state/questions/"+run.ID+".json"), `"answer"`); after == "" {
				kill("answer", round, try, "answer", "-w", run.ID, "2")
			} else {
				kill("continue", round, try, "answer", "--continue", run.ID)
			}
			now := c.latest(job)
			if now.ID != run.ID || now.After != run.After {
				t.Fatalf("%s: the run was %+v and is %+v", job, run, now)
			}
			run = now
		}
		ends[run.Outcome]++
		if n := c.readings(run.ID); n == 0 || run.Outcome != "ok" && run.Outcome != "interrupted" {
			t.Errorf("%s: the agent has read %d answers, outcome %s", job, n, run.Outcome)
		}
		if out := c.fails(65, "answer", run.ID, "red"); !strings.Contains(out, "has ended") {
			t.Errorf("a second answer: %s", out)
		}
		if err := os.Remove(filepath.Join(c.data, "routines", job+".md")); err != nil {
			t.Fatal(err)
		}
	}
	c.ok("tick", "--wait")
	if left, _ := filepath.Glob(filepath.Join(c.data, "state/questions/*.json")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	t.Logf("killed in time: %v; outcomes: %v", killed, ends)
	if killed["fire"] < rounds/4 || rounds > 50 && (killed["answer"] < rounds/8 || killed["continue"] < rounds/8) {
		t.Errorf("too few were killed in time: %v", killed)
	}
	c.ok("check")
}
