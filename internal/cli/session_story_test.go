package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// A question is kept whole: what was asked, each use of a tool with its result, and the answer; once each, also when it goes on.
func TestQuestionIsKeptWhole(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	w.script("turns:\n  - - text: let me see\n    - tool: Glob\n      input: {pattern: \"*.okapi\"}\n    - text: it is blue\n  - - text: and green\n")
	w.must("-p", "-n", "which colour?")
	w.must("-p", "-c", "and the other?")
	files, err := filepath.Glob(filepath.Join(w.dir, "sessions/--*/*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("transcripts: %q, %v", files, err)
	}
	name, err := filepath.Rel(w.dir, files[0])
	if err != nil {
		t.Fatal(err)
	}
	text, at := w.read(name), 0
	for _, want := range []string{"which colour?", "let me see", `"tool_use"`, "*.okapi", `"tool_result"`, "it is blue", "and the other?", "and green"} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place:\n%s", want, text)
		}
		at += i
	}
	for _, once := range []string{"which colour?", "it is blue", "and the other?", "and green"} {
		if n := strings.Count(text, once); n != 1 {
			t.Errorf("%q stands there %d times:\n%s", once, n, text)
		}
	}
}

// Without a session there is nothing to compact; with one the compaction is a run of its own and names the new session.
func TestSessionIsCompactedOnRequest(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "market", "--id", "market", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Look.")
	for _, session := range []string{"main", "routine:market"} {
		if r := w.run("session", "compact", session, "keep the levels"); r.status == 0 {
			t.Errorf("%s: compacted without a session: %+v", session, r)
		}
		w.pass(time.Second)
	}
	before := len(api.Requests())
	api.Reply(anthropicapi.Reply{Text: "one"}, anthropicapi.Reply{Text: "two"})
	w.must("chat", "hello")
	w.must("fire", "market")
	for name, job := range map[string]string{"main": "main", "routine:market": "market"} {
		old := w.must("session", "id", name)
		id := w.must("session", "compact", name, "keep the levels")
		if now := w.must("session", "id", name); now != id || id == old {
			t.Errorf("%s: was %s, the compaction said %s, is %s", name, old, id, now)
		}
		if r := w.last(); r["job"] != job || r["kind"] != "session" || r["outcome"] != "ok" {
			t.Errorf("%s: %v", name, r)
		}
		if !lastRequest(t, api).Has("keep the levels") {
			t.Errorf("%s: the request lacks the instructions", name)
		}
	}
	if n := len(api.Requests()) - before; n != 4 {
		t.Errorf("%d requests, want two turns and two compactions", n)
	}
}

// cutOff makes the newest record that of a run whose process died.
func (w *world) cutOff() (id string) {
	w.t.Helper()
	record := w.last()
	id = record["id"].(string)
	delete(record, "finished")
	delete(record, "outcome")
	record["pid"] = 1 << 30
	text, err := json.Marshal(record)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(runFile(id, "run.json"), string(text))
	return id
}

// A turn of the conversation that died without a word is ended by the next one.
func TestNextTurnEndsTheOneThatDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns: [[{text: one}], [{text: two}], [{text: three}]]\n")
	w.must("chat", "hello")
	id := w.cutOff()
	w.must("chat", "hello again")
	if r := w.runs()[0]; r["id"] != id || r["outcome"] != "interrupted" || r["finished"] == nil {
		t.Errorf("the turn that died: %v, %v", r["id"], r["outcome"])
	}
	if r := w.last(); r["outcome"] != "ok" || r["id"] == id {
		t.Errorf("the next turn: %v", r["outcome"])
	}
}

// A routine whose process died is reported once, by the next fire or the next tick, whichever comes first, and runs again.
func TestRoutineThatDiedIsReportedOnce(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"fire", "tick"} {
		w := newWorld(t)
		w.script(doneScript)
		w.must("routine", "add", "daily", "--id", "daily", "--cron", "0 9 * * *", "--background", "--isolated", "Look.")
		w.must("fire", "daily")
		id := w.cutOff()
		if first == "tick" {
			w.must("tick")
		}
		if out := w.must("fire", "--print", "daily"); out != "done\n" {
			t.Errorf("%s: the next fire printed %q", first, out)
		}
		if r := w.runs()[0]; r["id"] != id || r["outcome"] != "interrupted" {
			t.Errorf("%s: %v", first, r["outcome"])
		}
		w.must("fire", "daily")
		w.must("tick")
		if list := w.must("updates", "list"); strings.Count(list, "was cut off before it ended") != 1 {
			t.Errorf("%s: updates %q", first, list)
		}
	}
}

// TestSearchNamesMain: what the owner said in main is found there, and not in a branch of main that has it too and will be removed.
func TestSearchNamesMain(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "Look.")
	api.Reply(anthropicapi.Reply{Text: "Noted."})
	w.must("chat", "The zebra is striped.")
	main := strings.TrimSpace(w.must("session", "id", "main"))
	for range 3 {
		api.Reply(anthropicapi.Reply{Text: "quiet"})
		w.pass(time.Hour)
		w.must("fire", "branch")
		if out := w.must("session", "search", "zebra"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "\t"+main+"\tuser\t") {
			t.Errorf("main is %s: %s", main, out)
		}
	}
}
