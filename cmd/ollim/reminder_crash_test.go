package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
)

const crashScript = `turns:
  - - text: one
    - tool: report_updates
      input: {message: "reported"}
    - delay: 3ms
    - tool: follow_up_chain
      input: {minutes_from_now: 5000}
    - text: done
`

// reminder writes one that was due so long ago.
func (c *command) reminder(id string, ago time.Duration, more string) {
	c.t.Helper()
	at := time.Now().Add(-ago).Format(time.RFC3339)
	c.write("reminders/"+id+".md", fmt.Sprintf("---\nid: %s\nrun-at: %s\n%s---\nDo %s.\n", id, at, more, id))
}

// there reports whether the reminder has a file, waiting or fired.
func (c *command) there(id string) bool {
	for _, name := range []string{"reminders/" + id + ".md", "state/firing/" + id + ".md", "state/firing/" + id + ".retry.md"} {
		if _, err := os.Stat(filepath.Join(c.data, name)); err == nil {
			return true
		}
	}
	return false
}

// unlocked waits until no process holds the lock of a job: a child of one that was killed holds it until it executes its program.
func (c *command) unlocked(id string) {
	c.t.Helper()
	eventually(c.t, "the lock of "+id+" is free", func() bool { return lock.Free(paths.Dir(c.data).JobLock(id)) })
}

// agentRuns counts the runs of a job that reached the engine, and those that ended well.
func (c *command) agentRuns(id string) (begun, well int) {
	c.t.Helper()
	for line := range strings.Lines(c.ok("run", "list", "-n", "0", "--json")) {
		var r struct{ ID, Job, Outcome string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			c.t.Fatal(err)
		}
		if r.Job != id {
			continue
		}
		events, err := os.ReadFile(paths.Dir(c.data).Run(r.ID, "events.jsonl"))
		if err == nil && bytes.Contains(events, []byte(`"type":"session"`)) {
			begun++
		}
		if r.Outcome == "ok" {
			well++
		}
	}
	return begun, well
}

// TestKillReminder kills fires of reminders with -9 at random moments, until each has come to its end. None is lost: it was done, or
// its text was delivered; an agent began it at most twice; a chain goes on at most once.
func TestKillReminder(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 12)
	c := newCommand(t)
	c.write("crash.yaml", crashScript)
	c.ok("config", "set", "engine", "script:crash.yaml")
	random := rand.New(rand.NewSource(1))
	killed, delivered := 0, 0
	for round := range rounds {
		id := fmt.Sprintf("r%d", round)
		c.reminder(id, time.Minute, "isolated: true\nmax-chain: 1\n")
		fires := 0
		for ; c.there(id); fires++ {
			if fires == 20 {
				t.Fatalf("%s is still there after %d fires", id, fires)
			}
			late := 40_000 << (fires / 2) // on a machine so slow that none comes to its end, later and later
			if killAfter(c.cmd("fire", id), time.Duration(random.Intn(late))*time.Microsecond) == -1 {
				killed++
			}
			c.stateParses()
		}
		c.ok("tick") // ends the records of the dead
		begun, well := c.agentRuns(id)
		reported := strings.Contains(c.ok("updates", "list", "--all"), "(agent unavailable) Do "+id+".")
		if reported {
			delivered++
		}
		// Killed between the deletion of its file and the end of its record, a run that went well counts as cut off.
		if begun > 2 || begun == 0 && !reported {
			t.Errorf("%s: begun %d times, well %d times, told %v, in %d fires", id, begun, well, reported, fires)
		}
		children := c.children(id)
		if children > 1 || children == 0 && !reported || children == 1 && begun == 0 {
			t.Errorf("%s: %d follow-ups; begun %d times, told %v", id, children, begun, reported)
		}
	}
	t.Logf("%d fires were killed in time, %d of %d reminders delivered as text", killed, delivered, rounds)
	if killed < rounds/4 {
		t.Error("too few fires were killed in time")
	}
	c.ok("check")
}

// children counts the follow-ups of a chain, and deletes them.
func (c *command) children(parent string) (n int) {
	c.t.Helper()
	err := filepath.WalkDir(filepath.Join(c.data, "reminders"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") { // a draft of a writer that was killed
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("chain-parent: "+parent+"\n")) {
			n++
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// TestKillPlainReminder: a plain one is delivered at least once, wherever its fire is killed, and makes at most one message a fire.
// (That may be sent again, under the same id.)
func TestKillPlainReminder(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 12)
	c := newCommand(t)
	c.ok("config", "set", "delivery.command", "/bin/sh", "-c", `text=$(cat); printf '%s\n%s\n' "$OLLIM_MESSAGE_ID" "$text" >> delivered.txt`) // whole, whatever orphan writes beside it
	random := rand.New(rand.NewSource(2))
	fires := make([]int, rounds)
	for round := range rounds {
		id := fmt.Sprintf("p%d", round)
		c.reminder(id, time.Minute, "plain: true\n")
		for ; c.there(id) && fires[round] < 20; fires[round]++ {
			killAfter(c.cmd("fire", id), time.Duration(random.Intn(30_000))*time.Microsecond)
		}
		c.stateParses()
		if c.there(id) {
			c.unlocked(id)
			fires[round]++
			c.ok("fire", id)
		}
	}
	c.ok("tick") // sends what is left
	text, err := os.ReadFile(filepath.Join(c.data, "delivered.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		said := regexp.MustCompile(fmt.Sprintf(`(?m)^(.+)\nDo p%d\.$`, round))
		ids := map[string]bool{}
		for _, match := range said.FindAllStringSubmatch(string(text), -1) {
			ids[match[1]] = true
		}
		if len(ids) == 0 || len(ids) > fires[round] {
			t.Errorf("p%d was delivered as %d messages by %d fires", round, len(ids), fires[round])
		}
	}
}

// TestTickAllTheTime runs ticks without a pause, several at once, while reminders are fired: each runs exactly once, and nothing is
// said of any file.
func TestTickAllTheTime(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.write("slow.yaml", "turns:\n  - - text: one\n    - delay: 100ms\n")
	c.ok("config", "set", "engine", "script:slow.yaml")
	const count = 8
	for i := range count {
		c.reminder(fmt.Sprintf("r%d", i), time.Minute, "isolated: true\n")
	}
	deadline := time.Now().Add(patience)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for time.Now().Before(deadline) && c.anyReminder() {
				if out, err := c.cmd("tick").CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("tick: %v: %s", err, out)
				}
			}
		})
	}
	all.Wait()
	for i := range count {
		id := fmt.Sprintf("r%d", i)
		if begun, _ := c.agentRuns(id); begun != 1 || c.there(id) {
			t.Errorf("%s: begun %d times, still there: %v", id, begun, c.there(id))
		}
	}
	if n := strings.Count(c.ok("run", "list", "-n", "0"), "\n"); n != count {
		t.Errorf("%d records of %d runs", n, count)
	}
	if reported := c.ok("updates", "list", "--all"); reported != "" {
		t.Errorf("told: %s", reported)
	}
}

func (c *command) anyReminder() bool {
	out, err := exec.Command("find", filepath.Join(c.data, "reminders"), filepath.Join(c.data, "state", "firing"), "-name", "*.md").Output()
	return len(out) > 0 || err != nil && !c.started()
}

// started reports whether anything was ever claimed.
func (c *command) started() bool {
	_, err := os.Stat(filepath.Join(c.data, "state", "firing"))
	return err == nil
}
