package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const (
	lookBackground = "---\nid: look\ncron: \"0 9 * * *\"\nbackground: true\nallow-ping: false\nupdate-main-session: freely\n---\nLook around.\n"
	lookPersistent = "---\nid: look\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\nallow-ping: false\nupdate-main-session: freely\n---\nLook around.\n"
	lookForeground = "---\nid: look\ncron: \"0 9 * * *\"\n---\nLook around.\n"
)

// lastRequest is the last request that the model got.
func lastRequest(t *testing.T, api *anthropicapi.Server) anthropicapi.Request {
	t.Helper()
	all := api.Requests()
	if len(all) == 0 {
		t.Fatal("the model was asked nothing")
	}
	return all[len(all)-1]
}

// oneSpeaker checks that no message of the user holds the words of two, and that the last one begins with a text.
func oneSpeaker(t *testing.T, r anthropicapi.Request, begins string) {
	t.Helper()
	for i, m := range r.Messages {
		texts, results := 0, 0
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				texts++
			case "tool_result":
				results++
			}
		}
		if m.Role == "user" && (texts > 1 || texts > 0 && results > 0) {
			t.Errorf("message %d holds %d texts and %d results: %+v", i, texts, results, m)
		}
	}
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "user" || !strings.HasPrefix(last.Content[0].Text, begins) {
		t.Errorf("the last message does not begin with %q: %+v", begins, last)
	}
}

// occurrences counts how often a text stands in what the model reads.
func occurrences(r anthropicapi.Request, text string) (n int) {
	for _, m := range r.Messages {
		for _, b := range m.Content {
			n += strings.Count(b.Text+b.ResultText+string(b.Input), text)
		}
	}
	return n
}

// TestForkLeavesOutTheTurnUnderWay: a background fork that starts while main waits for the model, before or after a tool, reads
// neither the open request nor what was done for it.
func TestForkLeavesOutTheTurnUnderWay(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]anthropicapi.Reply{
		"first answer": nil,
		"after a tool": {{Text: "I look.", ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			w.write("routines/look.md", lookBackground)
			api.Reply(anthropicapi.Reply{Text: "Hello Momo."})
			w.must("chat", "my cat is called Momo")
			hold, asked, ended := make(chan struct{}), make(chan struct{}), make(chan result, 1)
			api.Reply(before...)
			api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
				close(asked)
				return anthropicapi.Reply{Text: "sent", Hold: hold}
			})
			go func() { ended <- w.run("chat", "Send the invoice to Bob") }()
			<-asked
			api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "I looked."} })
			w.must("fire", "look")
			fork := lastRequest(t, api)
			close(hold)
			if r := <-ended; r.status != 0 || !strings.Contains(r.out, "sent") {
				t.Errorf("main: %+v", r)
			}
			if occurrences(fork, "Momo") != 2 || occurrences(fork, "invoice") != 0 || occurrences(fork, "interrupted") != 0 || len(fork.Messages) != 3 {
				t.Errorf("the fork read %+v", fork.Messages)
			}
			oneSpeaker(t, fork, "[routine-bg:look]")
		})
	}
}

// TestFailedTurnIsNotSaidAgain: what a turn said that failed before any answer is not said to the model by the next one, whoever
// that is, and by no fork.
func TestFailedTurnIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]string{"main": lookForeground, "fork": lookBackground} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprint(name, first), func(t *testing.T) {
				w, api := newNativeWorld(t)
				w.write("routines/look.md", job)
				if !first {
					w.must("chat", "hello")
				}
				api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
				if r := w.run("chat", "Send the invoice to Bob"); r.status == 0 {
					t.Fatal("the turn did not fail")
				}
				w.must("fire", "look")
				r := lastRequest(t, api)
				if occurrences(r, "invoice") != 0 {
					t.Errorf("the routine sent %+v", r.Messages)
				}
				oneSpeaker(t, r, map[string]string{"main": "[routine:look]", "fork": "[routine-bg:look]"}[name])
			})
		}
	}
}

func TestUpdateIsReadOnceAfterAFailure(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("updates", "add", "oil broke 75")
	api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
	if r := w.run("chat", "hello"); r.status == 0 {
		t.Fatal("the turn did not fail")
	}
	w.must("chat", "hello again")
	r := lastRequest(t, api)
	if n := occurrences(r, "oil broke 75"); n != 1 {
		t.Errorf("the model reads the update %d times: %+v", n, r.Messages)
	}
	if n := occurrences(r, "hello"); n != 1 {
		t.Errorf("the model reads %d questions: %+v", n, r.Messages)
	}
}

// TestTurnThatFailedAfterATool: a turn that was begun stays in the session, with an end that says so.
func TestTurnThatFailedAfterATool(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]string{"main": lookForeground, "persistent": lookPersistent} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			w.write("routines/look.md", job)
			api.Reply(anthropicapi.Use("list_reminders", nil), anthropicapi.Reply{Status: 400, Message: "no"})
			if r := w.run("fire", "look"); r.status == 0 {
				t.Fatal("the turn did not fail")
			}
			w.must("fire", "look")
			r := lastRequest(t, api)
			if occurrences(r, "This turn was cut off") != 1 || occurrences(r, "Look around.") != 2 {
				t.Errorf("the second fire read %+v", r.Messages)
			}
			oneSpeaker(t, r, "[routine")
		})
	}
}

func TestPersistentTurnThatFailedIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("routines/look.md", lookPersistent)
	w.must("fire", "look")
	api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
	if r := w.run("fire", "look"); r.status == 0 {
		t.Fatal("the turn did not fail")
	}
	w.must("fire", "look")
	r := lastRequest(t, api)
	if n := occurrences(r, "Look around."); n != 2 {
		t.Errorf("the model reads the job %d times: %+v", n, r.Messages)
	}
	oneSpeaker(t, r, "[routine-bg:look]")
}

// TestSessionCutAnywhere: wherever a kill cut the transcript off, the next turn, a fork and a compaction read a conversation in
// which everybody speaks for himself.
func TestSessionCutAnywhere(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("routines/look.md", lookBackground)
	api.Reply(anthropicapi.Reply{Text: "Hello."})
	w.must("chat", "the first question")
	api.Reply(
		anthropicapi.Reply{Thinking: "hm", ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}, {Name: "list_reminders"}}},
		anthropicapi.Reply{Text: "Another look.", ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}}},
		anthropicapi.Reply{Text: "Nothing."},
	)
	w.must("chat", "the second question")
	paths, err := filepath.Glob(filepath.Join(w.dir, "sessions/--*/*.jsonl"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(lines[len(lines)-1], '\n')
	for n := 1; n <= len(lines); n++ {
		for _, torn := range []string{"", `{"type":"message","mess`} {
			cut := append(bytes.Join(lines[:n], nil), torn...)
			for _, next := range [][]string{{"fire", "look"}, {"chat", "what next?"}} {
				if err := os.WriteFile(paths[0], cut, 0o600); err != nil {
					t.Fatal(err)
				}
				w.must(next...)
				r := lastRequest(t, api)
				oneSpeaker(t, r, map[string]string{"fire": "[routine-bg:look]", "chat": "[2026-"}[next[0]])
				if whole, open := occurrences(r, "the second question") > 0, n < len(lines); next[0] == "fire" && whole == open {
					t.Errorf("after %d of %d lines the fork read %+v", n, len(lines), r.Messages)
				}
			}
		}
	}
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}
