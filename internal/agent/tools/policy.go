package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/runlog"
)

// own is how an engine names our tools.
const own = "mcp__ollim__"

// policy is what the run may do with any tool, as its record has it.
func (b *Set) policy() policy.Policy {
	return policy.Policy{
		Allow:     parse(b.Run.Tools),
		Roots:     b.Roots(),
		Protected: b.Protected(),
		Ollim:     b.Commands,
		Sealed:    b.Run.Sealed != nil && b.Run.Sealed.ABI > 0,
	}
}

// Roots are the working directory and dirs of the run.
func (b *Set) Roots() []policy.Root {
	roots := []policy.Root{{Dir: cmp.Or(b.Run.Root, string(b.Home)), Writable: true}}
	for _, entry := range b.Run.Dirs {
		dir, writable := strings.CutPrefix(entry, "rw:")
		roots = append(roots, policy.Root{Dir: dir, Writable: writable})
	}
	return roots
}

// MayRun reports whether the run may run a command by its Bash.
func (b *Set) MayRun(command string) bool {
	input, err := json.Marshal(map[string]string{"command": command})
	return err == nil && b.policy().Decide("Bash", input).Allow
}

// Has reports whether the run may use the tool of an MCP server: by its patterns, or because the owner has allowed a use.
func (b *Set) Has(tool string) (bool, error) {
	if b.policy().Decide(tool, json.RawMessage("{}")).Allow {
		return true, nil
	}
	return b.Run.Allowed(tool)
}

// parse leaves out what is no pattern: it could allow nothing.
func parse(texts []string) (patterns []policy.Pattern) {
	for _, text := range texts {
		if p, err := policy.Parse(text); err == nil {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// listed is for tools of ours that a run has if its list says so.
func listed(name string) func(*Set) error {
	return func(b *Set) error {
		if v := b.policy().Decide(own+name, json.RawMessage("{}")); !v.Allow {
			return &Refused{"This run may not use " + name + "."}
		}
		return nil
	}
}

// Protected is what no tool of an agent may reach: state, other conversations, the owner's executables and settings, and what
// processes have in their memory and environment.
func (w World) Protected() []string {
	return append(confine.Protected(w.Home, w.Secret), "/proc")
}

// BuiltIns names the tools of its own that an engine should offer for these lists of patterns, sorted. Skills are ours.
func BuiltIns(lists ...[]string) []string {
	names := policy.Policy{Allow: parse(slices.Concat(lists...))}.BuiltIns()
	return slices.DeleteFunc(names, func(name string) bool { return name == "Skill" })
}

// judge decides one use of an engine's own tool. Files that the allowing pattern names must still be as they were approved; of a
// question at a shell nothing is: its owner has just typed the pattern.
func (b *Set) judge(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error) {
	if reason := b.outside(tool, input); reason != "" {
		return reason, nil
	}
	p := b.policy()
	v := p.Decide(tool, input)
	if !v.Allow {
		return b.permission(ctx, p, v.Reason, runlog.Event{Type: runlog.Asked, Tool: tool, ToolID: id, Input: input})
	}
	if b.Run.Kind == runlog.Ask {
		return "", nil
	}
	name, err := b.Approvals.Altered(v.By, p.Roots)
	if unfit := (*approval.Unfit)(nil); errors.As(err, &unfit) {
		return tool + ": " + unfit.Error(), nil
	}
	if name != "" {
		reason = fmt.Sprintf("%s: %s is not as the owner approved it", tool, name)
	}
	return reason, err
}

// Verdict decides one use of any tool, and records that it did: a use without a verdict means that nobody was asked. An
// empty reason allows it. Our own tools decide for themselves when they are called.
func (b *Set) Verdict(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error) {
	if name, ours := strings.CutPrefix(tool, own); ours {
		if !slices.ContainsFunc(b.List(), func(t engine.Tool) bool { return t.Name == name }) {
			reason = tool + ": this run does not have this tool"
		}
	} else if reason, err = b.judge(ctx, tool, id, input); err != nil {
		return "", err
	}
	return reason, b.Run.Event(ctx, runlog.Event{Type: runlog.Verdict, Tool: tool, ToolID: id, Text: reason, IsError: reason != ""})
}
