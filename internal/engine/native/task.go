package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// taskTool delegates to a subagent, which has a conversation of its own that ends with its answer, within the limits of the turn. A
// subagent has the tools of the run or fewer, and never Task: subagents cannot start others.
const taskTool = "Task"

// general is the name of the subagent that has no file.
const general = "general-purpose"

const generalPrompt = `You are a subagent. Another agent has given you a task; it sees only your last answer. Do the task
with the tools that you have. Then answer with the result: what you found or did, with the paths, names and numbers that matter,
and what you could not do. Nobody can answer questions.`

// inner returns the tools of the engine itself that a request names.
func (e *Engine) inner(r engine.Request) (list []engine.Tool) {
	if slices.Contains(r.Scope.BuiltIns, taskTool) {
		list = append(list, engine.Tool{Name: taskTool, Description: e.taskHelp(r), Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"description":{"type":"string"},"prompt":{"type":"string","minLength":1},"subagent_type":{"type":"string"}},` +
			`"required":["prompt"],"additionalProperties":false}`)})
	}
	if slices.Contains(r.Scope.BuiltIns, searchTool) && e.Service.Searches {
		list = append(list, webSearch())
	}
	return list
}

// taskHelp lists the subagents. In a shared conversation it lists all, so that branches have the same text.
func (e *Engine) taskHelp(r engine.Request) string {
	var names strings.Builder
	for _, a := range append([]engine.Subagent{{Name: general, Description: "has no instructions of its own (the default)"}}, e.agents(r)...) {
		if !r.Input.SystemOnly || mayDelegate(r, a.Name) {
			fmt.Fprintf(&names, "- %s: %s\n", a.Name, a.Description)
		}
	}
	return "Gives a task to a subagent, which works on it by itself and returns its answer. It has a context of its own and knows only " +
		"what prompt says. Use it for work that reads much and whose result is short. subagent_type is one of:\n" + names.String()
}

func mayDelegate(r engine.Request, name string) bool {
	var p policy.Policy
	for _, text := range r.Scope.Allow {
		if pattern, err := policy.Parse(text); err == nil {
			p.Allow = append(p.Allow, pattern)
		}
	}
	input, err := json.Marshal(map[string]string{"prompt": "?", "subagent_type": name})
	return err == nil && p.Decide(taskTool, input).Allow
}

// agents returns the subagents that have files. The job's own subagent is the approved version.
func (e *Engine) agents(r engine.Request) (list []engine.Subagent) {
	if e.Agents != nil {
		list = e.Agents()
	}
	if a := r.Scope.Subagent; a != nil {
		list = append([]engine.Subagent{*a}, slices.DeleteFunc(list, func(other engine.Subagent) bool { return other.Name == a.Name })...)
	}
	return list
}

// useInner uses a tool of the engine itself, which the policy has allowed.
func (t *turn) useInner(ctx context.Context, use transcript.Block) (engine.ToolResult, error) {
	if err := policy.CheckInput(use.Name, use.Input); err != nil {
		return problem("bad arguments", err)
	}
	if use.Name == searchTool {
		return t.search(ctx, use.Input)
	}
	return t.delegate(ctx, use)
}

// problem returns the result of a failed use, which does not end the turn.
func problem(what string, err error) (engine.ToolResult, error) {
	return engine.ToolResult{Text: what + ": " + err.Error(), IsError: true}, nil
}

func (t *turn) delegate(ctx context.Context, use transcript.Block) (engine.ToolResult, error) {
	var in struct {
		Prompt string `json:"prompt"`
		Type   string `json:"subagent_type"`
	}
	if err := json.Unmarshal(use.Input, &in); err != nil {
		return problem("bad arguments", err)
	}
	to := engine.Subagent{Name: general, Prompt: generalPrompt}
	if in.Type != "" && in.Type != general {
		all := t.e.agents(t.request)
		i := slices.IndexFunc(all, func(a engine.Subagent) bool { return a.Name == in.Type })
		if i < 0 {
			return engine.ToolResult{Text: fmt.Sprintf("there is no subagent %q", in.Type), IsError: true}, nil
		}
		to = all[i]
	}
	sub, failed, err := t.subagent(ctx, to, use.ID)
	if err != nil {
		return problem("the subagent cannot start", err)
	}
	err = sub.talk.say(in.Prompt, nil)
	if err == nil {
		err = sub.work(ctx)
	}
	t.bill.add(sub.bill)
	if *failed != nil || ctx.Err() != nil || errors.Is(err, engine.ErrMaxCost) {
		return notBegun(), cmp.Or(*failed, err, context.Cause(ctx))
	}
	if err != nil {
		return engine.ToolResult{Text: strings.TrimSpace(fmt.Sprintf("the subagent failed: %v\n%s", err, sub.final)), IsError: true}, nil
	}
	return engine.ToolResult{Text: cmp.Or(strings.TrimSpace(sub.final), "(the subagent gave no answer)")}, nil
}

// subagent returns the turn of a subagent that the tool use by has started. failed is set to an error of the record.
func (t *turn) subagent(ctx context.Context, a engine.Subagent, by string) (sub *turn, failed *error, err error) {
	r := t.request
	r.Input = engine.Input{System: a.Prompt, SystemOnly: true}
	r.Session = engine.Session{Discard: true}
	if a.Model != "" && a.Model != "inherit" {
		r.Model.Name = a.Model
	}
	r.Scope.Subagent = nil
	r.Scope.BuiltIns = slices.DeleteFunc(slices.Clone(r.Scope.BuiltIns), func(name string) bool { return name == taskTool || name == "Agent" || !named(a, name) })
	r.Limits.Spent += t.bill.cost
	failed = new(error)
	sink := func(e runlog.Event) error {
		if e.Type == runlog.Compacted || e.Type == runlog.CompactFailed { // the conversation of a subagent is not a session
			return nil
		}
		e.Parent, e.Context, e.Window, e.CompactAt = by, 0, 0, 0
		if e.ToolID != "" {
			e.ToolID = t.tools.id(by) + "/" + e.ToolID
		}
		if err := t.sink(e); err != nil {
			*failed = err
		}
		return *failed
	}
	agent := without{t.tools.agent.Within(a.Tools)}
	if sub, err = t.e.begin(ctx, r, agent, sink); err != nil {
		return nil, failed, err
	}
	sub.tools.by, sub.tools.used, sub.tools.servers, sub.tools.offered = by, 1, t.tools.servers, []engine.Tool{}
	for _, tool := range t.tools.serverTools() {
		if named(a, tool.Name) {
			sub.tools.offered = append(sub.tools.offered, tool)
		}
	}
	return sub, failed, nil
}

// named reports whether a subagent's list has a tool.
func named(a engine.Subagent, tool string) bool {
	if a.Tools == nil || slices.Contains(a.Tools, tool) {
		return true
	}
	return slices.ContainsFunc(a.Tools, func(text string) bool {
		pattern, err := policy.Parse(text)
		return err == nil && policy.Policy{Allow: []policy.Pattern{pattern}}.Names(tool)
	})
}

// without is the agent's tools except the one that compacts its session.
type without struct{ engine.Tools }

func (w without) List() []engine.Tool {
	return slices.DeleteFunc(slices.Clone(w.Tools.List()), func(tool engine.Tool) bool { return tool.Effect == engine.Compacts })
}

// add adds the cost of a subagent.
func (b *bill) add(sub *bill) {
	b.usage, b.cost, b.events = b.usage.Add(sub.usage), b.cost+sub.cost, b.events+sub.events
}
