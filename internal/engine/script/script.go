// Package script is an engine without a model: it plays a YAML file of turns. The tool calls in it are real ones, and so
// are the sessions it keeps, so everything around a model can be shown and tested without an account. The event that
// opens each turn says that it is a script.
package script

import (
	"os"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/yamldoc"
)

// Script is the content of a script file.
type Script struct {
	// Turns are played in the order of a session's turns: its first turn plays the first entry, and so on; the last entry
	// serves all later turns. A branch and a session after a compaction count on from where the old session was.
	Turns [][]Step
	// OnNudge is played when the agent is reminded of something that it owes.
	OnNudge []Step
	// Summary is the text that a compaction makes; empty: a line that quotes the instructions.
	Summary string
}

// Step is one thing that the scripted agent does.
type Step struct {
	Do         string         // the step's key: expect, think, text, tool, delay, touch, compact, cost, overloaded, error
	Text       string         // its value
	Input      map[string]any // of a tool
	Wait       time.Duration  // of delay; of overloaded: what the service says to wait
	Cost       float64        // USD
	Times      int            // overloaded: this often, then pass; 0 is always
	identifier int            // unique in the script
}

// Load reads a script file, strictly; a fault in it is a yamldoc.Faults.
func Load(path string) (Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Script{}, err
	}
	return Parse(path, data)
}

// Parse reads a script; name stands for it in errors.
func Parse(name string, data []byte) (Script, error) {
	var s Script
	doc, err := yamldoc.Parse(name, data, 1)
	if err != nil {
		return s, err
	}
	var p parser
	err = doc.Decode([]yamldoc.Field{
		{Key: "turns", Read: func(v yamldoc.Value) (err error) { s.Turns, err = p.turns(v); return err }},
		{Key: "on-nudge", Read: func(v yamldoc.Value) (err error) { s.OnNudge, err = p.steps(v); return err }},
		{Key: "summary", Read: func(v yamldoc.Value) (err error) { s.Summary, err = v.Text(); return err }},
	})
	if err == nil && len(s.Turns) == 0 {
		err = yamldoc.Faults{doc.Fault("turns", "want at least one turn, a list of steps")}
	}
	return s, err
}

// parser numbers the steps as it reads them.
type parser struct{ count int }

func (p *parser) turns(v yamldoc.Value) ([][]Step, error) {
	items, err := v.Items()
	if err != nil {
		return nil, err
	}
	var turns [][]Step
	for _, item := range items {
		steps, err := p.steps(item)
		if err != nil {
			return nil, err
		}
		turns = append(turns, steps)
	}
	return turns, nil
}

func (p *parser) steps(v yamldoc.Value) ([]Step, error) {
	items, err := v.Items()
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, item := range items {
		p.count++
		step := Step{identifier: p.count}
		if err := item.Decode(step.fields()); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// fields reads a step: one key that says what it does, and for some a second one.
func (s *Step) fields() []yamldoc.Field {
	var fields []yamldoc.Field
	for _, do := range []string{"expect", "think", "text", "tool", "touch", "compact", "overloaded", "error"} {
		fields = append(fields, yamldoc.Field{Key: do, Read: func(v yamldoc.Value) (err error) {
			s.Do = do
			s.Text, err = v.Text()
			return err
		}})
	}
	duration := func(v yamldoc.Value) error {
		text, err := v.Text()
		if err == nil {
			s.Wait, err = time.ParseDuration(text)
		}
		return err
	}
	return append(fields,
		yamldoc.Field{Key: "input", Read: func(v yamldoc.Value) (err error) { s.Input, err = v.Section(); return err }},
		yamldoc.Field{Key: "delay", Read: func(v yamldoc.Value) error { s.Do = "delay"; return duration(v) }},
		yamldoc.Field{Key: "retry-after", Read: duration},
		yamldoc.Field{Key: "times", Read: func(v yamldoc.Value) (err error) { s.Times, err = v.Int(); return err }},
		yamldoc.Field{Key: "cost", Read: func(v yamldoc.Value) (err error) {
			s.Do = "cost"
			s.Cost, err = v.Number()
			return err
		}},
	)
}

// tokens estimates what a text would cost a model: a token for each four bytes, as vendors say of English.
func tokens(text string) int { return (len(text) + 3) / 4 }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
