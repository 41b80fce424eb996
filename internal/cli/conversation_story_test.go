package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const persistentRoutine = "---\nid: daily\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\n---\nLook around.\n"

// TestHistoryNotesASession: a persistent session stands in the history once for each fire, main once.
func TestHistoryNotesASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n  - - text: done\n  - - text: done\n")
	w.write("routines/daily.md", persistentRoutine)
	for range 3 {
		w.must("fire", "daily")
		w.must("chat", "hi")
	}
	history := w.read("state/session_history.jsonl")
	if got := strings.Count(history, `"persistent_bg"`); got != 3 {
		t.Errorf("%d entries of the routine, want 3:\n%s", got, history)
	}
	if got := strings.Count(history, `"created"`); got != 1 {
		t.Errorf("%d entries of main, want 1:\n%s", got, history)
	}
}

// TestReminderOfAReportIsNoTurn: an agent that owes a report is reminded in the same turn; the script's next turn is not played.
func TestReminderOfAReportIsNoTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n  - - text: a second turn\non-nudge:\n  - tool: report_updates\n    input: {message: seen}\n")
	w.write("routines/daily.md", strings.Replace(persistentRoutine, "---\nLook", "update-main-session: always\n---\nLook", 1))
	w.must("fire", "daily")
	if r := w.last(); r["outcome"] != "ok" || r["reports"] != 1.0 {
		t.Errorf("outcome %v, %v reports", r["outcome"], r["reports"])
	}
	if session := w.read("sessions/script/" + w.read("state/routine_sessions/daily") + ".jsonl"); !strings.Contains(session, "done") || strings.Contains(session, "a second turn") {
		t.Errorf("the session is\n%s", session)
	}
}

// TestLostMainIsToldOfIt: an agent whose main session is gone reads so.
func TestLostMainIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.must("chat", "hi")
	if err := os.RemoveAll(filepath.Join(w.dir, "sessions/script")); err != nil {
		t.Fatal(err)
	}
	w.must("chat", "and now?")
	id, _ := w.last()["id"].(string)
	if prompt := w.read(runFile(id, "prompt.txt")); !strings.Contains(prompt, "Your earlier session is gone") {
		t.Errorf("the prompt is\n%s", prompt)
	}
}

// TestUnreadableStateReleasesTheSession: a turn that could not begin leaves the session's lock, and fails.
func TestUnreadableStateReleasesTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	path := filepath.Join(w.dir, "state/sessions.json")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := w.run("chat", "hi"); r.status == 0 || !strings.Contains(r.errOut, "sessions.json") {
		t.Errorf("exit status %d: %s", r.status, r.errOut)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.must("chat", "hi")
}

// TestUnreadableLedgerFailsAPersistentFire: what a routine has reported itself is told from the ledger, so without it no update is shown as
// news.
func TestUnreadableLedgerFailsAPersistentFire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.write("routines/daily.md", persistentRoutine)
	w.must("fire", "daily")
	w.must("update", "add", "news")
	if err := os.RemoveAll(filepath.Join(w.dir, "state/ledger")); err != nil {
		t.Fatal(err)
	}
	w.write("state/ledger", "in the way")
	if r := w.run("fire", "daily"); r.status == 0 || !strings.Contains(r.errOut, "state/ledger") {
		t.Errorf("exit status %d: %s", r.status, r.errOut)
	}
}

// TestUnreadableUpdatesFailAFork: a run that cannot see what is pending does not begin without it.
func TestUnreadableUpdatesFailAFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.write("routines/fork.md", "---\nid: fork\ncron: \"0 9 * * *\"\nbackground: true\n---\nLook around.\n")
	if err := os.Mkdir(filepath.Join(w.dir, "state/pending_updates.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := w.run("fire", "fork"); r.status == 0 || !strings.Contains(r.errOut, "pending_updates.json") {
		t.Errorf("exit status %d: %s", r.status, r.errOut)
	}
}
