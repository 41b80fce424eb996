package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// world is an engine over the agent of this test, and what it reports.
type world struct {
	*Engine

	t      *testing.T
	run    string
	events []runlog.Event
}

func newWorld(t *testing.T, words ...string) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := paths.Dir(t.TempDir())
	w := &world{t: t, run: "20260302T090000.000Z-" + strings.ToLower(rand.Text()), Engine: &Engine{
		Name: "test", Command: append([]string{self, "agent"}, words...), Self: "/bin/true", Home: home, Grace: 2 * time.Second,
		Env: os.Environ(), Models: model.Known(), Disk: store.Disk{Now: time.Now},
		Profile: Profile{
			Name: "test", Agent: "Test", Mode: "asks", Denial: true, AsksAll: true, Tools: map[string]string{"bash": "Bash"},
			Promises: engine.Guarantees{Asks: engine.AsksAll, Branch: true},
			Env:      []string{"AGENT_STATE=${state}", "AGENT_TEXT=${text}"}, Session: `{}`,
		},
	}}
	if err := os.MkdirAll(home.Run(w.run), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) ask(r engine.Request, prompt string) (engine.Result, error) {
	w.t.Helper()
	return w.askFor(w.t.Context(), r, prompt)
}

func (w *world) askFor(ctx context.Context, r engine.Request, prompt string) (engine.Result, error) {
	w.t.Helper()
	w.events = nil
	r.Run.ID, r.Input.Prompt, r.Scope.Root = w.run, prompt, string(w.Home)
	result, err := w.Run(ctx, r, tools{}, func(e runlog.Event) error { w.events = append(w.events, e); return nil })
	if left := process.Carrying("OLLIM_RUN=" + w.run); len(left) > 0 {
		w.t.Errorf("processes are left: %v", left)
	}
	return result, err
}

// told returns the events as lines.
func (w *world) told() string {
	var lines []string
	for _, e := range w.events {
		line := string(e.Type)
		if e.Tool != "" {
			line += " " + e.Tool + " " + string(e.Input)
		}
		if e.Text != "" {
			line += " " + e.Text
		}
		if e.IsError {
			line += " !"
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

// tools allow commands that begin with echo.
type tools struct{ engine.Tools }

func (tools) List() []engine.Tool { return nil }

func (tools) Verdict(_ context.Context, tool, _ string, input json.RawMessage) (string, error) {
	var in struct{ Command string }
	if err := json.Unmarshal(input, &in); err != nil {
		return "", err
	}
	if tool == "Bash" && strings.HasPrefix(in.Command, "echo ") {
		return "", nil
	}
	return fmt.Sprintf("%s: %s is not allowed", tool, in.Command), nil
}

func TestTurn(t *testing.T) {
	w := newWorld(t)
	var heard []string
	r := engine.Request{Input: engine.Input{Delta: func(text string) error { heard = append(heard, text); return nil }}}
	result, err := w.ask(r, "say a\nsay b\nbash echo hi\nsay c")
	if err != nil || result.Text != "c" || engine.Holder(result.Session) != "acp:test" || len(result.Messages) != 3 || strings.Join(heard, "") != "abc" {
		t.Errorf("got %+v, %v, heard %v", result, err, heard)
	}
	want := "session\nrequest\ntext ab\ntool_use Bash {\"command\":\"echo hi\"}\ntool_result Bash  did echo hi\ntext c\nusage\nresult c"
	if got := w.told(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if w.events[0].Version != "1.2.3" || w.events[6].Usage.In != 1000 {
		t.Errorf("got %+v", w.events)
	}
	entries, err := Entries(w.Home, result.Session)
	if err != nil || len(entries) != 4 || entries[0].Message.Role != transcript.User || entries[3].Message.Text() != "c" {
		t.Errorf("got %+v, %v", entries, err)
	}
}

// TestDenied: a refused use is not executed, no lasting option is chosen, and the agent, whose turn ends, is told why.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	result, err := w.ask(engine.Request{}, "bash rm -r /\nsay not reached")
	if err != nil {
		t.Fatal(err)
	}
	want := "session\nrequest\ntool_use Bash {\"command\":\"rm -r /\"}\ntool_result Bash  Bash: rm -r / is not allowed !\nusage\nrequest\nusage\nresult"
	if got := w.told(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again, err := w.ask(engine.Request{Session: engine.Session{ID: result.Session}}, "past")
	if err != nil || !strings.Contains(again.Text, "ollim has refused a use of a tool: Bash: rm -r / is not allowed\n") {
		t.Errorf("got %+v, %v", again, err)
	}
}

// TestUnasked: a use without a request ends the run, because the agent's configuration is not in force, also one that has failed, unless it
// fails so before the agent asks.
func TestUnasked(t *testing.T) {
	w := newWorld(t)
	if _, err := w.ask(engine.Request{}, "quiet echo hi"); !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), "the tool bash without asking") {
		t.Errorf("got %v", err)
	}
	w.Profile.Early = "^bash: bad input"
	for prompt, unasked := range map[string]bool{"unasked bad input": false, "unasked no such file": true, "unasked-read bad input": true} {
		if _, err := w.ask(engine.Request{}, prompt); unasked != (err != nil) || unasked && !errors.Is(err, engine.ErrSetup) {
			t.Errorf("%s: got %v", prompt, err)
		}
	}
}

func TestMode(t *testing.T) {
	for words, want := range map[string]string{"yolo": "", "yolo stubborn": `is in the mode "yolo" instead of "asks"`} {
		w := newWorld(t, strings.Fields(words)...)
		_, err := w.ask(engine.Request{}, "bash echo hi")
		if want == "" && err != nil || want != "" && (!errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", words, err)
		}
		if want != "" && strings.Contains(w.told(), "tool_use") {
			t.Errorf("%s: a tool was used:\n%s", words, w.told())
		}
	}
}

// TestSessions: a session is continued and branched, by each of the methods that agents have, and a replay is not taken for an answer.
func TestSessions(t *testing.T) {
	for _, words := range []string{"", "loads"} {
		w := newWorld(t, strings.Fields(words)...)
		first, err := w.ask(engine.Request{}, "say one")
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.ask(engine.Request{Session: engine.Session{ID: first.Session}}, "past")
		if err != nil || second.Session != first.Session || second.Text != "say one" || strings.Count(w.told(), "text say one") != 1 {
			t.Errorf("%q: got %+v, %v:\n%s", words, second, err, w.told())
		}
		branch, err := w.ask(engine.Request{Session: engine.Session{ID: first.Session, Fork: true}}, "past")
		if err != nil || branch.Session == first.Session || branch.Text != "say one\npast" {
			t.Errorf("%q: got %+v, %v", words, branch, err)
		}
		third, err := w.ask(engine.Request{Session: engine.Session{ID: first.Session}}, "past")
		if err != nil || third.Text != "say one\npast" {
			t.Errorf("%q: the branch has changed the session: %+v, %v", words, third, err)
		}
		list, err := Sessions(w.Home)
		if err != nil || len(list) != 2 || !slices.ContainsFunc(list, func(s transcript.Summary) bool { return s.ParentID == first.Session && s.ID == branch.Session }) {
			t.Errorf("%q: got %+v, %v", words, list, err)
		}
	}
}

// TestBranchOfBusySession: a branch has the complete turns, while another turn is in progress.
func TestBranchOfBusySession(t *testing.T) {
	w := newWorld(t)
	first, err := w.ask(engine.Request{}, "say one")
	if err != nil {
		t.Fatal(err)
	}
	f := w.folder(first.Session)
	if err := f.begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	n, err := f.read()
	if err == nil {
		err = os.WriteFile(f.path("state", n.Agent), []byte("half of a turn"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	branch, err := w.ask(engine.Request{Session: engine.Session{ID: first.Session, Fork: true}}, "past")
	if err != nil || branch.Text != "say one" {
		t.Errorf("got %+v, %v", branch, err)
	}
}

func TestUnknownSession(t *testing.T) {
	w := newWorld(t)
	for id, want := range map[string]error{
		"a-test-0123456789ab": engine.ErrSessionUnknown, "a-other-0123456789ab": engine.ErrForeignSession, "n-0123456789ab": engine.ErrForeignSession,
	} {
		for _, fork := range []bool{false, true} {
			if _, err := w.ask(engine.Request{Session: engine.Session{ID: id, Fork: fork}}, "say x"); !errors.Is(err, want) {
				t.Errorf("%s: got %v", id, err)
			}
		}
	}
	first, err := w.ask(engine.Request{}, "say one")
	if err == nil {
		err = os.RemoveAll(w.folder(first.Session).path("state"))
	}
	if _, again := w.ask(engine.Request{Session: engine.Session{ID: first.Session}}, "say x"); err != nil || !errors.Is(again, engine.ErrSessionUnknown) {
		t.Errorf("got %v, %v", err, again)
	}
}

// TestNoBranch: a branch of a session whose agent cannot be branched is refused, and no agent starts.
func TestNoBranch(t *testing.T) {
	w := newWorld(t)
	w.Profile.Promises.Branch = false
	if _, err := w.ask(engine.Request{Session: engine.Session{ID: "a-test-0123456789ab", Fork: true}}, "say x"); !errors.Is(err, engine.ErrSetup) || len(w.events) > 0 {
		t.Errorf("got %v, %+v", err, w.events)
	}
}

func TestUnknownMethod(t *testing.T) {
	w := newWorld(t)
	if result, err := w.ask(engine.Request{}, "write /tmp/x"); err != nil || result.Text != "-32601" {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestCompact(t *testing.T) {
	w := newWorld(t)
	first, err := w.ask(engine.Request{}, "say one")
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Request{Run: engine.Run{ID: w.run}, Session: engine.Session{ID: first.Session}, Scope: engine.Scope{Root: string(w.Home)}}
	c, err := w.Compact(t.Context(), r, "keep it\nsay the summary", func(runlog.Event) error { return nil })
	if err != nil || c.Summary != "the summary" || c.Session == first.Session {
		t.Fatalf("got %+v, %v", c, err)
	}
	next, err := w.ask(engine.Request{Session: engine.Session{ID: c.Session}}, "env AGENT_STATE")
	if err != nil || next.Session != c.Session {
		t.Fatalf("got %+v, %v", next, err)
	}
	last, err := w.ask(engine.Request{Session: engine.Session{ID: c.Session}}, "past")
	if want := "Summary of the conversation so far:\n\nthe summary\n\nenv AGENT_STATE"; err != nil || last.Text != want {
		t.Errorf("got %+v, %v", last, err)
	}
	checkRetry(t, w, r)
	if _, err := w.Compact(t.Context(), r, "nothing to say", func(runlog.Event) error { return nil }); err == nil || !strings.Contains(err.Error(), "no summary") {
		t.Errorf("got %v", err)
	}
	if list, err := Sessions(w.Home); err != nil || len(list) != 2 {
		t.Errorf("got %+v, %v", list, err)
	}
}

func TestCost(t *testing.T) {
	w := newWorld(t)
	first, err := w.ask(engine.Request{Limits: engine.Limits{MaxCost: 1}}, "cost")
	if err != nil || first.Cost != 0.4 {
		t.Errorf("got %+v, %v", first, err)
	}
	if _, err := w.ask(engine.Request{Limits: engine.Limits{MaxCost: 1, Spent: 0.4}}, "cost\ncost\nhang"); !errors.Is(err, engine.ErrMaxCost) {
		t.Errorf("got %v", err)
	}
	w.Profile.Name = ""
	w.Trusted = true
	if unpriced, err := w.ask(engine.Request{}, "say x"); err != nil || unpriced.Cost != 0 || !slices.ContainsFunc(w.events, func(e runlog.Event) bool { return e.Unpriced }) {
		t.Errorf("got %+v, %v", unpriced, err)
	}
}

func TestStop(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	r := engine.Request{Input: engine.Input{Delta: func(string) error { stop(why); return nil }}}
	if _, err := w.askFor(ctx, r, "say half\nhang"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(w.told(), "text half") {
		t.Errorf("what was said is not in the record:\n%s", w.told())
	}
}

func TestFaults(t *testing.T) {
	for prompt, want := range map[string]error{
		"fail Internal error: invalid x-api-key":                     engine.ErrKey,
		"fail model: nosuch not found":                               engine.ErrModel,
		"fail Internal error: Internal server error":                 engine.ErrUnavailable,
		`fail {"error": {"code": 500, "message": "broken"}}`:         engine.ErrUnavailable,
		"fail Unable to connect. Is the computer able to access it?": engine.ErrUnavailable,
		"hang": engine.ErrUnavailable,
		"away": engine.ErrUnavailable,
	} {
		w := newWorld(t)
		if prompt == "hang" || prompt == "away" {
			w.Idle = time.Second / 4
		}
		_, err := w.ask(engine.Request{}, prompt)
		const trouble = "waiting for network: connection refused"
		for prompt == "away" && err != nil && !strings.Contains(err.Error(), trouble) && w.Idle < time.Minute { // the agent has hardly begun
			w.Idle *= 2
			_, err = w.ask(engine.Request{}, prompt)
		}
		if !errors.Is(err, want) || prompt == "away" && !strings.Contains(err.Error(), trouble) {
			t.Errorf("%s: got %v", prompt, err)
		}
	}
	w := newWorld(t)
	var busy *engine.Overloaded
	if _, err := w.ask(engine.Request{}, "fail 429 Too many requests"); !errors.As(err, &busy) {
		t.Errorf("got %v", err)
	}
	if _, err := w.ask(engine.Request{}, "die out of luck"); err == nil || !strings.Contains(err.Error(), "exit status 3): out of luck") {
		t.Errorf("got %v", err)
	}
	if _, err := w.ask(engine.Request{}, "long"); err == nil || !strings.Contains(err.Error(), "a line of more than 33554432 bytes") {
		t.Errorf("got %v", err)
	}
	if _, err := newWorld(t, "two").ask(engine.Request{}, "say x"); !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), "version 2 of the protocol") {
		t.Errorf("got %v", err)
	}
	w.Profile.Agent = "Other"
	if _, err := w.ask(engine.Request{}, "say x"); !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), "is Test, and its profile is that of Other") {
		t.Errorf("got %v", err)
	}
	w.Command = []string{"/nonexistent/agent"}
	if _, err := w.ask(engine.Request{}, "say x"); !errors.Is(err, engine.ErrSetup) {
		t.Errorf("got %v", err)
	}
}

// TestUnprofiled: an agent that ollim does not know runs only where the seal holds it, or as the owner says.
func TestUnprofiled(t *testing.T) {
	w := newWorld(t)
	w.Profile = Unknown()
	if _, err := w.ask(engine.Request{}, "say x"); !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), "acp.test.trusted on") {
		t.Errorf("got %v", err)
	}
}

// TestProfiles: the profiles can be read, and the settings know the same.
func TestProfiles(t *testing.T) {
	if got := ProfileNames(); !slices.Equal(got, config.AgentProfiles()) {
		t.Errorf("the settings know %v, and there are %v", config.AgentProfiles(), got)
	}
	for name, p := range Profiles() {
		for _, only := range []bool{false, true} {
			g := newGiven("/s", "/c", "/c/system.md", "do it")
			text := p.config(g, engine.Input{System: "do it", SystemOnly: only}, []string{"Read"}) + fmt.Sprint(g.object(p.Session))
			for name, content := range p.Files {
				text += g.fill(name) + g.fill(content)
			}
			for _, entry := range p.Env {
				text += g.fill(entry)
			}
			if strings.Contains(text, "${") || !strings.Contains(text, "do it") && !strings.Contains(text, "/c/system.md") {
				t.Errorf("%s: got %s", name, text)
			}
		}
		if p.Agent == "" || p.Install == "" || len(p.Default) == 0 || len(p.Keys) == 0 || p.Promises.Asks == "" || len(p.Services) == 0 || !strings.Contains(p.Try.Input, "touch tried") {
			t.Errorf("%s: incomplete: %+v", name, p)
		}
	}
}
