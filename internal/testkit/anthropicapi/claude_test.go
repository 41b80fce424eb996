package anthropicapi

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// These tests run the real claude command against the server: they say that the wire format is the true one.

const (
	first  = "11111111-1111-4111-8111-111111111111"
	second = "22222222-2222-4222-8222-222222222222"
)

// desk is a place where claude runs.
type desk struct {
	*Server
	claude, dir string
	env         []string
}

func newDesk(t *testing.T) *desk {
	claude := Claude(t)
	s := New(t)
	return &desk{s, claude, t.TempDir(), ClaudeEnv(t, s)}
}

// outcome is what a run of claude left.
type outcome struct {
	exit     int
	took     time.Duration
	subtypes map[string]int // of its events of type system
	Subtype  string
	IsError  bool `json:"is_error"`
	Status   int  `json:"api_error_status"`
	Turns    int  `json:"num_turns"`
	Result   string
	Session  string `json:"session_id"`
	Usage    struct {
		In        int `json:"input_tokens"`
		Out       int `json:"output_tokens"`
		CacheRead int `json:"cache_read_input_tokens"`
	}
}

func (d *desk) run(t *testing.T, prompt string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	args = append([]string{"-p", "--output-format", "stream-json", "--verbose", "--model", "opus", "--setting-sources", ""}, args...)
	cmd := exec.CommandContext(ctx, d.claude, args...)
	var out, diag bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.env, d.dir, strings.NewReader(prompt), &out, &diag
	start := time.Now()
	_ = cmd.Run()
	o := outcome{exit: cmd.ProcessState.ExitCode(), took: time.Since(start), subtypes: map[string]int{}}
	for line := range bytes.Lines(out.Bytes()) {
		var e struct{ Type, Subtype string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("claude said %s", line)
		}
		switch e.Type {
		case "system":
			o.subtypes[e.Subtype]++
		case "result":
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if o.Subtype == "" {
		t.Fatalf("claude %q gave no result:\n%s\n%s", args, out.Bytes(), diag.Bytes())
	}
	return o
}

// transcript is the file of a session, or "".
func (d *desk) transcript(t *testing.T, session string) string {
	t.Helper()
	for _, kv := range d.env {
		if dir, ok := strings.CutPrefix(kv, "CLAUDE_CONFIG_DIR="); ok {
			paths, _ := filepath.Glob(filepath.Join(dir, "projects", "*", session+".jsonl"))
			if len(paths) == 1 {
				b, err := os.ReadFile(paths[0])
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
		}
	}
	return ""
}

// TestClaudeSession: a turn with tools, one that resumes it, a compaction into a fork and a turn after that.
func TestClaudeSession(t *testing.T) {
	t.Parallel()
	InCI(t)
	d := newDesk(t)
	d.turnWithTools(t)

	d.Reply(Reply{Text: "And tea.", Usage: Usage{In: 7, Out: 11, CacheRead: 13}})
	o := d.run(t, "I drink tea", "--resume", first)
	q := d.Requests()[2]
	if o.exit != 0 || o.IsError || o.Result != "And tea." || o.Turns != 1 || o.Session != first || o.Usage.In != 7 || o.Usage.Out != 11 || o.Usage.CacheRead != 13 {
		t.Errorf("%+v", o)
	}
	if !q.Has("My colour is blue") || !q.Has("Blue, I see. äöü 🦊") || q.LastUserText() != "I drink tea" {
		t.Fatalf("resumed %+v: %+v", o, q.Messages)
	}

	d.Reply(Reply{Text: "for after the compaction"})
	before := d.transcript(t, first)
	o = d.run(t, "/compact keep the colour", "--resume", first, "--fork-session", "--session-id", second)
	if o.exit != 0 || o.IsError || o.subtypes["compact_boundary"] != 1 || o.Session != second || d.Left() != 1 {
		t.Errorf("compacted %+v, %d left", o, d.Left())
	}
	if q := d.Requests()[3]; !q.IsCompaction() || q.Instructions() != "keep the colour" || q.Session() != second {
		t.Errorf("%s asks %q", q.Session(), q.LastUserText())
	}
	if before == "" || d.transcript(t, first) != before {
		t.Error("the compaction changed the session that it forked from")
	}

	d.run(t, "which colour?", "--resume", second)
	if q := d.Requests()[4]; !q.Has("Instructions: keep the colour") || q.Has("My colour is blue") || !q.Has("And tea.") || !strings.HasSuffix(q.LastUserText(), "which colour?") {
		t.Errorf("after the compaction: %+v", q.Messages)
	}
}

// turnWithTools is the first turn of a session.
func (d *desk) turnWithTools(t *testing.T) {
	t.Helper()
	d.Reply(Reply{Thinking: "two calls", Text: "I look.", ToolUses: []ToolUse{
		{Name: "Bash", Input: map[string]string{"command": "echo one ä && touch made"}},
		{Name: "Bash", Input: map[string]string{"command": "echo two >&2; exit 3"}},
	}}, Reply{Text: "Blue, I see. äöü 🦊"})
	o := d.run(t, "My colour is blue", "--session-id", first, "--tools", "Bash", "--allowedTools", "Bash")
	if o.exit != 0 || o.IsError || o.Result != "Blue, I see. äöü 🦊" || o.Session != first || len(d.Requests()) != 2 {
		t.Fatalf("%+v, %d requests", o, len(d.Requests()))
	}
	if hits := strings.TrimPrefix(strings.Join(d.Hits(), ", "), "HEAD /, "); hits != "POST /v1/messages?beta=true, POST /v1/messages?beta=true" {
		t.Errorf("hits: %s", hits)
	}
	q := d.Requests()[0]
	if q.Key() != "test" || q.Session() != first || !q.Stream || !strings.HasSuffix("\n"+q.LastUserText(), "\nMy colour is blue") || !strings.Contains(q.System, "Claude") {
		t.Errorf("%s %s %q", q.Key(), q.Session(), q.LastUserText())
	}
	if _, err := os.Stat(filepath.Join(d.dir, "made")); err != nil {
		t.Error(err)
	}
	q = d.Requests()[1]
	r := q.ToolResults()
	if len(r) != 2 || r[0].ToolUseID != "toolu_1" || r[0].ResultText != "one ä" || r[0].IsError || !r[1].IsError || !strings.Contains(r[1].ResultText, "two") {
		t.Errorf("%+v", r)
	}
	if got := q.ToolNames(); !slices.Contains(got, "Bash") || slices.Contains(got, "Read") || !q.Has("two calls") {
		t.Errorf("tools %q, %+v", got, q.Messages)
	}
}

// TestClaudeSurvives: one turn in which each request but the last fails once, in another way each.
func TestClaudeSurvives(t *testing.T) {
	t.Parallel()
	InCI(t)
	d := newDesk(t)
	use := ToolUse{Name: "Bash", Input: map[string]string{"command": "true"}}
	d.Reply(
		Reply{Status: 429, RetryAfter: "1"}, Reply{ToolUses: []ToolUse{use}},
		Reply{Text: "x", Fault: apiserver.ErrorEvent, After: 1}, Reply{ToolUses: []ToolUse{use}},
		Reply{Text: "half of it", Fault: apiserver.Cut, After: 4}, Reply{ToolUses: []ToolUse{use}},
		Reply{Status: 401},
	)
	o := d.run(t, "go", "--tools", "Bash", "--allowedTools", "Bash")
	q := d.Requests()
	if !o.IsError || o.exit == 0 || o.Status != 401 || !strings.Contains(o.Result, "Invalid API key") || len(q) != 7 {
		t.Fatalf("%+v, %d requests", o, len(q))
	}
	if gap := q[1].At.Sub(q[0].At); gap < time.Second {
		t.Errorf("repeated after %s", gap)
	}
}

// TestClaudeFailures: each kind of failure ends as the reference says, or as the comment does.
func TestClaudeFailures(t *testing.T) {
	t.Parallel()
	InCI(t)
	for name, tc := range map[string]struct {
		replies  []Reply
		requests int
		ok       bool
		status   int
		says     string
	}{
		"401":             {[]Reply{{Status: 401}}, 1, false, 401, "Invalid API key"}, // not retried, as x-should-retry says
		"429":             {[]Reply{{Status: 429}, {Status: 429}}, 2, false, 429, "Request rejected (429)"},
		"429 then fine":   {[]Reply{{Status: 429, RetryAfter: "1"}, {Text: "fine"}}, 2, true, 0, "fine"},
		"529":             {[]Reply{{Status: 529}, {Status: 529}}, 2, false, 529, "529 Overloaded"},
		"cut":             {[]Reply{{Text: "half of it", Fault: apiserver.Cut, After: 4}, {Text: "whole"}}, 2, true, 0, "whole"},
		"error in stream": {[]Reply{{Text: "x", Fault: apiserver.ErrorEvent, After: 1}, {Text: "fine"}}, 2, true, 0, "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.Reply(tc.replies...)
			o := d.run(t, "go", "--tools", "")
			q := d.Requests()
			if o.IsError == tc.ok || (o.exit == 0) != tc.ok || o.Status != tc.status || !strings.Contains(o.Result, tc.says) || len(q) != tc.requests {
				t.Fatalf("%+v, %d requests", o, len(q))
			}
			if name == "429 then fine" {
				if gap := q[1].At.Sub(q[0].At); gap < time.Second {
					t.Errorf("repeated after %s", gap)
				}
			}
		})
	}
}
