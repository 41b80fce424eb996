package script

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

// parse parses a script. Errors refer to it by name.
func parse(name string, data []byte) (script, error) {
	var s script
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

// parser parses a script and numbers its steps.
type parser struct{ count int }

func (p *parser) turns(v yamldoc.Value) ([][]step, error) {
	items, err := v.Items()
	if err != nil {
		return nil, err
	}
	var turns [][]step
	for _, item := range items {
		steps, err := p.steps(item)
		if err != nil {
			return nil, err
		}
		turns = append(turns, steps)
	}
	return turns, nil
}

func (p *parser) steps(v yamldoc.Value) ([]step, error) {
	items, err := v.Items()
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, item := range items {
		step, err := p.step(item)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// step parses one action and its options.
func (p *parser) step(v yamldoc.Value) (step, error) {
	p.count++
	d := draft{step: step{identifier: p.count}}
	if err := v.Decode(d.fields()); err != nil {
		return step{}, err
	}
	if d.Do == "" {
		return step{}, v.Wrong("want a step with an action: one of " + strings.Join(actions(), ", "))
	}
	for _, b := range d.beside {
		if b.of != d.Do {
			return step{}, b.value.Wrong("only for " + b.of)
		}
	}
	return d.step, nil
}

// actions are the keys of the actions.
func actions() []string {
	return []string{"expect", "think", "text", "tool", "delay", "touch", "compact", "cost", "overloaded", "error"}
}

// draft is a step that is being parsed.
type draft struct {
	step
	beside []option
}

// option is a key of a step besides its action.
type option struct {
	of    string // action that the option belongs to
	value yamldoc.Value
}

func (d *draft) fields() []yamldoc.Field {
	var fields []yamldoc.Field
	for _, do := range actions() {
		fields = append(fields, yamldoc.Field{Key: do, Read: func(v yamldoc.Value) error { return d.act(do, v) }})
	}
	return append(fields,
		d.option("input", "tool", func(v yamldoc.Value) (err error) { d.Input, err = v.Section(); return err }),
		d.option("times", "overloaded", d.times),
		d.option("retry-after", "overloaded", d.wait),
	)
}

func (d *draft) act(do string, v yamldoc.Value) (err error) {
	if d.Do != "" {
		return fmt.Errorf("a step does one thing, and this one has %s already", d.Do)
	}
	d.Do = do
	switch do {
	case "delay":
		return d.wait(v)
	case "cost":
		return d.spend(v)
	}
	d.Text, err = v.Text()
	return err
}

func (d *draft) option(key, of string, read func(yamldoc.Value) error) yamldoc.Field {
	return yamldoc.Field{Key: key, Read: func(v yamldoc.Value) error {
		d.beside = append(d.beside, option{of, v})
		return read(v)
	}}
}

func (d *draft) wait(v yamldoc.Value) error {
	text, err := v.Text()
	if err == nil {
		d.Wait, err = job.ParseDuration(text)
	}
	return err
}

func (d *draft) times(v yamldoc.Value) (err error) {
	if d.Times, err = v.Int(); err == nil && d.Times < 0 {
		err = errors.New("want 0 or more")
	}
	return err
}

func (d *draft) spend(v yamldoc.Value) (err error) {
	if d.Cost, err = v.Number(); err == nil && d.Cost < 0 {
		err = errors.New("want 0 or more")
	}
	return err
}
