package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const doneScript = "turns:\n  - - text: done\n"

// The owner's words about the agent and about themself stand in every request of the conversation and its branches; files that are
// not there say nothing.
func TestConversationHoldsTheProfile(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look.")
	words := []string{"I am calm.", "Ann lives in Oslo.", "Your owner is called Ann.", "You are called Olaf."}
	fire := func(want bool) {
		t.Helper()
		api.Reply(anthropicapi.Reply{Text: "done"}, anthropicapi.Reply{Text: "done"}, anthropicapi.Reply{Text: "done"})
		if r := w.run("fire", "daily"); r.errOut != "" && strings.Contains(r.errOut, "warning") {
			t.Errorf("standard error: %s", r.errOut)
		}
		w.pass(time.Second)
		for _, text := range words {
			if strings.Contains(lastRequest(t, api).System, text) != want {
				t.Errorf("the request holds %q: %v", text, !want)
			}
		}
	}
	for _, name := range []string{"IDENTITY.md", "USER.md"} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	fire(false)
	w.write("IDENTITY.md", "I am calm.\n")
	w.write("USER.md", "Ann lives in Oslo.\n")
	w.must("names", "--user", "Ann", "--bot", "Olaf")
	fire(true)
}

// A profile that cannot be read is a warning; the job runs.
func TestUnreadableProfileIsAWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(doneScript)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look.")
	path := filepath.Join(w.dir, "USER.md")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := w.run("fire", "--print", "daily"); r.status != 0 || r.out != "done\n" || !strings.Contains(r.errOut, "warning: USER.md: ") {
		t.Errorf("%+v", r)
	}
}

// A bad job file is reported once, and once more when it breaks again after it was good.
func TestBadFileIsReportedOnce(t *testing.T) {
	t.Parallel()
	const bad, good = "---\nid: b1\ncron: x\n---\nLook.\n", "---\nid: b1\ncron: \"0 9 * * *\"\n---\nLook.\n"
	w := newWorld(t)
	w.script(doneScript)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look.")
	fire := func(name string, lines, updates int) {
		t.Helper()
		r := w.run("fire", name)
		w.pass(time.Second)
		list := w.must("updates", "list")
		if strings.Count(r.errOut, "bad.md:3: ") != lines || strings.Count(list, "bad.md:3: ") != updates {
			t.Errorf("want %d lines and %d updates\nstandard error: %s\nupdates: %s", lines, updates, r.errOut, list)
		}
	}
	w.write("routines/bad.md", bad)
	fire("daily", 1, 1)
	fire("daily", 0, 1)
	w.write("routines/bad.md", good)
	fire("daily", 0, 1)
	w.must("updates", "clear")
	w.write("routines/bad.md", bad)
	fire("bad", 1, 1) // its own fault is the error already
	fire("bad", 1, 1)
	fire("daily", 0, 1)
}

// A job whose dirs reach the data directory is refused, also through a link; others are in its record in full.
func TestDirsInTheDataDirectoryAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(doneScript)
	outside := t.TempDir()
	if err := os.Symlink(w.dir, filepath.Join(outside, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.home, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		dir     string
		refused bool
	}{
		{w.dir, true}, {"rw:" + filepath.Join(w.dir, "notes"), true}, {filepath.Join(outside, "link"), true},
		{outside, false}, {"rw:~/src", false}, {filepath.Join(outside, "missing"), false},
	} {
		name := "job-" + string(rune('a'+i))
		w.must("routine", "add", name, "--cron", "0 9 * * *", "--background", "--isolated", "--dirs", tc.dir, "Look.")
		r := w.run("fire", name)
		w.pass(time.Second)
		if refused := r.status == 77 && strings.Contains(r.errOut, "in the data directory"); refused != tc.refused || !refused && r.status != 0 {
			t.Errorf("%s: %+v", tc.dir, r)
		}
	}
	for _, record := range w.runs() {
		if record["name"] == "job-e" && record["dirs"].([]any)[0] != "rw:"+filepath.Join(w.home, "src") {
			t.Errorf("dirs in the record: %v", record["dirs"])
		}
	}
}

// An engine without subagents refuses a job that is delegated to one, before anything is asked of it.
func TestSubagentNeedsAnEngineThatHasThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(doneScript)
	w.write("agents/helper.md", "---\nname: helper\ndescription: Helps\n---\nHelp.\n")
	w.must("routine", "add", "sub", "--cron", "0 9 * * *", "--background", "--isolated", "--subagent", "helper", "Look.")
	if r := w.run("fire", "sub"); r.status != 77 || !strings.Contains(r.errOut, "refused: subagent helper: script:") || !strings.Contains(r.errOut, "this engine has no subagents") {
		t.Errorf("%+v", r)
	}
}

// A skill that is not there stops the job that was told to use it.
func TestMissingSkillIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(doneScript)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--skills", "maps", "Look.")
	if r := w.run("fire", "--print", "daily"); r.status != 77 || r.out != "" || !strings.Contains(r.errOut, "maps") {
		t.Errorf("%+v", r)
	}
	if p := w.run("fire", "--dry-run", "daily"); !strings.Contains(p.out+p.errOut, "maps") {
		t.Errorf("dry run: %+v", p)
	}
}

// Only the script engine can run at another time.
func TestOtherTimeIsForTheScriptEngine(t *testing.T) {
	t.Parallel()
	const then = "2026-03-01T09:00:00Z"
	w, api := newNativeWorld(t)
	w.script(doneScript)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look.")
	if r := w.run("fire", "--now", then, "daily"); r.status == 0 || !strings.Contains(r.errOut, "only the script engine can run at another time") {
		t.Errorf("%+v", r)
	}
	if len(api.Requests()) != 0 || len(w.runs()) != 0 {
		t.Errorf("%d requests, %d records", len(api.Requests()), len(w.runs()))
	}
	if out := w.must("fire", "--engine", "script:script.yaml", "--print", "--now", then, "daily"); out != "done\n" {
		t.Errorf("%q", out)
	}
	if out := w.must("fire", "--dry-run", "--now", then, "daily"); !strings.Contains(out, "2026-03-01") {
		t.Errorf("dry run: %q", out)
	}
}

// A fire of a job that runs is skipped, at once or after its patience; one that waits long enough runs.
func TestFireWaitsForTheRunBeforeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(slowScript)
	w.must("routine", "add", "slow", "--cron", "0 9 * * *", "--background", "Work.")
	slow := w.start("fire", "slow")
	for _, wait := range []string{"0", "50ms"} {
		if r := w.run("fire", "--wait", wait, "slow"); r.status != 75 || !strings.Contains(r.errOut, "already running since 2026-03-02 10:00:0") {
			t.Errorf("--wait %s: %+v", wait, r)
		}
		w.pass(time.Second)
	}
	w.script(doneScript)
	waits := make(chan result, 1)
	go func() { waits <- w.run("fire", "--print", "--wait", "1m", "slow") }()
	slow.release()
	<-slow.ended
	if r := <-waits; r.status != 0 || r.out != "done\n" {
		t.Errorf("--wait 1m: %+v", r)
	}
}

// What cannot be run for want of an engine has no record.
func TestNoEngineNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look.")
	w.write("config.yaml", "{}\n")
	if r := w.run("fire", "daily"); r.status == 0 || !strings.Contains(r.errOut, "no engine is configured") || len(w.runs()) != 0 {
		t.Errorf("%+v, %d records", r, len(w.runs()))
	}
}

// An agent that owes a report is reminded twice; then its run ends as unreported, and where a report was always wanted the main
// session is told.
func TestAgentIsHeldToItsReport(t *testing.T) {
	t.Parallel()
	for mode, reported := range map[string]bool{"always": true, "on_ping": false} {
		w := newWorld(t)
		w.script("turns:\n  - - tool: ping_user\n      input: {message: hello}\n    - text: done\n  - - text: no\n  - - text: still no\n")
		w.must("config", "set", "delivery.command", "true")
		w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--update-main-session", mode, "Look.")
		r := w.run("fire", "daily")
		if record := w.last(); record["outcome"] != "unreported" {
			t.Errorf("%s: %v, %+v", mode, record["outcome"], r)
		}
		if n := strings.Count(w.must("run", "log", "daily"), " nudge "); n != 2 {
			t.Errorf("%s: %d nudges:\n%s", mode, n, w.must("run", "log", "daily"))
		}
		if list := w.must("updates", "list"); strings.Contains(list, "did not report what it did") != reported {
			t.Errorf("%s: updates %q", mode, list)
		}
	}
}
