package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestMute: an agent that does not answer the handshake does not hang the run.
func TestMute(t *testing.T) {
	w := newWorld(t, "mute")
	w.Idle = time.Second / 4
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, err := w.askFor(ctx, engine.Request{}, "say x"); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "has sent nothing for 250ms") {
		t.Errorf("got %v", err)
	}
}

// asked is a turn whose agent asks for a use of bash. judge decides it.
func asked(ctx context.Context, judge func(ctx context.Context, t *turn) (string, error)) (t *turn, out *strings.Builder) {
	return askedFor(ctx, "execute", judge)
}

// askedFor is asked for a use of a kind.
func askedFor(ctx context.Context, kind string, judge func(ctx context.Context, t *turn) (string, error)) (t *turn, out *strings.Builder) {
	out = &strings.Builder{}
	t = &turn{ctx: ctx, listening: true, known: make(chan struct{}), conn: &conn{out: out}, stop: func() {}, sink: func(e runlog.Event) error {
		t.text += fmt.Sprintln(e.Type, e.Tool, e.Text, e.IsError)
		return nil
	}}
	t.tools = verdicts{judge: func(ctx context.Context) (string, error) { return judge(ctx, t) }}
	t.heard(request(kind, "echo hi"))
	t.deciding.Wait()
	return t, out
}

func request(kind, command string) message {
	return message{ID: json.RawMessage("1"), Method: "session/request_permission", Params: json.RawMessage(fmt.Sprintf(`{"toolCall": {"toolCallId": "u", "kind": %q,
		"rawInput": {"command": %q}}, "options": [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]}`, kind, command))}
}

type verdicts struct {
	tools

	judge func(ctx context.Context) (string, error)
}

func (v verdicts) Verdict(ctx context.Context, _, _ string, _ json.RawMessage) (string, error) {
	return v.judge(ctx)
}

// TestChanged: a use whose input changes while it is judged is judged again, and refused if that goes on: a command, and a tool of which
// ollim knows nothing.
func TestChanged(t *testing.T) {
	changed(t, "execute")
	changed(t, "other")
}

func changed(t *testing.T, kind string) {
	t.Helper()
	for most, want := range map[int]string{0: "yes", 1: "yes", 9: "no"} {
		n := 0
		tn, out := askedFor(t.Context(), kind, func(_ context.Context, tn *turn) (string, error) {
			if n++; n <= most {
				tn.heard(message{Method: "session/update", Params: json.RawMessage(fmt.Sprintf(`{"update": {"sessionUpdate": "tool_call_update",
					"toolCallId": "u", "rawInput": {"command": "echo %d"}}}`, n))})
			}
			return "", nil
		})
		if !strings.Contains(out.String(), want) || n != min(most+1, mostAsked) || want == "no" && !strings.Contains(tn.uses["u"].denied, "has changed") {
			t.Errorf("%s: %d changes: judged %d times: %s", kind, most, n, out.String())
		}
	}
}

// TestStopWhileAsked: the end of the run refuses a use that waits for the owner, and is no error of its own.
func TestStopWhileAsked(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	tn, out := asked(ctx, func(ctx context.Context, _ *turn) (string, error) {
		stop()
		<-ctx.Done()
		return "", ctx.Err()
	})
	if !strings.Contains(out.String(), `"no"`) || tn.fatal != nil {
		t.Errorf("got %s, %v", out.String(), tn.fatal)
	}
}

func status(kind, id, status string) message {
	return message{Method: "session/update", Params: json.RawMessage(fmt.Sprintf(`{"update": {"sessionUpdate": %q, "toolCallId": %q, "status": %q, "title": "bash"}}`, kind, id, status))}
}

// TestRefused: a use that was refused has ended, although the agent reports nothing more of it. It must not be executed all the same.
func TestRefused(t *testing.T) {
	tn, _ := asked(t.Context(), func(context.Context, *turn) (string, error) { return "not allowed", nil })
	want := "tool_use Bash  false\ntool_result Bash not allowed true\n"
	if tn.text != want || tn.using() || tn.unasked() != nil {
		t.Errorf("got %s, in use: %t, %v", tn.text, tn.using(), tn.unasked())
	}
	tn.heard(status(toolUpdate, "u", failed))
	if tn.text != want || tn.unasked() != nil {
		t.Errorf("got %s, %v", tn.text, tn.unasked())
	}
	tn.heard(status(toolUpdate, "u", completed))
	if err := tn.unasked(); tn.text != want || !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), "although ollim has refused it: not allowed") {
		t.Errorf("got %s, %v", tn.text, err)
	}
}

// TestReusedID: a use with the id of one that has ended is another use, with its own name and its own judgement.
func TestReusedID(t *testing.T) {
	n := 0
	tn, _ := asked(t.Context(), func(context.Context, *turn) (string, error) { n++; return []string{"", "not allowed", ""}[n-1], nil })
	tn.heard(status(toolUpdate, "u", completed))
	for range 2 { // without and with an announcement
		tn.heard(request("execute", "echo more"))
		tn.deciding.Wait()
		tn.heard(status(toolCall, "u", "pending"))
	}
	first, second := tn.order[0], tn.order[1]
	if len(tn.order) != 3 || !first.allowed || !first.done || second.denied == "" || second.text("command") != "echo more" || !tn.order[2].allowed || tn.order[2].own != "bash" {
		t.Errorf("got %d uses: %+v, %+v", len(tn.order), first, second)
	}
}

// TestClosed: what an agent sends after the end of its turn does not count, and a request of it is refused.
func TestClosed(t *testing.T) {
	var out strings.Builder
	tn := &turn{listening: true, tools: tools{}, known: make(chan struct{}), conn: &conn{out: &out}, stop: func() {}, sink: func(runlog.Event) error { return nil }}
	say := func(text string) {
		params := fmt.Sprintf(`{"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": %q}}}`, text)
		tn.heard(message{Method: "session/update", Params: json.RawMessage(params)})
	}
	say("in time")
	tn.rest()
	say(", late")
	tn.heard(request("execute", "echo hi"))
	tn.rest()
	if err := tn.flush(); err != nil || tn.text != "in time" || !strings.Contains(out.String(), `"no"`) || len(tn.order) > 0 {
		t.Errorf("got %v, %q, %s, %d uses", err, tn.text, out.String(), len(tn.order))
	}
}

// checkRetry: a session that begins with a summary has it although its first turn failed, and the failed prompt is not in the conversation.
func checkRetry(t *testing.T, w *world, r engine.Request) {
	t.Helper()
	c, err := w.Compact(t.Context(), r, "say sum", func(runlog.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	next := engine.Request{Session: engine.Session{ID: c.Session}}
	if _, err := w.ask(next, "fail 429"); err == nil {
		t.Error("the first turn has not failed")
	}
	if _, err := w.ask(next, "say x"); err != nil {
		t.Error(err)
	}
	result, err := w.ask(next, "past")
	if want := "Summary of the conversation so far:\n\nsum\n\nsay x"; err != nil || result.Text != want {
		t.Errorf("got %q, %v", result.Text, err)
	}
	if entries, err := Entries(w.Home, c.Session); err != nil || len(entries) != 5 {
		t.Errorf("got %d entries, %v", len(entries), err)
	}
	if err := store.RemoveAll(t.Context(), string(w.folder(c.Session))); err != nil {
		t.Error(err)
	}
}

// TestNoModel: an agent without a key is not started, and what it says without asking a model is no answer.
func TestNoModel(t *testing.T) {
	w := newWorld(t, "free")
	if result, err := w.ask(engine.Request{}, "say x"); err != nil || result.Text != "x" {
		t.Errorf("got %+v, %v", result, err)
	}
	w.Profile.Usage = true
	if _, err := w.ask(engine.Request{}, "say no luck"); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "no model was asked: no luck") {
		t.Errorf("got %v", err)
	}
	if _, err := w.ask(engine.Request{}, "say 401 Unauthorized"); !errors.Is(err, engine.ErrKey) {
		t.Errorf("got %v", err)
	}
	if _, err := w.ask(engine.Request{}, "say half\ncut"); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %v", err)
	}
	w.Profile.Keys, w.Command, w.Sought = []string{"OLLIM_TEST_NO_SUCH_KEY"}, []string{"/nonexistent/agent"}, "in the environment"
	if _, err := w.ask(engine.Request{}, "say x"); !errors.Is(err, engine.ErrNoKey) || !strings.Contains(err.Error(), "OLLIM_TEST_NO_SUCH_KEY is set; in the environment") {
		t.Errorf("got %v", err)
	}
}

// TestMaxTurns: a tool that the last answer uses is not used, and the limit counts the answers of the prompt after a refusal too.
func TestMaxTurns(t *testing.T) {
	for _, c := range []struct {
		most, uses int // uses that the agent has made in the end
		prompt     string
		reached    bool
	}{
		{1, 0, "say a\nsay b", false},
		{1, 0, "bash echo 1\nsay b", true},
		{2, 1, "bash echo 1\nsay b", false},
		{2, 1, "say a\nbash echo 1\nbash echo 2\nsay b", true},
		{3, 2, "bash echo 1\nbash echo 2\nsay b", false},
		{1, 0, "bash rm -r /", true},
		{2, 0, "bash rm -r /", false},
	} {
		w := newWorld(t)
		_, err := w.ask(engine.Request{Limits: engine.Limits{MaxTurns: c.most}}, c.prompt)
		if errors.Is(err, engine.ErrMaxTurns) != c.reached || !c.reached && err != nil {
			t.Errorf("%d, %q: got %v", c.most, c.prompt, err)
		}
		if n := strings.Count(w.told(), " did echo"); n != c.uses {
			t.Errorf("%d, %q: %d uses:\n%s", c.most, c.prompt, n, w.told())
		}
	}
}

// TestSearchOfProtected: without a seal no search begins where a protected place would be found, also through a link.
func TestSearchOfProtected(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{"state", "notes"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(home, "notes", "up")); err != nil {
		t.Fatal(err)
	}
	asked := ask{}
	asked.Options = append(asked.Options, struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	}{"yes", allowOnce})
	judge := func(hidden []string, tool string, input object) string {
		tn := &turn{ctx: t.Context(), root: home, hidden: hidden, tools: verdicts{judge: func(context.Context) (string, error) { return "", nil }}}
		reason, err := tn.judge(&use{}, named{tool, []object{input}}, true, asked)
		if err != nil {
			t.Error(err)
		}
		return reason
	}
	hidden := []string{filepath.Join(home, "state"), "/proc"}
	for _, tool := range []string{"Grep", "Glob"} {
		for dir, refused := range map[string]bool{"": true, home: true, "/": true, home + "/state": true, home + "/notes": false, home + "/notes/up": true} {
			input := object{"pattern": "x"}
			if dir != "" {
				input["path"] = dir
			}
			if got := judge(hidden, tool, input); strings.Contains(got, "is protected") != refused {
				t.Errorf("%s %s: got %q", tool, dir, got)
			}
			if got := judge(nil, tool, input); got != "" {
				t.Errorf("%s %s: sealed: got %q", tool, dir, got)
			}
		}
	}
	if got := judge(hidden, "Read", object{"file_path": home}); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestOwnErrors: an error of ollim's own keeps its type, and its numbers are not those of a service.
func TestOwnErrors(t *testing.T) {
	w := newWorld(t)
	full := &store.NotWritten{Path: "/run-429/events.jsonl", Err: errors.New("no space left on device")}
	r := engine.Request{Input: engine.Input{Prompt: "say x"}, Run: engine.Run{ID: w.run}, Scope: engine.Scope{Root: string(w.Home)}}
	_, err := w.Run(t.Context(), r, tools{}, func(e runlog.Event) error {
		if e.Type == runlog.UsageEvent {
			return full
		}
		return nil
	})
	var got *store.NotWritten
	if !errors.As(err, &got) {
		t.Errorf("got %v", err)
	}
}
