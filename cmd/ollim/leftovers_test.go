package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/testkit"
)

// alone is a routine whose every run is a session of its own, and whose slot is each minute.
const alone = "---\nid: alone\ncron: \"* * * * *\"\nbackground: true\nisolated: true\nengine: script:alone.yaml\n---\nGo.\n"

// TestKillsLeaveNothing kills fires of a routine with slots, of one whose session is compacted, and of reminders with -9: at random
// moments, and as a reminder is put away. After a day's first tick nothing is left of them: no directory of a run without a record, no
// draft, no lock of a job that is gone, no session of an isolated run. Every slot has the outcome of its run, every compaction the
// session that it came from, and a reminder that was put away a record that says how its run ended.
func TestKillsLeaveNothing(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.write("routines/stress.md", stressRoutine)
	c.write("stress.yaml", stressScript)
	c.write("routines/alone.md", alone)
	c.write("alone.yaml", "turns:\n  - - text: one\n    - delay: 3ms\n    - text: done\n")
	random := rand.New(rand.NewSource(22))
	killed, putAway := 0, 0
	for round := range rounds(t, 12) {
		id := fmt.Sprintf("r%d", round)
		c.reminder(id, time.Minute, "isolated: true\nengine: script:alone.yaml\n")
		c.freeSlots()
		for _, job := range []string{"stress", "alone", id} {
			if killAfter(c.cmd("fire", job), time.Duration(random.Intn(30_000))*time.Microsecond) == -1 {
				killed++
			}
		}
		c.stateParses()
		if round%4 == 0 {
			c.unlocked("stress")
			c.ok("fire", "stress") // so that its session is compacted on a slow machine too
			putAway += c.killAsPutAway(fmt.Sprintf("p%d", round))
		}
		for n := 0; c.there(id); n++ {
			if _ = c.cmd("fire", id).Run(); n == 5 {
				t.Fatalf("%s is still there", id)
			}
		}
		c.slotsMatch()
	}
	t.Logf("%d fires were killed, %d as their reminder was put away", killed, putAway)
	if killed < 3*rounds(t, 12)/4 || putAway == 0 {
		t.Error("too few fires were killed in time")
	}
	c.nextDay()
	c.noLeftOvers()
	c.compactionsHaveParents()
	c.everyRunEnded()
	c.ok("check")
}

// killAsPutAway kills the fire of a reminder once its file is gone, and before its record is finished. It returns 1 if that worked.
func (c *command) killAsPutAway(id string) int {
	c.t.Helper()
	if _, err := exec.LookPath("strace"); err != nil && !testkit.CI() {
		return 1 // nothing to show; see TestOutboxIsSynced for who says that it is missing
	}
	c.reminder(id, time.Minute, "isolated: true\nengine: script:alone.yaml\n")
	firing := filepath.Join(c.data, "state/firing")
	out, _, trace := c.strace([]string{"-e", "trace=fsync", "-e", "inject=fsync:signal=SIGKILL", "-P", firing}, "fire", id)
	if !strings.Contains(trace, "killed by SIGKILL") || c.there(id) {
		c.t.Errorf("%s: not killed as it was put away: %s\n%s", id, out, trace)
		return 0
	}
	c.ok("tick", "--wait")
	if r := c.record(id); r.Outcome != "ok" {
		c.t.Errorf("%s was put away, and its run is %q", id, r.Outcome)
	}
	return 1
}

// runRecord is what these tests look at in a record.
type runRecord struct {
	ID, Job, Outcome string
	Finished         *time.Time
}

// record is the latest record of a job.
func (c *command) record(job string) (r runRecord) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.ok("run", "show", job)), &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// freeSlots forgets all claims whose run is done, so that the next fire answers the latest slot.
func (c *command) freeSlots() {
	c.t.Helper()
	if err := os.RemoveAll(filepath.Join(c.data, "state/slots/alone")); err != nil {
		c.t.Fatal(err)
	}
}

// slotsMatch ends what was killed, and wants each claim to have the outcome of its run, if that has a record.
func (c *command) slotsMatch() {
	c.t.Helper()
	c.ok("tick", "--wait")
	claims, err := filepath.Glob(filepath.Join(c.data, "state/slots/*/*Z"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range claims {
		var claim struct{ Run, Outcome string }
		var r runRecord
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &claim)
		}
		record, readErr := os.ReadFile(paths.Dir(c.data).Run(claim.Run, "run.json"))
		if errors.Is(readErr, fs.ErrNotExist) || claim.Run == "" {
			continue // it was killed before the record, and the slot may be answered again
		}
		if err = errors.Join(err, readErr, json.Unmarshal(record, &r)); err != nil {
			c.t.Fatal(err)
		}
		if r.Finished == nil || claim.Outcome != r.Outcome {
			c.t.Errorf("%s: outcome %q, that of its run %s is %q", path, claim.Outcome, r.ID, r.Outcome)
		}
	}
}

// nextDay makes everything look eight days older, so that what was left is old and sessions of isolated runs are too, and runs
// the first tick of two days, between which the clock has gone on long enough.
func (c *command) nextDay() {
	c.t.Helper()
	old := time.Now().Add(-8 * 24 * time.Hour)
	page := filepath.Join(c.data, "state/tick.json")
	for _, age := range []time.Duration{0, 8 * 24 * time.Hour} {
		err := filepath.WalkDir(c.data, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(path, old, old))
		})
		if err != nil {
			c.t.Fatal(err)
		}
		text := fmt.Sprintf(`{"tidied":"2000-01-01","pending":%q,"accounted":%q}`, time.Now().Add(-age).Format(time.RFC3339), time.Now().Format(time.RFC3339))
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
		old = old.Add(-8 * 24 * time.Hour)
		c.ok("tick", "--wait")
	}
}

// noLeftOvers looks for what killed processes leave.
func (c *command) noLeftOvers() {
	c.t.Helper()
	young := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(c.data, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || info.ModTime().After(young) { // of the ticks just now
			return err
		}
		name := e.Name()
		switch parent := filepath.Base(filepath.Dir(path)); {
		case strings.Contains(name, ".tmp-"):
			c.t.Errorf("a draft is left: %s", path)
		case e.IsDir() && len(name) > len("2026") && path == paths.Dir(c.data).Run(name):
			if _, err := os.Stat(filepath.Join(path, "run.json")); err != nil {
				c.t.Errorf("a run without a record is left: %s", path)
			}
		case parent == "locks" && strings.HasPrefix(name, "job-") && name != "job-stress.lock" && name != "job-alone.lock":
			c.t.Errorf("the lock of a job that is gone is left: %s", path)
		case parent == "outbox" || parent == "firing":
			c.t.Errorf("left: %s", path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	sessions, err := filepath.Glob(filepath.Join(c.data, "sessions/script/*"))
	if err != nil {
		c.t.Fatal(err)
	}
	history, err := os.ReadFile(filepath.Join(c.data, "state/session_history.jsonl"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range sessions {
		info, err := os.Stat(path)
		if err == nil && info.ModTime().After(young) {
			continue
		}
		id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		if strings.Contains(string(history), `{"session_id":"`+id+`","event":"isolated_bg"`) {
			c.t.Errorf("the session of an isolated run is left: %s", path)
		}
	}
}

// compactionsHaveParents follows the routine's session back: each session of it that began with a summary has a parent in the
// history.
func (c *command) compactionsHaveParents() {
	c.t.Helper()
	history, err := os.ReadFile(filepath.Join(c.data, "state/session_history.jsonl"))
	if err != nil {
		c.t.Fatal(err)
	}
	parent := map[string]string{}
	for line := range strings.Lines(string(history)) {
		var e struct {
			Session string `json:"session_id"`
			Event   string
			Parent  string `json:"parent_session_id"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			c.t.Fatal(err)
		}
		if e.Event == "compacted" {
			parent[e.Session] = e.Parent
		}
	}
	compacted := 0
	for id := c.session(); id != ""; id = parent[id] {
		text, err := os.ReadFile(filepath.Join(c.data, "sessions/script", id+".jsonl"))
		if err != nil {
			c.t.Fatal(err)
		}
		header, _, _ := strings.Cut(string(text), "\n")
		if strings.Contains(header, `"parent_id"`) && parent[id] == "" {
			c.t.Errorf("the history does not say what %s is a summary of", id)
		}
		compacted++
	}
	if compacted < 2 {
		c.t.Error("no session was compacted")
	}
}
