package native_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// Within notes which names a subagent has.
func (a *agentTools) Within(names []string) engine.Tools {
	a.within = append(a.within, strings.Join(names, " "))
	return a
}

func task(prompt, to string) anthropicapi.Reply {
	return anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: "t1", Name: "Task", Input: map[string]string{"prompt": prompt, "subagent_type": to}}}}
}

func delegating() engine.Request {
	return engine.Request{
		Input: engine.Input{Prompt: "go", System: "main", SystemOnly: true},
		Scope: engine.Scope{BuiltIns: []string{"Read", "Write", "Task"}, Allow: []string{"Task", "Read(./**)"}},
	}
}

// TestTask: a subagent has a context of its own, the run's tools without Task, and its answer is the tool's result.
func TestTask(t *testing.T) {
	s := newStage(t)
	s.api.Reply(
		task("count the files", ""),
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: "t1", Name: "Read", Input: map[string]string{"file_path": "x"}}}, Usage: anthropicapi.Usage{In: 1000}},
		anthropicapi.Reply{Text: "there are 3"}, anthropicapi.Reply{Text: "done"})
	r := s.says(delegating(), "done")
	requests := s.api.Requests()
	if got := strings.Join(requests[0].ToolNames(), " "); got != "Read Write Task ping_user compact_session" {
		t.Errorf("the agent has %s", got)
	}
	sub := requests[1]
	if got := strings.Join(sub.ToolNames(), " "); got != "Read Write ping_user" {
		t.Errorf("the subagent has %s", got)
	}
	if sub.Has("go") || !strings.Contains(sub.System, "You are a subagent") || sub.LastUserText() != "count the files" {
		t.Errorf("asked %s", sub.Raw)
	}
	if got := requests[3].ToolResults()[0].ResultText; got != "there are 3" {
		t.Errorf("result %q", got)
	}
	same(t, s.reported(), []string{
		"session", "usage", "tool_use Task", "usage", "tool_use Read", "tool_result Read own Read", "text  there are 3", "usage",
		"tool_result Task there are 3", "text  done", "usage", "result  done",
	})
	for _, e := range s.events {
		inside := e.Type == runlog.Text && e.Text == "there are 3" || e.Tool == "Read"
		if inside != (e.Parent == "t1") && e.Type != runlog.UsageEvent && e.Type != runlog.Request {
			t.Errorf("%s %s has the parent %q", e.Type, e.Tool, e.Parent)
		}
		if e.Tool == "Read" && e.ToolID != "t1/t1" {
			t.Errorf("%s Read has the id %q", e.Type, e.ToolID)
		}
	}
	if r.Usage.In < 1000 || r.Cost <= 0.001 {
		t.Errorf("usage %+v, cost %v", r.Usage, r.Cost)
	}
	same(t, s.conversation(r.Session), []string{"user text go", "assistant tool_use Task", "user tool_result there are 3", "assistant text done"})
}

// TestTaskOfAFile: a subagent with a file has its prompt, its model and at most its tools.
func TestTaskOfAFile(t *testing.T) {
	s := newStage(t)
	s.Agents = func() []engine.Subagent {
		return []engine.Subagent{
			{Name: "critic", Description: "Finds faults.", Prompt: "Find faults.", Model: "unpriced", Tools: []string{"Read(./notes/**)"}},
			{Name: "mute", Description: "Has no tools.", Prompt: "Be mute.", Tools: []string{}},
		}
	}
	s.api.Reply(task("look", "critic"), anthropicapi.Reply{Text: "none"}, task("look", "nobody"), anthropicapi.Reply{Text: "done"})
	s.says(delegating(), "done")
	requests := s.api.Requests()
	if help := requests[0].Tools[2].Description; !strings.Contains(help, "- critic: Finds faults.") || !strings.Contains(help, "- general-purpose:") {
		t.Errorf("help %q", help)
	}
	if sub := requests[1]; sub.System != "Find faults." || sub.Model != "unpriced" || slices.Contains(sub.ToolNames(), "Write") {
		t.Errorf("asked %s", sub.Raw)
	}
	if got := requests[3].ToolResults()[0]; !got.IsError || got.ResultText != `there is no subagent "nobody"` {
		t.Errorf("got %+v", got)
	}
	same(t, s.tools.within, []string{"Read(./notes/**)"})
	r := delegating()
	r.Scope.Allow = []string{"Task(mute)"}
	s.api.Reply(task("look", "mute"), anthropicapi.Reply{Text: "…"}, anthropicapi.Reply{Text: "done"})
	s.says(r, "done")
	requests = s.api.Requests()[4:]
	if help := requests[0].Tools[2].Description; strings.Contains(help, "critic") || strings.Contains(help, "general") || !strings.Contains(help, "mute") {
		t.Errorf("help %q", help)
	}
	if got := requests[1].ToolNames(); len(got) != 1 { // the stage's tools of the agent do not narrow themselves
		t.Errorf("the subagent has %q", got)
	}
}

// TestTaskLimits: the limits of the run hold for its subagents, and what they cost is part of the run's.
func TestTaskLimits(t *testing.T) {
	s := newStage(t)
	r := delegating()
	r.Limits = engine.Limits{MaxCost: 0.005}
	big := anthropicapi.Usage{In: 1000, Out: 1000} // 0.003 USD
	s.api.Reply(task("look", ""), anthropicapi.Reply{Text: "more", Usage: big, ToolUses: []anthropicapi.ToolUse{{ID: "a", Name: "Read", Input: map[string]string{"file_path": "x"}}}})
	s.api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Usage: big, ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": "x"}}}}
	})
	result, err := s.run(r)
	if !errors.Is(err, engine.ErrMaxCost) || result.Cost < 0.003 || result.Cost > 0.007 {
		t.Errorf("cost %v, %v", result.Cost, err)
	}
	total := 0.0
	for _, e := range s.events {
		total += e.Cost
	}
	if total-result.Cost > 1e-9 || result.Cost-total > 1e-9 {
		t.Errorf("the record has %v, the result %v", total, result.Cost)
	}
}

// TestTaskFails: what goes wrong in a subagent alone is a result.
func TestTaskFails(t *testing.T) {
	s := newStage(t)
	s.api.Reply(task("look", ""), anthropicapi.Reply{Status: 400, Message: "no"}, anthropicapi.Reply{Text: "done"})
	s.says(delegating(), "done")
	if got := s.api.Requests()[2].ToolResults()[0]; !got.IsError || !strings.Contains(got.ResultText, "the subagent failed") {
		t.Errorf("got %+v", got)
	}
}

// TestWebSearch: the service's own search, in a request of its own; the results are text in the transcript, and its price is counted.
func TestWebSearch(t *testing.T) {
	s := newStage(t)
	r := engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{BuiltIns: []string{"Read", "WebSearch"}}}
	s.api.Reply(anthropicapi.Reply{Text: "done"})
	s.says(r, "done")
	if got := s.api.Requests()[0].ToolNames(); slices.Contains(got, "WebSearch") {
		t.Errorf("a service without a search offers %q", got)
	}
	s.Service.Searches = true
	use := anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: "w", Name: "WebSearch", Input: map[string]any{"query": "rain", "blocked_domains": []string{"a.example"}}}}, Usage: anthropicapi.Usage{In: 1}}
	found := anthropicapi.Reply{Found: []anthropicapi.Page{{Title: "Weather", URL: "https://example.com/w", Age: "today"}}, Text: "It rains.", Usage: anthropicapi.Usage{In: 5000, Out: 100}}
	s.api.Reply(use, found, anthropicapi.Reply{Text: "done", Usage: anthropicapi.Usage{In: 1}})
	result := s.says(r, "done")
	requests := s.api.Requests()[1:]
	if q := requests[1]; !q.IsSearch() || q.Tools[0].Blocked[0] != "a.example" || q.Has("go") {
		t.Errorf("asked %s", q.Raw)
	}
	want := "Results for \"rain\":\n- Weather — https://example.com/w (today)\n\nIt rains.\n"
	if got := requests[2].ToolResults()[0]; got.ResultText != want || got.IsError {
		t.Errorf("got %+v", got)
	}
	if cost := 0.01 + 0.000002 + 0.005 + 0.0002; result.Cost-cost > 1e-9 || cost-result.Cost > 1e-9 || result.Usage.In != 5002 {
		t.Errorf("cost %v, want %v; %+v", result.Cost, cost, result.Usage)
	}
	s.tools.refuse = "WebSearch"
	s.api.Reply(use, anthropicapi.Reply{Text: "done"})
	s.says(r, "done")
	if got := s.api.Requests()[5].ToolResults()[0]; !got.IsError || got.ResultText != "not here" {
		t.Errorf("a use that the policy refuses: %+v", got)
	}
	s.tools.refuse = ""
	s.api.Reply(use, anthropicapi.Reply{SearchFail: "unavailable"}, anthropicapi.Reply{Text: "done"})
	s.says(r, "done")
	if got := s.api.Requests()[8].ToolResults()[0]; !got.IsError || !strings.Contains(got.ResultText, "unavailable") {
		t.Errorf("got %+v", got)
	}
	r.Limits.MaxCost = 0.02
	s.api.Reply(use)
	if _, err := s.run(r); !errors.Is(err, engine.ErrMaxCost) || len(s.api.Requests()) != 10 {
		t.Errorf("%d requests, %v", len(s.api.Requests()), err)
	}
}
