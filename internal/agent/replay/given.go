package replay

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
)

// given compares what ollim gives another engine: the model, the system prompt, ollim's own tools, the patterns of the allowed tools, and
// the prompt. The system prompt and the tools are in the requests of the engine, if they are kept.
func (w *walk) given(text string) error {
	system := ""
	found, err := backtest.First(w.r.Asked, w.record.ID, text)
	sent := err == nil
	if sent {
		system, w.first, w.out.Requests = found.Sent.System, found.Number, 1
	}
	if w.begins, err = w.again(1, system); err != nil {
		return err
	}
	checks := []func() *Difference{func() *Difference {
		return lines(fieldModel, "", w.record.Model, w.begins.Record.Model)
	}}
	w.out.Only = []string{"model"}
	if sent {
		w.out.Only = append(w.out.Only, "system prompt")
		checks = append(checks, func() *Difference { return w.systemIn(system) })
		if own := ownTools(found.Sent.Tools); len(own) > 0 {
			w.out.Only = append(w.out.Only, "tools of ollim")
			checks = append(checks, func() *Difference { return compareTools(wire(own), wire(w.begins.Tools.List())) })
		}
	} else {
		w.out.Notes = append(w.out.Notes, "the requests of the engine are not kept: the system prompt and the tools of ollim are not compared")
	}
	w.out.Only = append(w.out.Only, "allowed tools", "prompt")
	checks = append(checks, func() *Difference {
		return lines("allowed tools", "", strings.Join(w.record.Tools, "\n"), strings.Join(w.begins.Record.Tools, "\n"))
	}, func() *Difference {
		return lines("prompt", "", text, w.r.Hide(w.begins.Prompt.Text()))
	}, w.laterParts)
	for _, check := range checks {
		if w.out.Difference = check(); w.out.Difference != nil {
			break
		}
	}
	return nil
}

// laterParts compares the prompts with which the run went on after answers of the owner.
func (w *walk) laterParts() *Difference {
	for part := 2; part <= len(w.kept.answered)+1; part++ {
		a, err := w.again(part, "")
		if err != nil {
			w.out.Notes = append(w.out.Notes, err.Error())
			return nil
		}
		text, err := w.prompt(part)
		if err != nil {
			return nil
		}
		if d := lines("prompt", promptFile(part), text, w.r.Hide(a.Prompt.Text())); d != nil {
			return d
		}
	}
	return nil
}

// systemIn returns the first line of today's system prompt that is not in the engine's, which has more.
func (w *walk) systemIn(then string) *Difference {
	now := w.r.Hide(w.begins.Request.Input.System)
	if strings.Contains(then, now) {
		return nil
	}
	first, _, _ := strings.Cut(now, "\n")
	at := strings.Index(then, first)
	if first == "" || at < 0 {
		return &Difference{Field: fieldSystem, Line: 1, Then: "another text", Now: first}
	}
	return lines(fieldSystem, "", then[at:], now)
}

// ownTools returns ollim's tools among those that another engine offers, with their own names.
func ownTools(list []engine.Tool) (own []engine.Tool) {
	for _, t := range list {
		if name, is := strings.CutPrefix(t.Name, tools.Prefix); is {
			t.Name = name
			own = append(own, t)
		}
	}
	return own
}

// wire returns tools as a request has them, by their names: the other engine has an order of its own.
func wire(list []engine.Tool) (all []any) {
	slices.SortFunc(list, func(a, b engine.Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range list {
		var schema any
		_ = json.Unmarshal(t.Schema, &schema) // an invalid one is null
		all = append(all, map[string]any{"name": t.Name, "description": t.Description, "schema": schema})
	}
	return all
}
