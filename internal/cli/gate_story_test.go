package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gated adds a background routine with a program of its name as its gate, approved as it is.
func (w *world) gated(name, program string, flags ...string) {
	w.t.Helper()
	w.withProgram("--gate", name, program, flags...)
}

// withProgram adds a background routine that names a program of its own name by a flag.
func (w *world) withProgram(as, name, program string, flags ...string) {
	w.t.Helper()
	w.writeProgram("gates/"+name, "#!/bin/sh\n"+program+"\n")
	args := []string{"routine", "add", name, "--cron", "0 9 * * *", "--background", "--isolated", as, name}
	w.must(append(append(args, flags...), "Go.")...)
}

// The exit status of a gate reports whether its job runs; only status 1 in silence is no failure.
func TestGateDecidesWhetherTheJobRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		program, outcome, reason string
	}{
		"opens":  {"exit 0", "ok", ""},
		"shut":   {"echo nothing new; exit 1", "gated", ""},
		"warns":  {"echo careful >&2", "ok", ""},
		"speaks": {"echo no route to host >&2; exit 1", "failed", "gate speaks: exit status 1: no route to host"},
		"blank":  {"echo >&2; exit 1", "failed", "gate blank: exit status 1: it printed no reason"},
		"breaks": {"exit 2", "failed", "gate breaks: exit status 2: it printed no reason"},
		"both":   {"echo no disk >&2; exit 3", "failed", "gate both: exit status 3: no disk"},
		"killed": {"kill -9 $$", "failed", "gate killed: signal: killed: it printed no reason"},
	} {
		w := newWorld(t)
		w.script("turns:\n  - - text: done\n")
		w.gated(name, tc.program)
		r := w.run("fire", "--print", name)
		record := w.last()
		if record["outcome"] != tc.outcome || tc.reason != "" && record["error"] != tc.reason {
			t.Errorf("%s: %v, %v", name, record["outcome"], record["error"])
		}
		if (r.status == 0) != (tc.reason == "") || (r.out == "done\n") != (tc.outcome == "ok") || (r.errOut == "") != (tc.reason == "") {
			t.Errorf("%s: %+v", name, r)
		}
		if exists(filepath.Join(w.dir, runFile(record["id"].(string)), "programs")) {
			t.Errorf("%s: the directory of the copied gate is left", name)
		}
		if updates := w.must("updates", "list"); strings.Contains(updates, "failed: "+tc.reason) != (tc.reason != "") {
			t.Errorf("%s: updates %q", name, updates)
		}
	}
}

// A gate that is not executable is a failure, not a reason to run without it.
func TestGateThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.write("gates/locked", "#!/bin/sh\n")
	w.must("routine", "add", "locked", "--cron", "0 9 * * *", "--background", "--gate", "locked", "Go.")
	if r := w.run("fire", "--print", "locked"); r.status != 1 || r.out != "" || !strings.Contains(r.errOut, "failed: gate locked: ") {
		t.Errorf("%+v", r)
	}
}

// What a gate prints joins the prompt: at most 4000 characters, without control characters.
func TestGateOutputJoinsThePrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	for name, tc := range map[string]struct {
		program, want string
		cut           bool
	}{
		"lines":  {`printf '\n  one\ttab\n\033[2Jtwo\a\n\n'`, "  one\ttab\n  [2Jtwo\n", false},
		"full":   {`head -c 4000 /dev/zero | tr '\0' x`, strings.Repeat("x", 4000), false},
		"over":   {`head -c 4001 /dev/zero | tr '\0' x`, strings.Repeat("x", 4000), true},
		"broken": {`printf 'a\377b'`, "a\ufffdb", false},
	} {
		w.gated(name, tc.program)
		w.must("fire", name)
		p := w.prompt()
		if !strings.Contains(p, "GATE OUTPUT") || !strings.Contains(p, tc.want) || strings.Contains(p, "[cut]") != tc.cut || strings.Count(p, "x") > 4100 {
			t.Errorf("%s: %q", name, p)
		}
	}
}

// A gate works in the data directory, and its environment names the run, the job, and the slot if the run answers one.
func TestGateKnowsItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	const program = `echo "in $(pwd -P) for $OLLIM_JOB $OLLIM_RUN at <$OLLIM_SLOT>"`
	w.gated("knows", program, "--id", "k1")
	w.gated("slot", program, "--cron", "0 19 * * *", "--timezone", "Asia/Tokyo")
	dir, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.must("fire", "knows")
	if want := "in " + dir + " for k1 " + w.last()["id"].(string) + " at <>"; !strings.Contains(w.prompt(), want) {
		t.Errorf("the prompt lacks %q:\n%s", want, w.prompt())
	}
	w.must("fire", "slot")
	if p := w.prompt(); !strings.Contains(p, "at <2026-03-02T10:00:00Z>") {
		t.Errorf("the slot is missing, or not in UTC:\n%s", p)
	}
}

// What `after` names is run once at the end, with the record on its standard input, however the run ended, unless it never began.
func TestAfterReceivesTheRecord(t *testing.T) {
	t.Parallel()
	const good, bad = "turns:\n  - - text: done\n", "turns:\n  - - error: the line went dead\n"
	w := newWorld(t)
	w.writeProgram("gates/note", "#!/bin/sh\necho \"$OLLIM_RUN $(cat)\" >>noted\n")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--isolated", "--after", "note", "--unsealed", "after", "Go.")
	w.gated("shut", "exit 1", "--after", "note", "--unsealed", "after")
	for _, script := range []string{good, bad} {
		w.script(script)
		w.run("fire", "daily")
		w.pass(1e9)
		id, text, _ := strings.Cut(strings.TrimSpace(w.read("noted")), " ")
		var record map[string]any
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		if last := w.last(); id != last["id"] || record["id"] != id || record["outcome"] != last["outcome"] {
			t.Errorf("noted %s: %v of %v; the run was %v", id, record["id"], record["outcome"], last)
		}
		if err := os.Remove(filepath.Join(w.dir, "noted")); err != nil {
			t.Fatal(err)
		}
	}
	w.must("fire", "shut")
	w.must("pause")
	w.cron = true
	w.run("fire", "daily")
	if got := w.last()["outcome"]; got != "paused" || w.read("noted") != "" {
		t.Errorf("%v; noted %q", got, w.read("noted"))
	}
}

// What fails at the end of a run is a warning and changes nothing.
func TestAfterThatFailsIsAWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	for name, tc := range map[string]struct{ program, want string }{
		"fine":  {"echo hello; echo there >&2", ""},
		"mute":  {"exit 3", "after mute: exit status 3: it printed no reason"},
		"loud":  {"echo no printer >&2; exit 1", "after loud: exit status 1: no printer"},
		"spoil": {"exit 0", "after spoil: not started, because it was changed during the run"},
	} {
		w.writeProgram("gates/"+name, "#!/bin/sh\n"+tc.program+"\n")
		w.writeProgram("gates/change-"+name, "#!/bin/sh\nif [ $OLLIM_JOB = spoil ]; then echo touch spoiled >>gates/spoil; fi\n")
		w.must("routine", "add", name, "--id", name, "--cron", "0 9 * * *", "--background", "--isolated", "--gate", "change-"+name, "--after", name, "--unsealed", "gate", "Go.")
		r := w.run("fire", "--print", name)
		if r.status != 0 || r.out != "done\n" || w.last()["outcome"] != "ok" {
			t.Errorf("%s: %+v", name, r)
		}
		if warned := strings.Contains(r.errOut, "warning: "+tc.want); warned != (tc.want != "") || tc.want == "" && r.errOut != "" {
			t.Errorf("%s: standard error %q, want %q", name, r.errOut, tc.want)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "spoiled")); err == nil {
		t.Error("what was changed during the run was started")
	}
}

// What a run found changed counts as seen only when the run went well.
func TestChangeIsSeenWhenTheRunGoesWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("routine", "add", "slow", "--id", "slow", "--cron", "0 9 * * *", "--background", "--isolated", "Go.")
	for _, tc := range []struct{ end, kept string }{{"error: gone", ""}, {"text: done", "v1\n"}} {
		w.script("turns:\n  - - text: begun\n    - delay: 1m\n    - " + tc.end + "\n")
		slow := w.start("fire", "slow")
		w.env["OLLIM_RUN"] = w.last()["id"].(string)
		if r := w.pipe("v1\n", "changed", "releases"); r.status != 0 || !strings.Contains(r.out, "v1") {
			t.Errorf("changed: %+v", r)
		}
		delete(w.env, "OLLIM_RUN")
		slow.release()
		<-slow.ended
		w.pass(1e9)
		if got := w.read("state/changed/@routine-slow/releases"); got != tc.kept {
			t.Errorf("%s: kept %q, want %q", tc.end, got, tc.kept)
		}
	}
}

// The next reminder of a chain goes on with what the one before it has found.
func TestChangesOfAChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - tool: follow_up_chain\n      input: {minutes_from_now: 30}\n    - text: done\n")
	w.must("reminder", "add", "--in", "1m", "--id", "first", "--max-chain", "2", "Look.")
	w.write("state/changed/@reminder-first/tag", "v1\n")
	w.pass(2 * time.Minute)
	w.must("fire", "first")
	var next struct{ ID string }
	if err := json.Unmarshal([]byte(w.must("reminder", "list", "--json")), &next); err != nil {
		t.Fatal(err)
	}
	if w.read("state/changed/@reminder-"+next.ID+"/tag") != "v1\n" || exists(filepath.Join(w.dir, "state/changed/@reminder-first")) {
		t.Errorf("the values of %s are lost", next.ID)
	}
}
