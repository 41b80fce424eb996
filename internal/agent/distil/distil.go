// Package distil lets a model write a gate for a job from its recorded runs, and judges the gate.
//
// The inputs of a gate are the uses of tools that are the same in every run and that a plain program can repeat. The model sees the inputs
// of every other run, with their results and what the run did then, and writes the part of the gate that decides; the part that fetches the
// inputs is not its. The judge starts the deciding part, sealed and offline, with the recorded results of the runs that the model did not
// see. Only its exit status counts: no text in a record can change a verdict. A gate is accepted if it skips some of these runs and none
// that told or changed something.
//
// All of it is a directory, state/distils/ID: what was asked for in plan.json, each answer of the model in tries.jsonl, the gate, and the
// verdict in verdict.json. ID is the id of the run whose record has its cost.
package distil

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Plan is what a gate is written from.
type Plan struct {
	ID      string    `json:"id"`
	Job     string    `json:"job"`  // the job's id
	Name    string    `json:"name"` // and its name
	Begun   time.Time `json:"begun"`
	Model   string    `json:"model"`
	MaxCost float64   `json:"max_cost"` // USD
	Inputs  []Input   `json:"inputs"`   // of the gate, in the order of its arguments
	Seen    []string  `json:"seen"`     // the runs that the model sees
	Held    []string  `json:"held"`     // the runs that judge the gate
	Body    string    `json:"body"`     // the job's prompt
	Monthly float64   `json:"monthly"`  // how often the job fires in a month
}

// Distil is one that is carried out.
type Distil struct {
	Plan

	Book    Book
	Records Records
	Asker   backtest.Asker
	Start   Start
	Raise   func(ctx context.Context, least, most float64) (float64, error) // see engine.Limits
	Hide    func(text string) string                                        // replaces the values of secrets
}

// Start starts a deciding part, sealed and offline, with the results of the inputs.
type Start func(ctx context.Context, script []byte, inputs []string) (Exit, error)

// Exit is how a deciding part ended.
type Exit struct {
	Status int    // -1: it was ended
	Said   string // on standard error
}

// tries is how often the model may write the deciding part: again after a reason that the runs which it sees give.
const tries = 3

// Run lets the model write a gate, and judges it. The gate and the verdict are stored before it returns. The error is that of ctx
// or the engine, such as an engine.ErrMaxCost, or one of the disk.
func (d *Distil) Run(ctx context.Context) (v Verdict, err error) {
	v = Verdict{ID: d.ID, Job: d.Job, Name: d.Name, Model: d.Model}
	talk := author{d: d}
	var why string
	for v.Tries = 1; v.Tries <= tries; v.Tries++ {
		before := v.filter
		if v.filter, err = talk.write(ctx, why); err != nil {
			return v, err
		}
		if v.Tries > 1 && v.filter == before { // the reason remains
			break
		}
		if why, err = d.fault(ctx, v.filter); err != nil {
			return v, err
		}
		if err := d.Book.addTry(d.ID, try{v.filter, why}); err != nil {
			return v, err
		}
		if why == "" {
			break
		}
	}
	v.Tries = min(v.Tries, tries)
	gate := d.Script(v.filter)
	sum := sha256.Sum256(gate)
	v.Digest = hex.EncodeToString(sum[:])
	if why != "" {
		v.Why = append(v.Why, why)
	} else if err := d.judge(ctx, &v); err != nil {
		return v, err
	}
	v.Accepted, v.Cost = len(v.Why) == 0, talk.spent
	return v, d.Book.conclude(v, gate)
}

// fault returns what is wrong with a deciding part as far as the runs show that the model sees; "": nothing.
func (d *Distil) fault(ctx context.Context, filter string) (string, error) {
	seen := d.Records.Of(d.Seen)
	if why := unfit(filter, seen); why != "" {
		return why, nil
	}
	skipped := 0
	for _, c := range seen {
		closed, why, err := d.closes(ctx, filter, c)
		switch {
		case err != nil:
			return "", err
		case why != "":
			return fmt.Sprintf("with the inputs of the run %s, %s", c.Run, why), nil
		case closed && c.Loud():
			return fmt.Sprintf("it would skip the run %s, which did this: %s", c.Run, strings.Join(c.Did, ", ")), nil
		case closed:
			skipped++
		}
	}
	if skipped == 0 {
		return "it would skip no run", nil
	}
	return "", nil
}

// closes starts the deciding part with the inputs of a run, and reports whether it finds nothing to do. A run of which an input failed is
// never skipped. why says that the part is broken.
func (d *Distil) closes(ctx context.Context, filter string, c Case) (closed bool, why string, err error) {
	if c.Failed {
		return false, "", nil
	}
	exit, err := d.Start(ctx, deciding(len(d.Inputs), filter), c.Inputs)
	switch {
	case err != nil:
		return false, "", err
	case exit.Status == 0:
		return false, "", nil
	case exit.Status == 1 && exit.Said == "":
		return true, "", nil
	case exit.Status < 0:
		return false, "it does not end in time", nil
	}
	return false, fmt.Sprintf("it fails with status %d: %s", exit.Status, plaintext.Short(plaintext.Line(exit.Said), 200)), nil
}
