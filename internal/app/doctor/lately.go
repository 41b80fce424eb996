package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
)

// lastUses is how far back the checks look for the last use of an engine.
const lastUses = 7 * 24 * time.Hour

// outage is a row of runs that failed because of their engine, up to the latest.
type outage struct {
	last  runlog.Record
	since time.Time
	runs  int
}

// outages returns the engines whose last uses failed, by name. A run that got an answer shows that its engine works, even if the run failed
// later.
func (e *examination) outages() map[string]outage {
	found, over := map[string]outage{}, map[string]bool{}
	faulty := e.faulted()
	for r, err := range e.home.Runs.List() {
		if len(over) == len(faulty) || err == nil && e.App.Now().Sub(r.Started) > lastUses {
			break
		}
		if err != nil || !faulty[r.Engine] || over[r.Engine] {
			continue
		}
		switch notify.Kind(r.Fault) {
		case notify.Service, notify.Key, notify.Engine, notify.Model:
			o := found[r.Engine]
			if o.runs == 0 {
				o.last = r
			}
			o.since, o.runs = r.Started, o.runs+1
			found[r.Engine] = o
		default:
			if r.Turns > 0 {
				over[r.Engine] = true
			}
		}
	}
	return found
}

// faulted returns the engines of runs since lastUses that a cause of notify ended.
func (e *examination) faulted() map[string]bool {
	names := map[string]bool{}
	all, _ := e.home.Runs.Tally(e.App.Now().Add(-lastUses)) // runs reports the error
	for _, t := range all.Tallies {
		for _, name := range t.Faulted {
			names[name] = true
		}
	}
	return names
}

// uses looks at how the last uses of engines and MCP servers went.
func (e *examination) uses(context.Context) string {
	outages := e.outages()
	for _, name := range slices.Sorted(maps.Keys(e.engineNames())) {
		if o, failed := outages[name]; failed {
			e.fail(plain(notify.Failure(o.last, "failed", e.home.Dir).Remedy), "the engine %s has failed since %s (%s): %s",
				name, e.clockText(o.since), plaintext.Count(o.runs, "run"), cmp.Or(o.last.Error, string(o.last.Outcome)))
		}
	}
	configured := map[string]bool{}
	for _, s := range e.home.Config.Servers {
		configured[s.Name] = true
	}
	open := e.open()
	for _, key := range slices.Sorted(maps.Keys(open)) {
		if c := open[key]; c.Kind == string(notify.Server) && configured[c.Subject] {
			e.fail("correct mcp-servers."+c.Subject+" in "+e.App.ConfigFile(e.home.Dir), "the MCP server %s has failed since %s: %s", c.Subject, e.clockText(c.Since), c.Text)
		}
	}
	return "the last uses of engines and servers went well"
}

// plain returns a remedy without the backquotes of a message.
func plain(remedy string) string { return strings.ReplaceAll(remedy, "`", "") }

// open returns the causes that last, by key.
func (e *examination) open() map[string]notice.Entry {
	open, err := e.home.Runner(false).Notify().OpenCauses()
	e.fault(err, "")
	return open
}

// askCost is the most that a question of Ask may cost, in USD.
const askCost = 0.05

// TestQuestion is a question whose answer shows that an engine can be reached.
func TestQuestion(root string) turn.Question {
	return turn.Question{
		Text: "Answer with the word OK.", System: "You are asked whether you can be reached. Answer with one word.", Root: root,
		MaxTurns: 1, MaxCost: askCost, Discard: true,
	}
}

// Ask asks each engine one short question, whose cost counts, and reports whether it answers.
func (d Doctor) Ask(ctx context.Context) []Finding {
	e := &examination{Doctor: d, name: "question"}
	var err error
	if e.home, err = d.App.Home(); err != nil {
		e.fault(err, "")
		return e.list
	}
	r := e.home.Runner(false)
	r.Settings.Fallback = nil // the question is whether the engine's own model answers
	for _, name := range slices.Sorted(maps.Keys(e.engineNames())) {
		if strings.HasPrefix(name, "script:") {
			continue // it plays a file, and asks nobody
		}
		record, err := turn.New(r).Ask(ctx, TestQuestion(string(e.home.Dir)), turn.Options{Engine: name, Owner: true})
		switch {
		case err == nil && record.Outcome == runlog.OK:
			e.pass("question", fmt.Sprintf("%s answered, for %.4f USD", name, record.Cost))
		case record.ID == "":
			e.fault(fmt.Errorf("%s: %w", name, err), "")
		default:
			e.fail(plain(notify.Failure(record, "failed", r.Home).Remedy), "%s: %s", name, cmp.Or(record.Error, string(record.Outcome)))
		}
	}
	return e.list
}
