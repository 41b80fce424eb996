package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// newCarryWorld is a world whose main conversation has two turns with the script engine, and whose native engine talks to a server in
// this process.
func newCarryWorld(t *testing.T) (*world, *anthropicapi.Server) {
	t.Helper()
	api := anthropicapi.New(t)
	w := newWorld(t)
	w.script("turns:\n  - - text: Nice to meet you, Ada.\n  - - text: Your cat is called Tom.\n  - - text: Welcome back.\n")
	w.must("config", "set", "env", "ANTHROPIC_API_KEY=k")
	w.must("config", "set", "native.base-url", api.URL())
	w.must("chat", "I am Ada")
	w.must("chat", "My cat is Tom")
	return w, api
}

// TestMainIsCarriedOver: after a change of the engine main goes on in a new session, whose first message repeats the last turns. Back
// with the old engine, the old session goes on with what was said meanwhile.
func TestMainIsCarriedOver(t *testing.T) {
	t.Parallel()
	w, api := newCarryWorld(t)
	old := w.read("state/sessions.json")
	w.must("config", "set", "engine", "native")
	api.Reply(anthropicapi.Reply{Text: "Tom is a cat."})
	r := w.run("chat", "Who is Tom?")
	if r.status != 0 || !strings.Contains(r.errOut, "repeats the last messages of the session "+old+" of the script engine") {
		t.Fatalf("exit status %d: %s", r.status, r.errOut)
	}
	native := w.read("state/sessions.json")
	if !strings.HasPrefix(native, "n-") {
		t.Fatalf("main is %s", native)
	}
	prompt := w.prompt()
	for _, want := range []string{"CARRIED OVER: ", "I am Ada", "Nice to meet you, Ada.", "My cat is Tom", "Your cat is called Tom.", "Who is Tom?"} {
		if strings.Count(prompt, want) != 1 {
			t.Errorf("%q is not once in the prompt:\n%s", want, prompt)
		}
	}
	if history := w.must("session", "history", "main"); !strings.Contains(history, native+"\t"+old) {
		t.Errorf("the history is\n%s", history)
	}
	api.Reply(anthropicapi.Reply{Text: "Seven."})
	w.must("chat", "How old is he?")
	if prompt := w.prompt(); strings.Contains(prompt, "CARRIED OVER") || w.read("state/sessions.json") != native {
		t.Errorf("the second turn is carried over, too:\n%s", prompt)
	}

	w.must("config", "set", "engine", "script:script.yaml")
	w.must("chat", "Hello again")
	if now := w.read("state/sessions.json"); now != old {
		t.Errorf("main is %s, not %s", now, old)
	}
	prompt = w.prompt()
	for want, n := range map[string]int{"Tom is a cat.": 1, "Who is Tom?": 1, "How old is he?": 1, "I am Ada": 0, "Since your last turn": 1} {
		if strings.Count(prompt, want) != n {
			t.Errorf("%q is not %d times in the prompt:\n%s", want, n, prompt)
		}
	}
}

// TestUnansweredCarry: a turn that fails before the agent has answered loses the message with the turns; the next turn repeats them.
func TestUnansweredCarry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ back bool }{"again": {}, "back": {back: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, api := newCarryWorld(t)
			old := w.read("state/sessions.json")
			w.must("config", "set", "engine", "native")
			api.Reply(anthropicapi.Reply{Status: 401, ErrorType: "authentication_error"})
			if r := w.run("chat", "Who is Tom?"); r.status == 0 {
				t.Fatalf("no failure: %s", r.out)
			}
			if w.read("state/sessions.json") == old {
				t.Fatal("the session of the failed turn is not that of main, so this test shows nothing")
			}
			if tc.back {
				w.must("config", "set", "engine", "script:script.yaml")
				w.must("chat", "Hello again")
				if now := w.read("state/sessions.json"); now != old || strings.Contains(w.prompt(), "CARRIED OVER") {
					t.Errorf("main is %s, not %s:\n%s", now, old, w.prompt())
				}
				return
			}
			api.Reply(anthropicapi.Reply{Text: "A cat."}, anthropicapi.Reply{Text: "Yes."})
			w.must("chat", "Who is Tom, please?")
			if prompt := w.prompt(); strings.Count(prompt, "My cat is Tom") != 1 {
				t.Errorf("the turns are lost:\n%s", prompt)
			}
			w.must("chat", "Really?")
			if prompt := w.prompt(); strings.Contains(prompt, "CARRIED OVER") {
				t.Errorf("carried over again:\n%s", prompt)
			}
		})
	}
}

// TestBranchesAreCarriedOver: forked runs, webhooks and forks begin with the last turns of main, and leave main as it is.
func TestBranchesAreCarriedOver(t *testing.T) {
	t.Parallel()
	w, api := newCarryWorld(t)
	old := w.read("state/sessions.json")
	w.must("config", "set", "engine", "native")
	w.must("routine", "add", "look", "--cron", "0 9 * * *", "--background", "Look.")
	w.write("webhooks/ci.md", "---\nid: ci\nisolated: false\nfields: {properties: {branch: {type: string}}}\n---\nSee {branch}.\n")
	for _, command := range [][]string{{"fire", "look"}, {"fire", "--dry-run", "look"}, {"fork", "start", "cats"}, {"chat", "in the fork"}} {
		api.Reply(anthropicapi.Reply{Text: "Done."})
		out := w.must(command...)
		if command[1] != "--dry-run" {
			out = w.prompt()
		}
		want := map[string]int{"in the fork": 0}
		n, ok := want[command[1]]
		if !ok {
			n = 1
		}
		if strings.Count(out, "My cat is Tom") != n {
			t.Errorf("%v: not %d times in the prompt:\n%s", command, n, out)
		}
		if now := w.read("state/sessions.json"); now != old {
			t.Errorf("%v: main is %s", command, now)
		}
	}
	if history := w.must("session", "history"); strings.Count(history, "\t"+old) != 2+1 { // bg_fork, interactive_fork, created
		t.Errorf("the history is\n%s", history)
	}
}
