package prompt

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/state/update"
)

// TestPastIsBuiltAgain: a prompt that is built from the inputs of a recorded one has the same text, whatever they are.
func TestPastIsBuiltAgain(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 3, 2, 9, 30, 0, 0, zone)
	background := Task{Tag: "routine-bg:a", Body: "Look.\n\nTwice.", Background: true, Persistent: true, AllowPing: true, Update: job.Freely}
	branch, hook := background, background
	branch.Persistent, branch.Branch = false, true
	hook.Persistent, hook.Webhook, hook.Body = false, true, "Look at {repo}, and {other}."
	full := budget.Status{Available: 3, Capacity: 5}
	for name, in := range map[string]Input{
		"own words": {Task: Task{Body: "hi\n\nthere"}, Updates: Updates{List: []update.Update{{TS: now.Add(-90 * time.Minute), Message: "oil\n- (2 hours ago) fell"}, {TS: now, Message: "gas"}}}},
		"button":    {Task: Task{Tag: "button", Body: "pressed"}},
		"session": {
			Task: background, Context: Context{Tokens: 61_234, Full: 120_000, Growth: 2100}, Budget: full, Forward: forecast.Forward{Hours: 3}, Session: Compacted,
			CutOff:  []CutOff{{At: now.Add(-time.Hour), Text: "a\nb", Why: "stopped (by a new message)"}},
			Piped:   Piped{Questions: []question.Question{{Text: "Red?\n1. yes", Asked: now.Add(-26 * time.Hour), Expires: now.Add(time.Hour)}, {Text: "Blue?", Asked: now.Add(-time.Hour), Expires: now.Add(-time.Minute)}}},
			Updates: Updates{List: []update.Update{{TS: now.Add(-72 * time.Hour), Message: "one"}}, Kept: true},
		},
		"lost":         {Task: background, Session: Lost, Budget: full},
		"not compact":  {Task: background, Session: CompactionFailed, Budget: full},
		"branch":       {Task: branch, Busy: true, Budget: budget.Status{}, Forward: forecast.Forward{Refills: 2}},
		"late":         {Task: branch, Late: now.Add(-time.Hour), Budget: full},
		"gate":         {Task: branch, Budget: full, Gate: "two\n\n  lines"},
		"carried over": {Task: Task{Body: "hi"}, Carried: &Carried{Engine: "native", Messages: []transcript.Message{transcript.Said(transcript.User, "a\n\nb"), transcript.Said(transcript.Assistant, "c")}}},
		"payload": {Task: hook, Budget: full, Payload: []payload.Datum{
			{Key: "repo", Value: json.RawMessage(`"ollim"`)}, {Key: "an \"odd\": key", Value: json.RawMessage(`{"a":[1,"x\ny"]}`)}, {Key: "n", Value: json.RawMessage("1")},
		}},
		"no payload": {Task: hook, Budget: full},
		"piped":      {Task: Task{Body: "How many?"}, Piped: Piped{Text: "one\n\n two\n", Fence: Fence("id")}},
		"piped text": {Task: branch, Budget: full, Piped: Piped{Text: "one\n\ntwo"}},
		"files": {Task: Task{Body: "See."}, Piped: Piped{Named: []File{
			{Name: "a, b.txt", Type: "text/plain; charset=utf-8", Size: 12, Text: "x\n\ny"}, {Name: "p.png", Type: "image/png", Size: 1_234_567}, {Name: "q", Type: "application/zip", Size: 4321},
		}}},
		"answer": {Task: background, Piped: Piped{Answer: &question.Question{Text: "Which?", Choices: []string{"red", "green"}, Answer: "green\n\nor so", Asked: now.Add(-3 * time.Hour), Answered: now.Add(-2 * time.Minute)}}},
	} {
		in.Now = now
		built := Build(in)
		past := Past{Run: "id", Near: now.Add(-40 * time.Minute), Pings: in.Task.AllowPing}
		for _, s := range built {
			past.Sections = append(past.Sections, runlog.Section{Kind: s.Kind, Text: s.Text})
		}
		if in.Piped.Answer != nil {
			past.Sections = Continued(built.Text())
		}
		if at := past.Now(zone); !at.Truncate(time.Minute).Equal(now) {
			t.Errorf("%s: the time is %s", name, at)
		}
		again := Input{Task: in.Task, Now: past.Now(zone), Late: in.Late, Busy: in.Busy, Updates: Updates{Kept: in.Updates.Kept}}
		if in.Piped.Answer != nil {
			again.Piped.Answer = &question.Question{}
		}
		if got := Build(past.Fill(again)).Text(); got != built.Text() {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, built.Text())
		}
		if tag := past.Tag(); in.Late.IsZero() && in.Piped.Answer == nil && tag != in.Task.Tag {
			t.Errorf("%s: the tag is %q, want %q", name, tag, in.Task.Tag)
		}
	}
}

// TestPastForkIsDescribedAgain: what the first message of a fork describes is read from its text.
func TestPastForkIsDescribedAgain(t *testing.T) {
	t.Parallel()
	for _, f := range []Fork{
		{}, {Topic: "the trip"}, {Quote: "a\n\nb"}, {Quote: "q", Topic: "t"}, {Resumed: true, Quote: "q", Age: 2 * time.Hour}, {Resumed: true, Running: true, Quote: "q", Age: 5 * time.Minute},
	} {
		text := ForkStarted(f)
		for _, said := range []string{"", "hello\n\nthere"} {
			body := text
			if said != "" {
				body += "\n\n" + said
			}
			got, rest := PastFork(body)
			if ForkStarted(got) != text || rest != said {
				t.Errorf("%+v: got %+v, %q", f, got, rest)
			}
		}
	}
	for _, firm := range []bool{false, true} {
		for _, ofMain := range []bool{false, true} {
			text := ForkTimeout(20*time.Minute, firm, ofMain)
			if got := ForkTimeout(PastTimeout(text)); got != text {
				t.Errorf("got %q, want %q", got, text)
			}
		}
	}
}

// TestSectionsOf: sections that do not fit the text are no sections.
func TestSectionsOf(t *testing.T) {
	t.Parallel()
	for _, parts := range [][]runlog.Part{nil, {{Kind: "body", At: 0, Bytes: 9}}, {{Kind: "body", At: -1, Bytes: 1}}, {{Kind: "body", At: 2, Bytes: 1}, {Kind: "data", At: 1, Bytes: 1}}} {
		if list, err := SectionsOf("text", parts); err == nil {
			t.Errorf("%v: %v", parts, list)
		}
	}
	if list, err := SectionsOf("a\n\nb\n", []runlog.Part{{Kind: "opening", At: 0, Bytes: 1}, {Kind: "body", At: 3, Bytes: 1}}); err != nil || len(list) != 2 || list[1] != (runlog.Section{Kind: "body", Text: "b"}) {
		t.Errorf("%v %v", list, err)
	}
}

// FuzzPast: no recorded prompt makes it fail.
func FuzzPast(f *testing.F) {
	for _, kind := range []string{KindOpening, KindNotes, KindUpdates, KindData, KindAnswer} {
		f.Add(kind, "[a] [2026-03-02 Mon 09:30 AM CET]\n- (1 days ago) x\nATTACHED FILES:\n  a: b, 1 kB; c\n- \"k\": 1")
	}
	f.Fuzz(func(_ *testing.T, kind, text string) {
		for _, hook := range []bool{false, true} {
			p := Past{Sections: []runlog.Section{{Kind: kind, Text: text}}, Near: time.Unix(0, 0)}
			Build(p.Fill(Input{Task: Task{Webhook: hook, Body: text}, Now: p.Now(time.UTC)}))
			p.Sections = Continued(text)
			Build(p.Fill(Input{Now: p.Now(time.UTC)}))
		}
		PastFork(text)
		PastTimeout(text)
	})
}
