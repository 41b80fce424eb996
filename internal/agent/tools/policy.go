package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Prefix begins the names of ollim's tools in an engine that has them from an MCP server.
const Prefix = "mcp__ollim__"

// Policy returns what the run may do with any tool, by its record.
func (b *Set) Policy() policy.Policy {
	return policy.Policy{
		Allow:     parse(b.Run.Tools),
		Roots:     b.Roots(),
		Protected: b.World.Protected(),
		Ollim:     b.Commands,
		Sealed:    b.Run.Sealed != nil && b.Run.Sealed.ABI > 0,
	}
}

// Roots returns the working directory and the dirs of the run.
func (b *Set) Roots() []policy.Root {
	roots := []policy.Root{{Dir: cmp.Or(b.Run.Root, string(b.World.Home)), Writable: true}}
	for _, entry := range b.Run.Dirs {
		dir, writable := strings.CutPrefix(entry, "rw:")
		roots = append(roots, policy.Root{Dir: dir, Writable: writable})
	}
	return roots
}

// MayRun reports whether the run may run a command by its Bash.
func (b *Set) MayRun(command string) bool {
	input, err := json.Marshal(map[string]string{"command": command})
	return err == nil && b.Policy().Decide("Bash", input).Allow
}

// MaySend decides a command of ollim that a program of the run sends; see policy.Policy.DecideOllim.
func (b *Set) MaySend(args []string) (own bool, err error) { return b.Policy().DecideOllim(args) }

// Has reports whether the run may use the tool of an MCP server: by its patterns, or because the owner has allowed a use.
func (b *Set) Has(tool string) (bool, error) {
	if b.Policy().Decide(tool, json.RawMessage("{}")).Allow {
		return true, nil
	}
	return b.Run.Allowed(tool)
}

// parse omits invalid patterns, which allow nothing.
func parse(texts []string) (patterns []policy.Pattern) {
	for _, text := range texts {
		if p, err := policy.Parse(text); err == nil {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// listed returns the check of a tool of ollim's that a run may use only if a pattern allows it.
func listed(name string) func(*Set) error {
	return func(b *Set) error {
		if v := b.Policy().Decide(Prefix+name, json.RawMessage("{}")); !v.Allow {
			return &Refused{"This run may not use " + name + "."}
		}
		return nil
	}
}

// Protected returns what no tool of an agent may reach: state, other conversations, the owner's executables and settings, and what
// processes have in their memory and environment.
func (w World) Protected() []string {
	return append(confine.Protected(w.Home, w.Secret), "/proc")
}

// BuiltIns returns the names of the engine's own tools to offer for these lists of patterns, sorted. Skill is a tool of ollim's.
func BuiltIns(lists ...[]string) []string {
	names := policy.Policy{Allow: parse(slices.Concat(lists...))}.BuiltIns()
	return slices.DeleteFunc(names, func(name string) bool { return name == "Skill" })
}

// permits decides the uses of an engine's own tools.
type permits struct{ set *Set }

// judge decides one use of an engine's own tool. Files that the allowing pattern names must still be as they were approved. For a question
// at a shell this is not checked, because its owner has just typed the pattern.
func (d permits) judge(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error) {
	if reason := d.outside(tool, input); reason != "" {
		return reason, nil
	}
	p := d.set.Policy()
	v := p.Decide(tool, input)
	if !v.Allow {
		return d.permission(ctx, p, v.Reason, runlog.Event{Type: runlog.Asked, Tool: tool, ToolID: id, Input: input})
	}
	if d.set.Run.Kind == runlog.Ask {
		return "", nil
	}
	name, err := d.set.Approvals.Altered(v.By, p.Roots)
	if unfit := (*approval.Unfit)(nil); errors.As(err, &unfit) {
		return tool + ": " + unfit.Error(), nil
	}
	if name != "" {
		reason = fmt.Sprintf("%s: %s is not as the owner approved it", tool, name)
	}
	return reason, err
}

// Verdict decides one use of any tool, and records the verdict: a use without one was not decided by ollim. An empty reason allows the use.
// Ollim's own tools decide for themselves when they are called.
func (b *Set) Verdict(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error) {
	if reason, err = b.Judge(ctx, tool, id, input); err != nil {
		return "", err
	}
	return reason, b.Run.Event(ctx, runlog.Event{Type: runlog.Verdict, Tool: tool, ToolID: id, Text: reason, IsError: reason != ""})
}

// Judge is Verdict without a record. It asks the owner only if the run MayAsk.
func (b *Set) Judge(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error) {
	if name, ours := strings.CutPrefix(tool, Prefix); ours {
		if !slices.ContainsFunc(b.List(), func(t engine.Tool) bool { return t.Name == name }) {
			reason = tool + ": this run does not have this tool"
		}
		return reason, nil
	}
	return permits{b}.judge(ctx, tool, id, input)
}

// Within returns the tools of a subagent whose list is names; nil: all tools of the run.
func (b *Set) Within(names []string) engine.Tools {
	if names == nil {
		return b
	}
	narrow := *b
	narrow.within = &names
	return &narrow
}

// names reports whether the subagent's list names a tool.
func (d permits) names(tool string) bool {
	if d.set.within == nil || slices.Contains(*d.set.within, tool) {
		return true
	}
	p := d.set.Policy()
	p.Allow = parse(*d.set.within)
	return p.Names(tool)
}

// outside returns why the subagent's own list does not allow a use; "" if it does. A tool's name alone allows all its uses.
func (d permits) outside(tool string, input json.RawMessage) string {
	if d.set.within == nil || slices.Contains(*d.set.within, tool) {
		return ""
	}
	p := d.set.Policy()
	p.Allow = parse(*d.set.within)
	if v := p.Decide(tool, input); !v.Allow {
		return v.Reason
	}
	return ""
}

// AskPatience is how long a use of a tool waits for the owner's permission.
const AskPatience = 60 * time.Second

// AskEvery is how often the asking and the answering process look for each other's events. They may be different processes, because
// the hooks of the claude command are processes of their own.
const AskEvery = 100 * time.Millisecond

// permission decides a use that no pattern allows, by the run's permission mode. refusal is the reason for which the patterns refuse it.
func (d permits) permission(ctx context.Context, p policy.Policy, refusal string, use runlog.Event) (reason string, err error) {
	mode := policy.Mode(d.set.Run.Permissions)
	if mode == "" {
		return refusal, nil
	}
	pattern, ok := p.Once(use.Tool, use.Input)
	switch {
	case !ok:
		return refusal, nil
	case mode == policy.AcceptEdits && policy.Edits(use.Tool):
		return "", nil
	case !d.set.Run.MayAsk:
		return refusal + "; the owner cannot be asked, because this turn has no terminal", nil
	}
	use.Text = pattern.String()
	if err := d.set.Run.Event(ctx, use); err != nil {
		return "", err
	}
	return d.awaitPermission(ctx, use)
}

func (d permits) awaitPermission(ctx context.Context, use runlog.Event) (reason string, err error) {
	waiting, cancel := context.WithTimeout(ctx, AskPatience)
	defer cancel()
	look := time.NewTicker(AskEvery)
	defer look.Stop()
	for {
		allowed, answered, err := d.set.Run.Answer(use.ToolID)
		switch {
		case err != nil:
			return "", err
		case answered && allowed:
			return "", nil
		case answered:
			return use.Tool + ": the owner said no", nil
		}
		select {
		case <-look.C:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			denied := runlog.Event{Type: runlog.Permitted, Tool: use.Tool, ToolID: use.ToolID, IsError: true}
			return use.Tool + ": the owner did not answer within a minute", d.set.Run.Event(ctx, denied)
		}
	}
}
