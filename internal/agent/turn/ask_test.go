package turn

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// TestQuestion: a question reaches the engine as it was typed, and the record names what was typed in place of settings.
func TestQuestion(t *testing.T) {
	t.Parallel()
	schema, err := payload.ReadAnswer("schema", `{"type":"integer"}`)
	if err != nil {
		t.Fatal(err)
	}
	const fits = "It must be one JSON value that fits this JSON Schema, and nothing besides:\n"
	for what, c := range map[string]struct {
		q      Question
		o      Options
		system string
		typed  []string
	}{
		"plain":  {Question{}, Options{}, prompt.SystemQuestion, nil},
		"typed":  {Question{System: "Be brief."}, Options{Model: "haiku"}, "Be brief.", []string{runlog.TypedModel, runlog.TypedSystem}},
		"more":   {Question{More: "In Latin."}, Options{Model: "haiku"}, prompt.SystemQuestion + "\n\nIn Latin.", []string{runlog.TypedModel}},
		"schema": {Question{Schema: schema}, Options{}, fits + schema.Source(), nil},
	} {
		a := &agent{answers: []string{"7"}}
		r := runtest.New(t, a)
		root := t.TempDir()
		c.q.Text, c.q.Root, c.q.MaxTurns, c.o.Input, c.o.Owner = "Why?", root, 3, "piped\ntext", true
		c.q.Tools, c.q.Dirs = []string{"Read(./**)"}, []policy.Root{{Dir: "/srv", Writable: true}}
		record, err := New(r).Ask(t.Context(), c.q, c.o)
		if err != nil || len(a.asked) != 1 {
			t.Errorf("%s: asked %d times, %v", what, len(a.asked), err)
			continue
		}
		asked, fence := a.asked[0], prompt.Fence(record.ID)
		if in := asked.Input; !strings.HasSuffix(in.System, c.system) || !in.Awaited || !strings.Contains(in.Prompt, fence+"\npiped\ntext\n"+fence) || !strings.Contains(in.Prompt, "Why?") {
			t.Errorf("%s: asked %+v", what, in)
		}
		if asked.Limits.MaxTurns != 3 || asked.Limits.Patience != askPatience || asked.Scope.Root != root || len(asked.Scope.Dirs) != 1 || asked.Model.Name != c.o.Model {
			t.Errorf("%s: asked %+v", what, asked)
		}
		if record.Kind != runlog.Ask || record.Text != "7" || !slices.Equal(record.Typed, c.typed) || !slices.Equal(record.Tools, c.q.Tools) || !record.Owner {
			t.Errorf("%s: %+v", what, record)
		}
	}
}

// TestQuestionOfASession: a question continues its session, or branches it if it must stay as it is.
func TestQuestionOfASession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q     Question
		forks bool
		kept  bool
	}{
		{Question{}, false, true},
		{Question{Session: "s"}, false, true},
		{Question{Session: "s", Branch: true}, true, true},
		{Question{Session: "s", Fork: true}, true, true},
		{Question{Session: "s", Discard: true}, true, false},
		{Question{Discard: true}, false, false},
	} {
		a := &agent{}
		r := runtest.New(t, a)
		c.q.Text = "Why?"
		if _, err := New(r).Ask(t.Context(), c.q, Options{Owner: true}); err != nil || len(a.asked) != 1 {
			t.Errorf("%+v: asked %+v, %v", c.q, a.asked, err)
			continue
		}
		if s := a.asked[0].Session; s.ID != c.q.Session || s.Fork != c.forks || s.Discard == c.kept || s.Follow == c.q.Branch {
			t.Errorf("%+v: asked %+v", c.q, s)
		}
		_, err := transcript.Dir(r.Home.Sessions()).Find(map[bool]string{true: "s-fork", false: "s-1"}[c.forks])
		if kept := err == nil; c.q.Session == "" && kept != c.kept || c.forks && kept != c.kept {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
}

// TestAnswerThatDoesNotFit: an agent whose answer does not fit the schema answers once more, not twice.
func TestAnswerThatDoesNotFit(t *testing.T) {
	t.Parallel()
	schema, err := payload.ReadAnswer("schema", `{"type":"integer"}`)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for what, c := range map[string]struct {
		answers []string
		acts    func(n int, use func(tool, input string) error) error
		turns   int
		want    error
	}{
		"fits":       {[]string{"7"}, nil, 1, nil},
		"fits later": {[]string{"seven", "7"}, nil, 2, nil},
		"never":      {[]string{"seven", "Seven.", "7"}, nil, 2, ErrUnfit},
		"broken":     {[]string{"seven"}, func(n int, _ func(string, string) error) error { return map[int]error{2: broken}[n] }, 2, broken},
	} {
		a := &agent{answers: c.answers, acts: c.acts}
		record, err := New(runtest.New(t, a)).Ask(t.Context(), Question{Text: "How many?", Schema: schema, Discard: true}, Options{Owner: true})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || len(a.asked) != c.turns || (record.Outcome == runlog.OK) != (c.want == nil) {
			t.Errorf("%s: asked %d times: %s, %v", what, len(a.asked), record.Outcome, err)
		}
		if c.turns == 2 && (!strings.HasPrefix(a.asked[1].Input.Prompt, "[system] Your answer does not fit the JSON Schema: ") || a.asked[1].Input.Nudge) {
			t.Errorf("%s: asked %+v", what, a.asked[1].Input)
		}
	}
}

// TestCompactTranscript: a session without a name is compacted by the owner's instructions, also if its directory is gone.
func TestCompactTranscript(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		a := &agent{}
		r := runtest.New(t, a)
		root := t.TempDir()
		kept, want := transcript.Transcript{Header: transcript.Header{ID: "s", Cwd: root}}, root
		if gone {
			if want = string(r.Home); os.Remove(root) != nil {
				t.Fatal("the directory stays")
			}
		}
		record, err := New(r).CompactTranscript(t.Context(), kept, "Keep the figures.", Options{Owner: true, Model: "haiku"})
		if err != nil || len(a.compacted) != 1 || len(a.asked) != 0 || a.wish != "Keep the figures." {
			t.Errorf("gone %v: %v, compacted %+v by %q", gone, err, a.compacted, a.wish)
			continue
		}
		r0 := a.compacted[0]
		if r0.Session.ID != "s" || r0.Scope.Root != want || r0.Model.Name != "haiku" || record.Kind != runlog.Ask || record.Job != "s" || record.Path != "s" {
			t.Errorf("gone %v: compacted %+v: %+v", gone, r0, record)
		}
	}
}
