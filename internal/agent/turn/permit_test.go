package turn

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// using is an engine that uses a tool and answers with the reason of the refusal.
type using struct{ runtest.Answering }

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

// TestChatAsksTheOwner: the process of the turn asks the owner and records the answer.
func TestChatAsksTheOwner(t *testing.T) {
	t.Parallel()
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
		r := runtest.New(t, using{runtest.Answering{Asked: new([]engine.Request)}})
		asked := 0
		record, err := Queue{r}.Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true, Permissions: tc.mode, Observe: run.Observer{
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
	t.Parallel()
	var asked []engine.Request
	r := runtest.New(t, runtest.Answering{Asked: &asked})
	r.Settings.Main.Thinking = "adaptive"
	for _, typed := range []string{"", "2048"} {
		if _, err := (Queue{r}).Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true, Thinking: typed}); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || asked[0].Model.Thinking != "adaptive" || asked[1].Model.Thinking != "2048" {
		t.Errorf("asked %+v", asked)
	}
}

// TestModelOfMain: the owner's setting, or what the owner typed, decides which model main uses.
func TestModelOfMain(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	r := runtest.New(t, runtest.Answering{Asked: &asked})
	r.Settings.Main.Model = "opus"
	for _, typed := range []string{"", "haiku"} {
		if _, err := (Queue{r}).Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true, Model: typed}); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || asked[0].Model.Name != "opus" || asked[1].Model.Name != "haiku" {
		t.Errorf("asked %+v", asked)
	}
}

// TestTagOfMessage: the prompt of a message that a button says begins with its tag.
func TestTagOfMessage(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	r := runtest.New(t, runtest.Answering{Asked: &asked})
	for _, tag := range []string{"button", ""} {
		if _, err := (Queue{r}).Chat(t.Context(), Message{Tag: tag, Text: "Prepare the meeting"}, Options{Owner: true}); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || !strings.HasPrefix(asked[0].Input.Prompt, "[button] [2") || strings.Contains(asked[1].Input.Prompt, "[button]") {
		t.Errorf("asked %+v", asked)
	}
	if said := prompt.Said()(asked[0].Input.Prompt); said != "Prepare the meeting\n" {
		t.Errorf("said %q", said)
	}
}

// stoppable is a turn that the owner stops.
type stoppable struct {
	runtest.Answering

	stop func()
}

func (e stoppable) Run(ctx context.Context, _ engine.Request, _ engine.Tools, _ engine.Sink) (engine.Result, error) {
	e.stop()
	<-ctx.Done()
	return engine.Result{}, context.Cause(ctx)
}

// TestStopTurn: the owner stops the turn in progress, if there is one, and its message is not answered any more.
func TestStopTurn(t *testing.T) {
	t.Parallel()
	var r *run.Runner
	var run string
	r = runtest.New(t, stoppable{stop: func() {
		var err error
		if run, err = (Queue{r}).Stop(); err != nil {
			t.Error(err)
		}
	}})
	record, err := Queue{r}.Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true})
	if run == "" || record.ID != run || record.Outcome != runlog.Interrupted {
		t.Errorf("run %q: %+v, %v", run, record, err)
	}
	if run, err := (Queue{r}).Stop(); run != "" || err != nil {
		t.Errorf("stopped %q, %v", run, err)
	}
	if err := (Queue{r}).AnswerAbandoned(t.Context(), Options{}); err != nil {
		t.Error(err)
	}
}
