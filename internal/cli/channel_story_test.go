package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// telegram is the beginning of a command line of a turn in a channel.
func telegram(words ...string) []string {
	return append([]string{"chat", "--channel", "telegram", "--chat-id", "987"}, words...)
}

// window is the messages of the session of telegram, each as role:content.
func (w *world) window() string {
	w.t.Helper()
	var s channel.Session
	if err := json.Unmarshal([]byte(w.read("state/channels/telegram_987.json")), &s); err != nil {
		w.t.Fatal(err)
	}
	var words []string
	for _, m := range s.Messages {
		words = append(words, m.Role+":"+m.Content)
	}
	return strings.Join(words, "|")
}

// conversed is what a model reads, each message as role:content.
func conversed(r anthropicapi.Request) string {
	var words []string
	for _, m := range r.Messages {
		for _, b := range m.Content {
			words = append(words, m.Role+":"+b.Text+b.ResultText+b.Name)
		}
	}
	return strings.Join(words, "|")
}

// TestChannelTurns: the window is the context of the next turn, byte for byte as the model has read it; there are no tools, no profile
// and no session besides.
func TestChannelTurns(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("IDENTITY.md", "PROFILE")
	api.Reply(anthropicapi.Reply{Text: "Hello Ada."}, anthropicapi.Reply{Text: "Ada."}, anthropicapi.Reply{Text: "Hi."})
	if out := w.must(telegram("I am Ada")...); out != "Hello Ada.\n" {
		t.Errorf("it printed %q", out)
	}
	if r := w.pipe("Who am I?\n", telegram()...); r.status != 0 || r.out != "Ada.\n" {
		t.Errorf("%+v", r)
	}
	want := "user:[2026-03-02 Mon 10:00 AM UTC]\n\nI am Ada\n|assistant:Hello Ada.|user:[2026-03-02 Mon 10:00 AM UTC]\n\nWho am I?\n"
	r := lastRequest(t, api)
	if got := conversed(r); got != want {
		t.Errorf("the model read %q", got)
	}
	if len(r.Tools) > 0 || strings.Contains(r.System, "PROFILE") || !strings.Contains(r.System, "chat channel") {
		t.Errorf("%d tools, system prompt %q", len(r.Tools), r.System)
	}
	if got := w.window(); got != "user:I am Ada|assistant:Hello Ada.|user:Who am I?|assistant:Ada." {
		t.Errorf("stored %q", got)
	}
	w.write("CHANNEL.md", "Answer in verse.\n")
	w.must("chat", "--channel", "telegram", "--chat-id", "1", "hi")
	if r := lastRequest(t, api); r.System != "Answer in verse." || len(r.Messages) != 1 {
		t.Errorf("another chat: %q, %q", r.System, conversed(r))
	}
	if files, _ := filepath.Glob(filepath.Join(w.dir, "sessions/*")); len(files) > 0 || w.read("state/session_history.jsonl") != "" {
		t.Errorf("there is a session besides: %q", files)
	}
	w.write("CHANNEL.md", strings.Repeat("x", 2<<20))
	if r := w.run(telegram("hi")...); r.status != 1 || !strings.Contains(r.errOut, "CHANNEL.md: larger than") {
		t.Errorf("%+v", r)
	}
}

// TestChannelTools: the tools of the configuration are there and judged; calls and results are saved, loaded by the next process, and
// part of its prompt.
func TestChannelTools(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("notes.md", "the key is under the mat")
	w.must("config", "set", "channels.allowed-tools", "Read(./notes.md)")
	api.Reply(
		anthropicapi.Reply{Text: "I look.", ToolUses: []anthropicapi.ToolUse{
			{ID: "toolu_1", Name: "Read", Input: map[string]any{"file_path": "notes.md"}},
			{ID: "toolu_2", Name: "Read", Input: map[string]any{"file_path": "config.yaml"}},
		}},
		anthropicapi.Reply{Text: "Under the mat."}, anthropicapi.Reply{Text: "Yes."},
	)
	w.must(telegram("where is the key?")...)
	w.must(telegram("sure?")...)
	r := lastRequest(t, api)
	if len(r.Tools) != 1 || len(r.Messages) != 5 {
		t.Fatalf("%d tools, read %q", len(r.Tools), conversed(r))
	}
	uses, results := r.Messages[1].Content[1:], r.Messages[2].Content
	if len(uses) != 2 || len(results) != 2 || string(uses[1].Input) != `{"file_path":"config.yaml"}` {
		t.Fatalf("read %q", conversed(r))
	}
	for i, failed := range []bool{false, true} {
		if uses[i].ID != results[i].ToolUseID || results[i].IsError != failed || strings.Contains(results[i].ResultText, "under the mat") == failed {
			t.Errorf("result %d: %+v of %+v", i, results[i], uses[i])
		}
	}
	if got := w.window(); !strings.Contains(got, "|assistant:I look.|tool_result:") || !strings.HasSuffix(got, "|assistant:Under the mat.|user:sure?|assistant:Yes.") {
		t.Errorf("stored %q", got)
	}
	if got := api.Violations(); len(got) > 0 {
		t.Errorf("violations %q", got)
	}
	w.write("config.yaml", w.read("config.yaml")+"\nchannels: {allowed-tools: [Bash]}\n")
	if r := w.run(telegram("hi")...); r.status != 78 || !strings.Contains(r.errOut, "config.yaml:") || !strings.Contains(r.errOut, "channels") {
		t.Errorf("%+v", r)
	}
}

// TestChannelInterrupted: what was said so far is stored, and the next turn reads a closed one without an open call.
func TestChannelInterrupted(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "channels.allowed-tools", "Read(./notes.md)")
	ctx, stop := context.WithCancel(t.Context())
	api.Reply(anthropicapi.Reply{Text: "I look.", ToolUses: []anthropicapi.ToolUse{{ID: "toolu_1", Name: "Read", Input: map[string]any{"file_path": "notes.md"}}}})
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		stop()
		return anthropicapi.Reply{Hold: make(chan struct{})}
	})
	var out, errOut bytes.Buffer
	if status := execute(ctx, w.deps(strings.NewReader(""), &out, &errOut), telegram("go")); status != 130 {
		t.Errorf("exit status %d: %s", status, errOut.String())
	}
	if got := w.window(); !strings.HasPrefix(got, "user:go|assistant:I look.|tool_result:") {
		t.Errorf("stored %q", got)
	}
	api.Reply(anthropicapi.Reply{Status: 400}, anthropicapi.Reply{Text: "done"})
	if r := w.run(telegram("on")...); r.status == 0 {
		t.Errorf("%+v", r)
	}
	w.must(telegram("again")...)
	r := lastRequest(t, api)
	oneSpeaker(t, r, "[2026-03-02 Mon 10:")
	if n := len(r.Messages); n != 7 || strings.Count(conversed(r), "cut off") != 2 || len(api.Violations()) > 0 {
		t.Errorf("%d messages: %q, violations %q", n, conversed(r), api.Violations())
	}
	if got := w.window(); !strings.HasSuffix(got, "|user:on|user:again|assistant:done") {
		t.Errorf("stored %q", got)
	}
}

// TestChannelIsAutomatic: pauses and limits hold a channel turn back, also one that the owner types; its message is not stored then.
func TestChannelIsAutomatic(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("pause")
	if r := w.run(telegram("hi")...); r.status != 75 {
		t.Errorf("paused: %+v", r)
	}
	w.must("resume")
	w.must("config", "set", "spend.runs-per-day", "0")
	if r := w.run(telegram("hi")...); r.status != 77 {
		t.Errorf("at the limit: %+v", r)
	}
	if got := w.read("state/channels/telegram_987.json"); got != "" || len(api.Requests()) > 0 {
		t.Errorf("stored %q, %d requests", got, len(api.Requests()))
	}
}

// TestChannelNotSaved: the answer is printed, and the exit status says that the session is not on disk.
func TestChannelNotSaved(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	w := newWorld(t)
	w.script("turns:\n  - - text: hello\n")
	dir := filepath.Join(w.dir, "state/channels")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	r := w.run(telegram("hi")...)
	if r.status != 74 || r.out != "hello\n" || strings.Count(r.errOut, "permission denied") != 2 || !strings.Contains(r.errOut, "tried again") {
		t.Errorf("%+v", r)
	}
	if got := w.last()["outcome"]; got != "ok" {
		t.Errorf("outcome %v", got)
	}
}

// TestChannelConcurrent: turns of one chat that are taken at once wait for each other, and none loses a message.
func TestChannelConcurrent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: yes\n")
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if r := w.run(telegram("hi")...); r.status != 0 || r.out != "yes\n" {
				t.Errorf("%+v", r)
			}
		})
	}
	all.Wait()
	if got, want := w.window(), strings.Repeat("|user:hi|assistant:yes", 12)[1:]; got != want {
		t.Errorf("stored %q", got)
	}
}

// TestChannelCommands: names, lists and removal.
func TestChannelCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: yes\n")
	for _, chat := range []string{"../x", "a/b", "😀", "987"} {
		w.must("chat", "--channel", "telegram", "--chat-id", chat, "hi")
	}
	for name, args := range map[string][]string{
		"upper case": {"--channel", "Telegram", "--chat-id", "1"}, "long": {"--channel", "x", "--chat-id", strings.Repeat("x", 300)},
		"no chat": {"--channel", "x"}, "no channel": {"--chat-id", "1"}, "empty": {"--channel", "x", "--chat-id", ""}, "empty channel": {"--channel", ""},
	} {
		if r := w.run(append(append([]string{"chat"}, args...), "hi")...); r.status != 64 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := w.run(telegram()...); r.status != 64 || !strings.Contains(r.errOut, "no message") {
		t.Errorf("%+v", r)
	}
	want := `telegram_987	2026-03-02 10:00:04	2	idle
telegram_%F0%9F%98%80	2026-03-02 10:00:03	2	idle
telegram_a%2Fb	2026-03-02 10:00:02	2	idle
telegram_..%2Fx	2026-03-02 10:00:01	2	idle
`
	if got := w.must("session", "list", "--channels"); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := w.must("session", "list", "--channels", "--json"); !strings.Contains(got, `{"session":"telegram_a%2Fb","channel":"telegram","chat_id":"a/b",`) {
		t.Errorf("got\n%s", got)
	}
	if got := w.must("session", "id", "telegram_a%2Fb"); got != "telegram_a/b\n" {
		t.Errorf("id %q", got)
	}
	if r := w.try("session", "id", "telegram_none"); r.status != 66 {
		t.Errorf("id of no session: %+v", r)
	}
	if got := w.must("session", "show", "telegram_a%2Fb"); !strings.Contains(got, "session\ttelegram_a%2Fb\nid\ttelegram_a/b\nstate\tidle\nbegun\t2026-03-02 10:00:02\n") {
		t.Errorf("got\n%s", got)
	}
	w.must("session", "rm", "telegram_a%2Fb", "telegram_987")
	if got := w.must("session", "list", "--channels"); strings.Count(got, "\n") != 2 {
		t.Errorf("got\n%s", got)
	}
	w.write("state/channels/telegram_1.json", "{")
	for _, args := range [][]string{{"session", "show", "telegram_987"}, {"session", "rm", "telegram_987"}} {
		if r := w.run(args...); r.status != 66 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := w.run("session", "show", "telegram_1"); r.status != 65 {
		t.Errorf("%+v", r)
	}
	if r := w.run("session", "list", "--channels"); r.status != 0 || strings.Count(r.out, "\n") != 2 || !strings.Contains(r.errOut, "telegram_1.json: not a session") {
		t.Errorf("%+v", r)
	}
	if r := w.run("session", "list", "--channels", "--all"); r.status != 64 {
		t.Errorf("%+v", r)
	}
	defer w.inRun()()
	if r := w.run("session", "list", "--channels"); r.status != 77 {
		t.Errorf("in a run: %+v", r)
	}
}
