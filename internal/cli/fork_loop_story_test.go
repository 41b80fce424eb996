package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// prefix is what requests of main and of its forks have in common, byte for byte, so that the model's cache of it holds.
func prefix(t *testing.T, r anthropicapi.Request) string {
	t.Helper()
	var body struct{ System, Tools json.RawMessage }
	if err := json.Unmarshal(r.Raw, &body); err != nil {
		t.Fatal(err)
	}
	return string(body.System) + "\n" + string(body.Tools)
}

// TestContextLoop is the cycle of seed 2 on the native engine: main feeds forks, forks leave updates, main pops them.
func TestContextLoop(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.delivers()
	say := func(replies ...anthropicapi.Reply) { api.Reply(replies...) }
	text := func(s string) anthropicapi.Reply { return anthropicapi.Reply{Text: s} }

	say(text("Hello."))
	w.must("chat", "my cat is called Momo")
	main := lastRequest(t, api)
	first := w.read("state/sessions.json")

	// a background run branches main, pings and reports
	say(anthropicapi.Use("ping_user", map[string]string{"message": "Oil broke 75."}),
		anthropicapi.Use("report_updates", map[string]string{"message": "oil broke 75"}), text("watched"))
	w.must("routine", "add", "watch", "--id", "watch", "--cron", "0 9 * * *", "--background", "Watch oil.")
	w.must("fire", "watch")
	message := fmt.Sprint(w.last()["id"], ".1")
	w.wants(w.read("delivered"), "Oil broke 75.")

	// an interactive fork branches main and peeks at the update, once
	say(text("Shall we go by train?"))
	w.must("fork", "start", "the trip")
	fork := lastRequest(t, api)
	if !fork.Has("Momo") || !fork.Has("read-only — main session will also see these") || !fork.Has("oil broke 75") {
		t.Errorf("the fork read %+v", fork.Messages)
	}
	say(text("By train."))
	w.must("chat", "yes")
	talk := lastRequest(t, api)
	if n := occurrences(talk, "oil broke 75"); n != 1 {
		t.Errorf("the fork reads the update %d times", n)
	}
	for name, r := range map[string]anthropicapi.Request{"first": fork, "second": talk} {
		if prefix(t, r) != prefix(t, main) {
			t.Errorf("the %s turn of the fork has another system prompt or other tools:\n%s\n%s", name, prefix(t, r), prefix(t, main))
		}
		if !bytes.Contains(r.Thinking, []byte(`"adaptive"`)) || bytes.Contains(main.Thinking, []byte(`"adaptive"`)) {
			t.Errorf("thinking of the fork is %s, of main %s", r.Thinking, main.Thinking)
		}
	}
	w.must("fork", "save")
	saved := w.read("state/sessions.json")
	if saved == first {
		t.Error("main is not the fork")
	}

	// main goes on from the fork and pops the update
	say(text("Noted."))
	if r := w.try("chat", "what is new?"); !strings.Contains(r.errOut, "catching up on background activity…") {
		t.Errorf("%+v", r)
	}
	popped := lastRequest(t, api)
	if !popped.Has("By train.") || !popped.Has("mention key findings in your response") || w.must("update", "list") != "" {
		t.Errorf("main read %+v", popped.Messages)
	}

	// a reply to the ping branches the background run, which knows nothing of what came after it
	w.pass(2 * time.Hour)
	say(text("Half is sold."))
	w.must("fork", "reply", message, "sell half")
	reply := lastRequest(t, api)
	if !reply.Has("Momo") || !reply.Has("Watch oil.") || !reply.Has("sell half") || !reply.Has("2 hours ago") || reply.Has("By train.") || occurrences(reply, "BACKGROUND UPDATES (") > 0 {
		t.Errorf("the reply's fork read %+v", reply.Messages)
	}
	if prefix(t, reply) != prefix(t, main) {
		t.Error("the reply's fork has another system prompt or other tools")
	}
	if r := w.try("fork", "save"); r.status != 75 {
		t.Errorf("save of a resumed fork: %+v", r)
	}
	say(anthropicapi.Use("report_updates", map[string]string{"message": "half of the oil is sold"}), text("Reported."))
	w.must("fork", "report")
	if w.openFork() != nil || w.read("state/sessions.json") != saved {
		t.Error("the fork is open, or main has changed, after a report")
	}
	say(text("Half is sold, I see."))
	w.must("chat", "and?")
	if r := lastRequest(t, api); !r.Has("half of the oil is sold") || r.Has("sell half") {
		t.Errorf("main read %+v", r.Messages)
	}

	// after a week the session has expired
	w.pass(7*24*time.Hour + time.Hour)
	say(text("Which oil?"))
	if r := w.try("fork", "reply", message, "sell the rest"); r.status != 0 || !strings.Contains(r.errOut, "this session has expired — starting fresh with quoted context") {
		t.Errorf("%+v", r)
	}
	expired := lastRequest(t, api)
	if !expired.Has("By train.") || !expired.Has("Oil broke 75.") || expired.Has("Watch oil.") {
		t.Errorf("the fresh fork read %+v", expired.Messages)
	}
	w.must("fork", "exit")
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// TestChatWaitsForASave: a message that waits for a turn of the fork, which is ended meanwhile, is answered in main.
func TestChatWaitsForASave(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	api.Reply(anthropicapi.Reply{Text: "Hello."})
	w.must("chat", "hi")
	hold, asked, ended := make(chan struct{}), make(chan struct{}), make(chan result, 2)
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		if r.Has("goodbye") {
			return anthropicapi.Reply{Text: "in main"}
		}
		close(asked)
		return anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}}, Hold: hold}
	})
	go func() { ended <- w.run("fork", "start", "a plan") }()
	<-asked
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "ok"} })
	exited := make(chan result, 1)
	go func() { exited <- w.run("fork", "exit") }()
	go func() { ended <- w.run("chat", "goodbye") }()
	close(hold)
	for range 2 {
		if r := <-ended; r.status != 0 || !strings.Contains(r.out, "ok") {
			t.Errorf("%+v", r)
		}
	}
	if r := <-exited; r.status != 0 {
		t.Errorf("exit: %+v", r)
	}
	if w.openFork() != nil {
		t.Error("the fork is open")
	}
	for _, r := range w.runs() {
		if r["outcome"] != "ok" {
			t.Errorf("a run ended %v: %v", r["outcome"], r["error"])
		}
	}
}
