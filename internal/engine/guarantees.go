package engine

import (
	"fmt"

	"github.com/ollim/ollim/internal/state/model"
)

// Guarantees says what holds for the agent that an engine runs.
type Guarantees struct {
	Asks     Asks // about which uses of its tools the agent asks first
	Reads    bool // a pattern that allows only some files to be read holds exactly
	Branch   bool // a session can be branched
	MaxCost  bool // a limit of costs ends the agent while it works, and not only after a turn
	Key      bool // neither the agent nor its commands have the key, and each of their requests to the model is recorded
	Records  bool // each use of a tool is recorded, with its input and its result
	Delegate bool // the agent can be given a subagent
	Thinking bool // the amount of thinking can be set, or thinking turned off
	Turns    bool // the agent reports enough to count the model's answers
}

// Asks says about which uses of its own tools an agent asks.
type Asks string

// The values of Asks.
const (
	AsksAll     Asks = "all"     // about every use
	AsksEffects Asks = "effects" // about uses that change something
	AsksSandbox Asks = "sandbox" // about uses that leave a sandbox of the agent's own
	AsksNothing Asks = "nothing" // nothing is known of its requests
)

// Complete are the guarantees of the engines claude-code, native and script.
func Complete() Guarantees {
	return Guarantees{Asks: AsksAll, Reads: true, Branch: true, MaxCost: true, Key: true, Records: true, Delegate: true, Thinking: true, Turns: true}
}

// Needs are the guarantees that a run needs, with what in the job says so; "" is not needed.
type Needs struct{ Reads, Branch, MaxCost, Records, Delegate, Thinking, Turns string }

// Think notes that a job or a flag, by, sets how much the model thinks, unless that leaves it to the engine.
func (n *Needs) Think(how, by string) {
	switch how {
	case "", "true", "adaptive", model.LikeMain:
	default:
		n.Thinking = by
	}
}

// Lacks returns why a run that needs something cannot have it from the engine of a name, and what would work; nil if it can.
func (g Guarantees) Lacks(n Needs, name string) error {
	for _, c := range []struct {
		has              bool
		by, what, remedy string
	}{
		{g.Reads, n.Reads, "exact rules for reading", "allow the whole directory, as in Read(./**)"},
		{g.Branch, n.Branch, "branching a session", "add isolated: true or session: persistent"},
		{g.MaxCost, n.MaxCost, "a cost limit of its own", "leave it out (spend.per-run then ends the run after the turn that exceeds it), see in ollim help engines when an agent can"},
		{g.Records, n.Records, "complete records of tool uses", "leave it out"},
		{g.Delegate, n.Delegate, "subagents", "leave it out"},
		{g.Thinking, n.Thinking, "an amount of thinking", "leave it out: the agent then thinks as it does by itself"},
		{g.Turns, n.Turns, "a count of the model's answers", "leave it out"},
	} {
		if c.by != "" && !c.has {
			return fmt.Errorf("%s needs %s, which the engine %s cannot promise; %s, or use engine: claude-code or native", c.by, c.what, name, c.remedy)
		}
	}
	return nil
}

// List returns the guarantees in words, for the record of a run.
func (g Guarantees) List() []string {
	list := []string{"asks: " + string(g.Asks)}
	for _, c := range []struct {
		has  bool
		name string
	}{{g.Reads, "reads"}, {g.Branch, "branch"}, {g.MaxCost, "max-cost"}, {g.Key, "key"}, {g.Records, "records"}, {g.Delegate, "subagents"}, {g.Thinking, "thinking"}, {g.Turns, "max-turns"}} {
		if c.has {
			list = append(list, c.name)
		}
	}
	return list
}

// Guarded is an engine whose guarantees are not Complete. They may depend on the model of a request.
type Guarded interface {
	Guarantees(model string) Guarantees
}

// GuaranteesOf returns the guarantees of an engine for requests to a model; "" is its own.
func GuaranteesOf(e Engine, model string) Guarantees {
	if g, ok := e.(Guarded); ok {
		return g.Guarantees(model)
	}
	return Complete()
}
