package runner

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// using uses a tool, and answers with the reason why it may not.
type using struct{ answering }

func (e using) Run(ctx context.Context, _ engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	reason, err := tools.Verdict(ctx, "Bash", "t1", json.RawMessage(`{"command":"git status"}`))
	if err != nil {
		return engine.Result{}, err
	}
	if reason == "" {
		reason = "done"
	}
	return engine.Result{Text: reason}, sink(runlog.Event{Type: runlog.Result, Text: reason})
}

// TestChatAsksTheOwner: the turn's own process passes the question on, and the answer back.
func TestChatAsksTheOwner(t *testing.T) {
	for _, tc := range []struct {
		mode  policy.Mode
		yes   bool
		asked int
		want  string
	}{
		{policy.AskOwner, true, 1, "done"},
		{policy.AskOwner, false, 1, "Bash: the owner said no"},
		{policy.DontAsk, true, 0, "Bash: the command matches none of the allowed patterns: Bash(ollim *)"},
	} {
		r := newRunner(t, using{answering{asked: new([]engine.Request)}})
		asked := 0
		record, err := r.Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true, Permissions: tc.mode, Observe: Observer{
			Permit: func(_ context.Context, use runlog.Event) bool {
				asked++
				if use.Tool != "Bash" || use.Text != "Bash(git status)" {
					t.Errorf("asked about %+v", use)
				}
				return tc.yes
			},
		}})
		if err != nil || record.Text != tc.want || asked != tc.asked {
			t.Errorf("%s: %q, %v, asked %d times", tc.mode, record.Text, err, asked)
		}
	}
}

// TestThinkingOfMain: the owner's setting, or what the owner typed, decides how much main thinks.
func TestThinkingOfMain(t *testing.T) {
	var asked []engine.Request
	r := newRunner(t, answering{asked: &asked})
	r.Main.Thinking = "adaptive"
	for _, typed := range []string{"", "2048"} {
		if _, err := r.Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true, Thinking: typed}); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || asked[0].Model.Thinking != "adaptive" || asked[1].Model.Thinking != "2048" {
		t.Errorf("asked %+v", asked)
	}
}
