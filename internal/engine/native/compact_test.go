package native_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func compact(instructions string) anthropicapi.Reply {
	return anthropicapi.Use("compact_session", map[string]string{"instructions": instructions})
}

// grown is a session of a few turns.
func (s *stage) grown() engine.Result {
	var r engine.Result
	for _, text := range []string{"AAPL is at 210", "MSFT is at 400", "and now"} {
		s.api.Reply(anthropicapi.Reply{Text: "noted: " + text})
		r = s.says(engine.Request{Input: engine.Input{Prompt: text}, Session: engine.Session{ID: r.Session}}, "noted: "+text)
	}
	return r
}

// TestCompactInTurn: the agent compacts its session and goes on in the same turn, in the new one.
func TestCompactInTurn(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	before := read(t, s.path(old.Session))
	s.api.Reply(compact("keep: AAPL, MSFT\nprices"), anthropicapi.Reply{Text: "AAPL 210, MSFT 400"}, anthropicapi.Reply{Text: "done"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "compact"}, Session: engine.Session{ID: old.Session}}, "done")
	if r.Session == old.Session {
		t.Fatal("the session did not move")
	}
	if !strings.HasPrefix(string(read(t, s.path(old.Session))), string(before)) {
		t.Error("the old transcript was changed")
	}
	said := s.conversation(r.Session)
	if !strings.Contains(said[0], "AAPL 210, MSFT 400") || said[len(said)-1] != "assistant text done" {
		t.Errorf("%q", said)
	}
	file, err := s.Sessions.Find(r.Session)
	if err != nil {
		t.Fatal(err)
	}
	line, err := s.Sessions.Lineage(file)
	if err != nil || len(line) != 2 || line[len(line)-1].ID != old.Session && line[0].ID != old.Session {
		t.Errorf("%v %v", line, err)
	}
	types := []string{}
	for _, e := range s.events {
		if e.Type != runlog.Request {
			types = append(types, string(e.Type))
		}
	}
	same(t, types, []string{"session", "usage", "tool_use", "usage", "compacted", "tool_result", "text", "usage", "result"})
	// and once more, from there
	s.api.Reply(anthropicapi.Reply{Text: "later"})
	s.says(engine.Request{Input: engine.Input{Prompt: "next"}, Session: engine.Session{ID: r.Session}}, "later")
}

func (s *stage) path(id string) string {
	s.t.Helper()
	file, err := s.Sessions.Find(id)
	if err != nil {
		s.t.Fatal(err)
	}
	return file.Path
}

// TestCompactTwice: a second use in one answer is refused, and the instructions are those of the first.
func TestCompactTwice(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	use := func(name, instructions string) anthropicapi.ToolUse {
		return anthropicapi.ToolUse{Name: name, Input: map[string]string{"instructions": instructions}}
	}
	s.api.Reply(
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{use("ping_user", "keep: GOOG")}},
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{use("ping_user", ""), use("compact_session", "keep: AAPL"), use("compact_session", "keep: MSFT")}},
		anthropicapi.Reply{Text: "AAPL 210"}, anthropicapi.Reply{Text: "done"})
	if r := s.says(engine.Request{Input: engine.Input{Prompt: "compact"}, Session: engine.Session{ID: old.Session}}, "done"); r.Session == old.Session {
		t.Error("the session was not compacted")
	}
	same(t, s.tools.calls, []string{`ping_user {"instructions":"keep: GOOG"}`, `ping_user {"instructions":""}`, `compact_session {"instructions":"keep: AAPL"}`})
	requests := s.api.Requests()
	if asked := requests[len(requests)-2].LastUserText(); !strings.HasSuffix(asked, "keep: AAPL") {
		t.Errorf("asked for a summary: %s", asked)
	}
	if last := requests[len(requests)-1]; !last.Has("compact_session was already called in this answer") {
		t.Errorf("the second use: %s", last.Raw)
	}
}

// TestCompactRefused: a summary that lost a pinned name is asked for once more, and then refused; nothing is changed.
func TestCompactRefused(t *testing.T) {
	for name, replies := range map[string][]anthropicapi.Reply{
		"lost a pin": {{Text: "MSFT 400"}, {Text: "still nothing"}},
		"empty":      {{Text: " "}, {}},
		"an error":   {{Status: 400, Message: "no"}},
		"a tool":     {anthropicapi.Use("ping_user", nil), anthropicapi.Use("ping_user", nil)},
		"talk":       {{Text: "AAPL, let me look", ToolUses: []anthropicapi.ToolUse{{Name: "ping_user"}}}, {Text: "AAPL again", ToolUses: []anthropicapi.ToolUse{{Name: "ping_user"}}}},
		"refusal":    {{Text: "AAPL", StopReason: "refusal"}},
		"in a name":  {{Text: "AAPLX and XAAPL"}, {Text: "AAPL_2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			old := s.grown()
			s.api.Reply(slices.Concat([]anthropicapi.Reply{compact("keep: AAPL")}, replies, []anthropicapi.Reply{{Text: "I go on"}})...)
			r := s.says(engine.Request{Input: engine.Input{Prompt: "compact"}, Session: engine.Session{ID: old.Session}}, "I go on")
			if r.Session != old.Session || len(s.tools.calls) != 1 {
				t.Errorf("session %s, calls %q", r.Session, s.tools.calls)
			}
			if reported := strings.Join(s.reported(), "\n"); !strings.Contains(reported, "compact_failed") || !strings.Contains(reported, "tool_result compact_session The compaction failed") {
				t.Error(reported)
			}
			if list, _, err := s.Sessions.List("", nil); err != nil || len(list) != 1 {
				t.Errorf("%d transcripts, %v", len(list), err)
			}
		})
	}
}

func TestCompactRetried(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	s.api.Reply(anthropicapi.Reply{Text: "MSFT"}, anthropicapi.Reply{Text: "AAPL"})
	c, err := s.Compact(t.Context(), engine.Request{Session: engine.Session{ID: old.Session}, Scope: engine.Scope{Root: "/work"}}, "Keep: AAPL", s.sink)
	if err != nil || c.Summary != "AAPL" || c.Session == old.Session || c.After >= c.Before {
		t.Errorf("%+v %v", c, err)
	}
	if q := s.api.Requests(); !strings.Contains(q[len(q)-1].LastUserText(), "contain literally: AAPL") {
		t.Error(q[len(q)-1].LastUserText())
	}
	s.api.Reply(anthropicapi.Reply{Text: "fine"})
	s.says(engine.Request{Input: engine.Input{Prompt: "next"}, Session: engine.Session{ID: c.Session}}, "fine")
	if _, err := s.Compact(t.Context(), engine.Request{Scope: engine.Scope{Root: "/work"}}, "x", s.sink); err == nil {
		t.Error("no session was compacted")
	}
}

// TestAutomatic: at 80 % of the window, in mid-turn too, the conversation is compacted without being asked for it.
func TestAutomatic(t *testing.T) {
	s := newStage(t)
	first := s.grown()
	s.api.Reply(
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: "b", Name: "ping_user"}}, Usage: anthropicapi.Usage{In: 3100, Out: 150}},
		anthropicapi.Reply{Text: "the summary"},
		anthropicapi.Reply{Text: "done", Usage: anthropicapi.Usage{In: 100, Out: 10}},
	)
	r := s.says(engine.Request{Input: engine.Input{Prompt: "work"}, Session: engine.Session{ID: first.Session}}, "done")
	if r.Session == first.Session {
		t.Fatal("the session did not move")
	}
	said := s.conversation(r.Session)
	if !strings.Contains(said[0], "the summary") || !slices.Contains(said, "assistant tool_use ping_user") || !slices.Contains(said, "user tool_result done ping_user") {
		t.Errorf("%q", said)
	}
	if len(s.tools.calls) != 1 {
		t.Errorf("calls %q", s.tools.calls)
	}
}

// TestNotYet: below 80 % of the window the conversation stays; what tools answered since the service counted is counted, too. A model
// that is not known has one of 100,000 tokens.
func TestNotYet(t *testing.T) {
	for _, tc := range []struct {
		model      string
		in, result int // tokens and bytes
		moves      bool
	}{
		{"tiny", 3000, 10, false}, {"tiny", 2000, 4000, false}, {"tiny", 2000, 8000, true},
		{"nowhere", 79_000, 10, false}, {"nowhere", 80_000, 10, true},
	} {
		s := newStage(t)
		first := s.grown()
		s.tools.on = func(string) *engine.ToolResult { return &engine.ToolResult{Text: strings.Repeat("x ", tc.result/2)} }
		s.api.Reply(anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: "b", Name: "ping_user"}}, Usage: anthropicapi.Usage{In: tc.in, Out: 100}})
		s.api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
			if strings.Contains(q.LastUserText(), "replaced by a summary") {
				return anthropicapi.Reply{Text: "the summary"}
			}
			return anthropicapi.Reply{Text: "done"}
		})
		if r := s.says(engine.Request{Input: engine.Input{Prompt: "work"}, Session: engine.Session{ID: first.Session}, Model: engine.Model{Name: tc.model}}, "done"); (r.Session != first.Session) != tc.moves {
			t.Errorf("%+v: moved %v", tc, !tc.moves)
		}
	}
}

// TestCramped: a conversation that cannot be compacted is tried once in a turn, not before every answer.
func TestCramped(t *testing.T) {
	s := newStage(t)
	first := s.grown()
	tries, answers := 0, 0
	s.api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if strings.Contains(q.LastUserText(), "replaced by a summary") {
			tries++
			return anthropicapi.Reply{Text: " "}
		}
		if answers++; answers > 3 {
			return anthropicapi.Reply{Text: "done"}
		}
		return anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: fmt.Sprint("u", answers), Name: "ping_user"}}, Usage: anthropicapi.Usage{In: 3300, Out: 100}}
	})
	if r := s.says(engine.Request{Input: engine.Input{Prompt: "work"}, Session: engine.Session{ID: first.Session}}, "done"); r.Session != first.Session || tries != 2 {
		t.Errorf("asked for %d summaries, session %s", tries, r.Session)
	}
}

// TestTooLong: a service that finds the conversation too long is asked again with a shorter one, once.
func TestTooLong(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	tooLong := anthropicapi.Reply{Status: 400, Message: "prompt is too long: 5000 tokens > 4000 maximum"}
	s.api.Reply(tooLong, anthropicapi.Reply{Text: "the summary"}, anthropicapi.Reply{Text: "done"})
	if r := s.says(engine.Request{Input: engine.Input{Prompt: "work"}, Session: engine.Session{ID: old.Session}}, "done"); r.Session == old.Session {
		t.Error("the session did not move")
	}
	// and once more when it has grown again
	s.api.Reply(tooLong, anthropicapi.Reply{Text: "the summary"}, anthropicapi.Use("ping_user", nil), tooLong, anthropicapi.Reply{Text: "the summary"}, anthropicapi.Reply{Text: "done"})
	s.says(engine.Request{Input: engine.Input{Prompt: "work"}, Session: engine.Session{ID: old.Session}}, "done")
	s.api.Reply(tooLong, tooLong, anthropicapi.Reply{Text: "the summary"}, tooLong)
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "more"}, Session: engine.Session{ID: old.Session}}); err == nil || errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestCostOfSummary: what a summary costs counts before the next question.
func TestCostOfSummary(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	s.api.Reply(compact("prices"), anthropicapi.Reply{Text: "the summary", Usage: anthropicapi.Usage{In: 7000, Out: 1}})
	n := len(s.api.Requests())
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "compact"}, Session: engine.Session{ID: old.Session}, Limits: engine.Limits{MaxCost: 0.008}}); !errors.Is(err, engine.ErrMaxCost) {
		t.Error(err)
	}
	if got := len(s.api.Requests()) - n; got != 2 {
		t.Errorf("%d requests", got)
	}
}

// TestCompactUnwritten: a compaction whose transcript cannot be written leaves the session as it was, and says so.
func TestCompactUnwritten(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	path := s.path(old.Session)
	s.tools.on = func(string) *engine.ToolResult { // from here on there is no directory for a new one
		folder := filepath.Dir(path)
		if err := errors.Join(os.Rename(folder, folder+"-away"), os.WriteFile(folder, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	s.api.Reply(compact("prices"), anthropicapi.Reply{Text: "the summary"})
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "compact"}, Session: engine.Session{ID: old.Session}}); err == nil {
		t.Error("no error, though the transcript is gone")
	}
	for _, e := range s.events {
		if e.Type == runlog.Compacted || e.Type == runlog.ToolResult && !e.IsError {
			t.Errorf("%+v", e)
		}
	}
}

// TestPins: what lines of the instructions pin, in the ways that people and models write them.
func TestPins(t *testing.T) {
	for instructions, summary := range map[string]string{
		"keep: ZZZ":                       "ZZZ",
		"Shorten.\r\nKEEP : ZZZ, 12\r\n":  "12: ZZZ",
		"* keep: `ZZZ`.":                  "ZZZ",
		"- **keep:** \"ZZZ\", 2026-03-14": "at 2026-03-14, ZZZ",
		"> keep: ZZZ-1":                   "(ZZZ-1)",
		"keep: größe, 東京":                 "die größe, 東京",
		"keep the prices: ZZZ":            "nothing",
		"keep:":                           "nothing",
	} {
		s := newStage(t)
		old := s.grown()
		s.api.Reply(anthropicapi.Reply{Text: summary})
		if c, err := s.Compact(t.Context(), engine.Request{Session: engine.Session{ID: old.Session}, Scope: engine.Scope{Root: "/work"}}, instructions, s.sink); err != nil || c.Summary != summary {
			t.Errorf("%q: %+v %v", instructions, c, err)
		}
		s.api.Reply(anthropicapi.Reply{Text: "none"}, anthropicapi.Reply{Text: "ZZZZ 121 ZZZ2 größen"})
		_, err := s.Compact(t.Context(), engine.Request{Session: engine.Session{ID: old.Session}, Scope: engine.Scope{Root: "/work"}}, instructions, s.sink)
		if pinned := summary != "nothing"; (err != nil) != pinned {
			t.Errorf("%q: %v, want an error: %v", instructions, err, pinned)
		}
	}
}

// TestFollow: whoever continues with a session by its old id goes where a compaction has taken it, where that is wanted.
func TestFollow(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	ids := []string{old.Session}
	for range 2 {
		s.api.Reply(anthropicapi.Reply{Text: "the summary"})
		c, err := s.Compact(t.Context(), engine.Request{Session: engine.Session{ID: ids[len(ids)-1]}, Scope: engine.Scope{Root: "/work"}}, "x", s.sink)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.Session)
	}
	for follow, from := range map[bool]string{true: ids[2], false: ids[0]} {
		s.api.Reply(anthropicapi.Reply{Text: "a branch"})
		branch := s.says(engine.Request{Input: engine.Input{Prompt: "b"}, Session: engine.Session{ID: ids[0], Fork: true, Follow: follow}}, "a branch")
		file, err := s.Sessions.Find(branch.Session)
		if err != nil || file.ParentID != from {
			t.Errorf("a branch of %s of %q, %v", file.ParentID, ids, err)
		}
	}
	s.api.Reply(anthropicapi.Reply{Text: "yes"})
	if r := s.says(engine.Request{Input: engine.Input{Prompt: "go on"}, Session: engine.Session{ID: ids[0], Follow: true}}, "yes"); r.Session != ids[2] {
		t.Errorf("went on in %s of %q", r.Session, ids)
	}
	s.api.Reply(anthropicapi.Reply{Text: "no"})
	if r := s.says(engine.Request{Input: engine.Input{Prompt: "go on"}, Session: engine.Session{ID: ids[0]}}, "no"); r.Session != ids[0] {
		t.Errorf("went on in %s of %q", r.Session, ids)
	}
}

// TestSummaryWithoutThoughts: a service that does not take the wish for thoughts makes a summary, too.
func TestSummaryWithoutThoughts(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	s.api.Reply(anthropicapi.Reply{Status: 400, Message: "thinking: adaptive is not supported"}, anthropicapi.Reply{Text: "the summary"})
	c, err := s.Compact(t.Context(), engine.Request{Session: engine.Session{ID: old.Session}, Scope: engine.Scope{Root: "/work"}, Model: engine.Model{Thinking: "true"}}, "x", s.sink)
	if err != nil || c.Summary != "the summary" {
		t.Errorf("%+v, %v", c, err)
	}
	requests := s.api.Requests()
	if n := len(requests); requests[n-2].Thinking == nil || requests[n-1].Thinking != nil {
		t.Errorf("%s, then %s", requests[n-2].Thinking, requests[n-1].Thinking)
	}
}

// TestPoison: a question that is too long for the model does not make the session useless.
func TestPoison(t *testing.T) {
	s := newStage(t)
	s.api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if len(q.Raw) > 20_000 {
			return anthropicapi.Reply{Status: 400, Message: "prompt is too long: 5000 tokens > 4000 maximum"}
		}
		return anthropicapi.Reply{Text: "fine"}
	})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "one"}, Model: engine.Model{Name: "unpriced"}}, "fine")
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: strings.Repeat("too much ", 5000)}, Session: engine.Session{ID: r.Session}, Model: engine.Model{Name: "unpriced"}}); !errors.Is(err, provider.ErrTooLong) {
		t.Fatal(err)
	}
	for range 2 {
		r = s.says(engine.Request{Input: engine.Input{Prompt: "small"}, Session: engine.Session{ID: r.Session, Follow: true}, Model: engine.Model{Name: "unpriced"}}, "fine")
	}
}

// TestForkOfACompactedTurn: a turn that was compacted on the way is not over. A branch reads nothing of it, also not by the summary.
func TestForkOfACompactedTurn(t *testing.T) {
	for name, kept := range map[string]bool{"in its summary": false, "at its beginning": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			old := s.grown()
			replies := slices.Repeat([]anthropicapi.Reply{anthropicapi.Use("ping_user", nil)}, 8) // more than stays beside the summary
			replies = append(replies, compact("keep it"), anthropicapi.Reply{Text: "The owner wants the invoice sent."})
			if kept {
				replies = []anthropicapi.Reply{{Status: 400, Message: "prompt is too long"}, {Text: "The owner likes shares."}}
			}
			s.api.Reply(replies...)
			fork := ""
			s.api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
				if fork != "" {
					return anthropicapi.Reply{Text: "looked"}
				}
				list, _, err := s.Sessions.List("", nil)
				if err != nil || len(list) != 2 {
					t.Errorf("%d transcripts, %v", len(list), err)
				}
				next, err := list[0].Successor()
				if err != nil {
					next, err = list[1].Successor()
				}
				if err != nil {
					t.Error(err)
				}
				from, entries, err := s.Sessions.Complete(next)
				if err != nil {
					t.Error(err)
				}
				made, err := s.Sessions.Create(transcript.Header{ID: "n-fork", Cwd: "/work", Timestamp: s.Now(), ParentID: from.ID}, entries...)
				if err != nil {
					t.Error(err)
				}
				fork = made.ID
				return anthropicapi.Reply{Text: "done"}
			})
			s.says(engine.Request{Input: engine.Input{Prompt: "send the invoice"}, Session: engine.Session{ID: old.Session}}, "done")
			if said := strings.Join(s.conversation(fork), "\n"); strings.Contains(said, "invoice") || !strings.Contains(said, "AAPL") && !kept {
				t.Errorf("the branch reads\n%s", said)
			}
			last := s.api.Requests()[len(s.api.Requests())-1]
			for _, m := range last.Messages {
				if texts := len(m.Content); m.Role == "user" && texts > 1 {
					t.Errorf("one message of the user holds %+v", m.Content)
				}
			}
		})
	}
}
