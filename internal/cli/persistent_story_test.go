package cli

import (
	"strings"
	"testing"
)

// prompt is the prompt of the newest run.
func (w *world) prompt() string {
	w.t.Helper()
	return w.read(runFile(w.last()["id"].(string), "prompt.txt"))
}

// The text of a persistent routine stays in its session: its agent is not told that nobody reads it.
func TestPersistentTextIsNotDiscarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n")
	w.must("routine", "add", "own", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Look.")
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "Look.")
	const discarded, kept = "your text output is discarded", "you see it in later fires"
	if p := w.must("fire", "--dry-run", "--json", "own"); strings.Contains(p, discarded) || !strings.Contains(p, kept) {
		t.Errorf("persistent: %s", p)
	}
	if p := w.must("fire", "--dry-run", "--json", "branch"); !strings.Contains(p, discarded) || strings.Contains(p, kept) {
		t.Errorf("forked: %s", p)
	}
}

// A compaction that was requested and not carried out is reported at the next turn of the session, once.
func TestCompactionNotCarriedOut(t *testing.T) {
	t.Parallel()
	const note = "The compaction that you requested in your previous fire was not carried out"
	w := newWorld(t)
	w.script(`turns:
  - - tool: compact_session
      input: {instructions: keep the levels}
    - error: the line went dead
`)
	w.must("routine", "add", "market", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Look.")
	w.run("fire", "market")
	if got := w.last()["outcome"]; got != "failed" {
		t.Fatalf("outcome %v", got)
	}
	if strings.Contains(w.prompt(), note) {
		t.Fatalf("the first fire already says: %s", note)
	}

	// a run that ends before its turn does not use the note up
	w.script("turns: [[{error: gone}], [{error: gone}], [{text: one}], [{text: two}]]\n")
	w.run("fire", "market")
	w.pass(1e9)
	w.script("turns: [[{text: one}], [{text: two}], [{text: three}], [{text: four}]]\n")
	if out := w.must("fire", "--dry-run", "market"); !strings.Contains(out, note) {
		t.Errorf("the dry run leaves out the note:\n%s", out)
	}
	w.must("fire", "market")
	if p := w.prompt(); !strings.Contains(p, note) || !strings.Contains(p, "call `compact_session` again") {
		t.Errorf("the next turn is not told:\n%s", p)
	}
	w.must("fire", "market")
	if p := w.prompt(); strings.Contains(p, note) {
		t.Errorf("it is told twice:\n%s", p)
	}
}

// A compaction for which there is no money left is reported too.
func TestCompactionNotPaidFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(`turns:
  - - tool: compact_session
      input: {instructions: keep the levels}
    - cost: 0.6
  - - text: two
`)
	w.must("routine", "add", "market", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--max-cost", "0.5", "Look.")
	w.run("fire", "market")
	w.pass(1e9)
	w.must("fire", "market")
	if p := w.prompt(); !strings.Contains(p, "was not carried out") {
		t.Errorf("the next turn is not told:\n%s", p)
	}
}

// A routine knows what it reported itself; only what others reported is news to it.
func TestPersistentOwnReportIsNoNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(`turns:
  - - delay: 5s
    - tool: report_updates
      input: {message: Oil broke 75.}
  - - text: two
`)
	w.must("routine", "add", "market", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Look.")
	w.must("routine", "add", "other", "--cron", "0 9 * * *", "--background", "Look.")
	w.must("fire", "market")
	w.must("updates", "add", "The disk is full.")
	w.must("fire", "market")
	if p := w.prompt(); strings.Contains(p, "Oil broke") || !strings.Contains(p, "The disk is full.") {
		t.Errorf("updates of the second fire:\n%s", p)
	}
	w.must("fire", "other") // the script's first turn: it reports the same words
	w.must("fire", "market")
	if p := w.prompt(); strings.Count(p, "Oil broke 75.") != 1 {
		t.Errorf("the report of another routine is omitted:\n%s", p)
	}
}
