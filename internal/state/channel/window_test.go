package channel

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestGroupsLeaveWhole: a call never leaves without its results, and no result stays without its call.
func TestGroupsLeaveWhole(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	turn := w.begin(n, "first")
	for _, id := range []string{"a", "b", "c"} {
		turn.Call(ToolCall{ID: id, Name: "look"})
	}
	turn.Answer("seen")
	if err := turn.End(); err != nil { // a question, an answer with three results
		t.Fatal(err)
	}
	for i := range 22 {
		w.say(n, numbered("q%d", i), "a")
	}
	w.say(n, "q22", "a") // 51: the first question leaves
	if s := w.session(n); len(s.Messages) != 50 || len(s.Messages[0].ToolCalls) != 3 {
		t.Fatalf("%d messages: %s", len(s.Messages), brief(s.Messages[:6]))
	}
	w.begin(n, "q23")
	if s := w.session(n); len(s.Messages) != 47 || s.Messages[0].Content != "q0" {
		t.Errorf("%d messages: %s", len(s.Messages), brief(s.Messages[:6]))
	}
}

// TestRunningTurnStays: of a turn with more than 50 messages nothing leaves before the next one.
func TestRunningTurnStays(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	w.say(n, "earlier", "yes")
	turn := w.begin(n, "look 40 times")
	for i := range 40 {
		turn.Call(ToolCall{ID: numbered("%d", i), Name: "look"})
		turn.Result(numbered("%d", i), "seen", false)
	}
	turn.Answer("done")
	if err := turn.End(); err != nil {
		t.Fatal(err)
	}
	if s := w.session(n); len(s.Messages) != 82 || s.Messages[0].Content != "look 40 times" || s.Messages[81].Content != "done" {
		t.Errorf("%d messages: %s", len(s.Messages), brief(s.Messages[:3]))
	}
	next := w.begin(n, "and now?")
	if before := next.Messages(); len(before) != 49 || len(before[0].ToolCalls) != 1 || before[48].Content != "done" {
		t.Errorf("the next turn reads %d messages: %s", len(before), brief(before[:3]))
	}
}

// TestInterruptedTurn: what was said stays, and a call without a result has one that says so.
func TestInterruptedTurn(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	turn := w.begin(n, "go")
	turn.Answer("I look.")
	turn.Call(ToolCall{ID: "a", Name: "look"})
	turn.Call(ToolCall{ID: "b", Name: "write"})
	turn.Result("a", "seen", false)
	turn.Result("unknown", "x", false)
	if err := turn.End(); err != nil {
		t.Fatal(err)
	}
	wantBrief(t, w.session(n).Messages, "user:go assistant:I look.+look+write(failed) tool_result:seen tool_result:"+Unanswered)
}

// TestAnswers: what the model says at once is one answer, also where a tool is used before the next one; what follows a question to
// the model is another.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	turn := w.begin(n, "go")
	use := func(id string) {
		turn.Call(ToolCall{ID: id, Name: id})
		turn.Result(id, "seen", false)
	}
	use("a")
	use("b")
	for range 2 {
		turn.Ask()
		turn.Answer("I look.")
		use("c")
		use("d")
	}
	turn.Answer("So.")
	use("e")
	use("f")
	if err := turn.End(); err != nil {
		t.Fatal(err)
	}
	const both = " assistant:I look.+c+d tool_result:seen tool_result:seen"
	wantBrief(t, w.session(n).Messages, "user:go assistant:+a tool_result:seen assistant:+b tool_result:seen"+both+both+
		" assistant:So.+e tool_result:seen assistant:+f tool_result:seen")
}

// TestRestart: a turn that the engine begins anew keeps the user's message alone.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	turn := w.begin(n, "go")
	turn.Answer("half of")
	turn.Call(ToolCall{ID: "a", Name: "look"})
	turn.Restart()
	turn.Call(ToolCall{ID: "a", Name: "look"})
	turn.Result("a", "seen", false)
	if err := turn.End(); err != nil {
		t.Fatal(err)
	}
	wantBrief(t, w.session(n).Messages, "user:go assistant:+look tool_result:seen")
}

// TestWindow: after any turns each call has its result, in order, nothing of the last turn is missing, and what else there is are the
// newest messages, at most 50 in all.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		n := telegram(t)
		said, last := "", 0
		for i := range rapid.IntRange(1, 25).Draw(rt, "turns") {
			turn := w.begin(n, numbered("q%d", i))
			for c := range rapid.IntRange(0, 12).Draw(rt, "calls") {
				id := numbered("%d", c)
				turn.Call(ToolCall{ID: id, Name: "look"})
				if rapid.Bool().Draw(rt, "answered") {
					turn.Result(id, "seen", false)
				}
			}
			turn.Answer("a")
			if err := turn.End(); err != nil {
				rt.Fatal(err)
			}
			s := w.session(n).Messages
			at := len(s) - 1
			for s[at].Role != User {
				at--
			}
			last, said = len(s)-at, said+" "+brief(s[at:])
		}
		s := w.session(n).Messages
		if len(s) > maxMessages && len(s) > last {
			rt.Errorf("%d messages, %d of the last turn", len(s), last)
		}
		if !strings.HasSuffix(said, " "+brief(s)) {
			rt.Errorf("%s\nis no end of\n%s", brief(s), said)
		}
		calls := 0
		for _, m := range s {
			if m.Role == ToolResult {
				calls--
			} else if calls != 0 {
				rt.Fatalf("%d calls have no result: %s", calls, brief(s))
			}
			calls += len(m.ToolCalls)
		}
	})
}

// FuzzLoad: any file is read as a session or refused as a whole; a session that was read is written so that it is read as the same.
func FuzzLoad(f *testing.F) {
	const head = `{"session_id":"telegram_123456789","channel":"telegram","chat_id":"123456789","created_at":"2026-02-14T10:30:00Z","last_accessed":"2026-02-14T15:45:00+01:00","messages":`
	for _, text := range []string{
		head + `[]}`, head + `null}`, head + `[{"role":"user","content":"hi","timestamp":"2026-02-14T15:45:00Z","tool_calls":null}]}`,
		head + `[{"role":"assistant","tool_calls":[{"id":"a","name":"x","input":{"a":[1]}},{}]},{"role":"tool_result"},{"role":"tool_result"}]}`,
		head + `[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"x","arguments":"{\"a\":[1]}"}},{"name":"y","arguments":"<"}]}]}`,
		head + `[{"role":"tool_result"}]}`, "", "{}", "null", "[]", head,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t)
		n := telegram(t)
		w.write(n, string(data))
		before, err := w.book.Read(n)
		turn := w.begin(n, "hi")
		if endErr := turn.End(); endErr != nil {
			t.Fatal(endErr)
		}
		s := w.session(n)
		if warned := len(w.warned()); (err == nil) != (warned == 0) || warned > 1 {
			t.Fatalf("%v, warned %q", err, w.warned())
		}
		if last := s.Messages[len(s.Messages)-1]; last.Content != "hi" || err != nil && len(s.Messages) != 1 {
			t.Errorf("%+v", s)
		}
		if kept := min(len(before.Messages), len(s.Messages)-1); err == nil && kept > 0 {
			want, _ := json.Marshal(before.Messages[len(before.Messages)-kept:])
			got, _ := json.Marshal(s.Messages[len(s.Messages)-1-kept : len(s.Messages)-1])
			if string(got) != string(want) {
				t.Errorf("%s\nwas written as\n%s", want, got)
			}
		}
	})
}
