package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/distil"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// distilOptions are the options of a distil.
type distilOptions struct {
	model, since string
	last         int
	yes          bool
	maxCost      float64
}

func newDistil(d *deps) *cobra.Command {
	var o distilOptions
	cmd := command(agentNever(refused), "distil JOB", "Let a model write a gate for a job from its recorded runs, and judge the gate", nil)
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "let this `model` write the gate (default: native.model)")
	f.IntVar(&o.last, "last", 80, "use the last `N` runs; the model sees every other one")
	f.StringVar(&o.since, "since", "", "use all runs of the last `TIME` instead, such as 60d")
	f.Float64Var(&o.maxCost, "max-cost", 0, "spend at most this, in `USD` (default: twice the estimate plus 0.50)")
	f.BoolVar(&o.yes, "yes", false, "do not ask before money is spent, and put an accepted gate in place")
	cmd.MarkFlagsMutuallyExclusive("last", "since")
	cmd.RunE = inHome(d, func(ctx context.Context, h app.Home, args []string) error {
		if err := checkMaxCost(cmd, o.maxCost); err != nil {
			return err
		}
		return runDistil(ctx, d, h, o, args[0])
	})
	cmd.AddCommand(
		newList(d, agentNever(refused), "list", "List the gates that were written: id, job, verdict, quiet runs skipped, pings lost, cost",
			"ID JOB VERDICT SKIPPED LOST COST", d.distils, distilRow.cells),
		command(agentNever(refused), "put ID", "Put a gate in place that was accepted",
			inHome(d, func(ctx context.Context, h app.Home, args []string) error { return d.putGate(ctx, h, args[0]) })),
	)
	return withJSON(d, cmd, "print the verdict as one JSON object")
}

func runDistil(ctx context.Context, d *deps, h app.Home, o distilOptions, name string) error {
	d.pager = nil // it would hold back the tables and the gate until the questions about them are answered
	if o.last < 1 {
		return usage("--last %d: want 1 or more", o.last)
	}
	if err := model.CheckName(o.model); o.model != "" && err != nil {
		return usage("--model: %v", err)
	}
	jobs, _, err := d.jobSet()
	if err != nil {
		return err
	}
	j, err := jobs.Find(name)
	if err != nil {
		return explain(err)
	}
	if err := mayHaveGate(h, j); err != nil {
		return err
	}
	records, err := o.records(d, h, j)
	if err != nil {
		return err
	}
	if !d.json {
		if err := d.inputs(records); err != nil {
			return err
		}
	}
	if few := records.Few(); few != "" {
		return &withStatus{fmt.Errorf("%s: %s", j.Name(), few), statusData}
	}
	p, goOn, err := o.plan(ctx, d, h, j, records)
	if err != nil || !goOn {
		return err
	}
	if err := h.Distils().Begin(p); err != nil {
		return err
	}
	v, err := h.Distil(ctx, p, records, d.atShell())
	if errors.Is(err, engine.ErrMaxCost) {
		return &withStatus{err, statusRefused}
	}
	if err != nil {
		return err
	}
	if err := errors.Join(d.judgement(h, v), d.flush()); err != nil {
		return err
	}
	if !v.Accepted {
		return &reported{statusFailed}
	}
	return d.offerGate(ctx, h, v, o.yes)
}

// mayHaveGate returns an error if ollim cannot write a gate for a job.
func mayHaveGate(h app.Home, j job.Job) error {
	switch {
	case j.Kind == job.Webhook:
		return &withStatus{fmt.Errorf("%s is a webhook: only routines and reminders have a gate", j.Name()), statusData}
	case j.Plain:
		return &withStatus{fmt.Errorf("%s is a plain reminder: it asks no agent, so a gate has nothing to skip", j.Name()), statusData}
	}
	if j.Gate == "" {
		return nil
	}
	text, err := store.Read(h.Dir.Gate(j.Gate))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && distil.Written(text) == "" {
		err = fmt.Errorf("%s has a gate that ollim did not write, gates/%s: its runs are those that this gate lets through", j.Name(), j.Gate)
		return hint(&withStatus{err, statusData}, "remove gate: from %s, and distil after enough runs", j.Path)
	}
	return err
}

// records reads the recorded runs of a job.
func (o distilOptions) records(d *deps, h app.Home, j job.Job) (r distil.Records, err error) {
	ids, err := backtestOptions{last: o.last, since: o.since}.selected(d, h, j.ID)
	if err != nil {
		return r, err
	}
	return distil.Read(h.Runs, h.Dir, ids)
}

// plan makes the plan, says what it is likely to cost, and asks on a terminal.
func (o distilOptions) plan(ctx context.Context, d *deps, h app.Home, j job.Job, records distil.Records) (p distil.Plan, goOn bool, err error) {
	table, err := h.Models()
	if err != nil {
		return p, false, err
	}
	p = distil.Plan{Job: j.ID, Name: j.Name(), Begun: d.Now(), Model: o.model, MaxCost: o.maxCost, Inputs: records.Inputs, Body: j.Body}
	if j.Kind == job.Routine {
		p.Monthly = float64(j.Schedule.PerYear(d.Now().Year())) / 12
	}
	if p.Model == "" {
		p.Model = h.Config.Native.Model
	}
	p.Seen, p.Held = records.Split()
	sketch := distil.Distil{Plan: p, Records: records, Hide: func(text string) string { return text }}
	usd, known := sketch.Estimate(table)
	if p.MaxCost == 0 { // without a price, too: only a local service then answers
		p.MaxCost = 2*usd + reserve
	}
	cost := "the price of the model is not known"
	if known {
		cost = fmt.Sprintf("about $%.4f, at most $%.4f", usd, p.MaxCost)
	}
	text := fmt.Sprintf("gate of %s: %s writes it from %s, and %s judge it: %s.",
		j.Name(), p.Model, plaintext.Count(len(p.Seen), "run"), plaintext.Count(len(p.Held), "run"), cost)
	if goOn, err = d.agreesOnTerminal(ctx, text, "Start?", o.yes); err != nil || !goOn {
		return p, false, err
	}
	p.ID, err = runlog.NewID(d.Now(), d.Random)
	return p, err == nil, err
}

// mostOthers is how many uses of tools that are no inputs are listed.
const mostOthers = 20

// inputs prints what a gate can fetch, and why it cannot fetch the rest.
func (d *deps) inputs(r distil.Records) error {
	list := append(append([]distil.Input{}, r.Inputs...), r.Others[:min(len(r.Others), mostOthers)]...)
	return records(d, "INPUT TOOL RUNS WHAT WHY-NOT", list, func(in distil.Input) []any {
		is := "yes"
		if in.Why != "" {
			is = "no"
		}
		return []any{is, brief(in.Tool), strconv.Itoa(in.Runs), brief(in.What), prose(in.Why)}
	})
}

// judgement prints a gate and the verdict about it.
func (d *deps) judgement(h app.Home, v distil.Verdict) error {
	if d.json {
		return d.emit(v)
	}
	gate, err := h.Distils().Gate(v.ID)
	if err != nil {
		return err
	}
	lines := []string{"", strings.TrimRight(plaintext.Lines(string(gate)), "\n"), ""}
	result := "accepted: " + v.String()
	if !v.Accepted {
		result = "refused: " + v.String()
	}
	lines = append(lines, d.flow(fmt.Sprintf("%s ($%.4f, distil %s)", result, v.Cost, v.ID), 0))
	if v.Accepted {
		lines = append(lines, d.flow(fmt.Sprintf("With a confidence of 95 %%, at most %.0f %% of such runs would be lost.", 100*v.Bound), 0))
	}
	for _, why := range v.Why {
		lines = append(lines, d.flow("- "+plaintext.Lines(why), 2))
	}
	return d.answer(strings.Join(lines, "\n"), nil)
}

// offerGate puts an accepted gate in place if the owner says so.
func (d *deps) offerGate(ctx context.Context, h app.Home, v distil.Verdict, yes bool) error {
	asks := isTerminal(d.In) && isTerminal(d.Stderr)
	if asks && !yes {
		var err error
		if yes, err = newAsker(d.In).agrees(ctx, d.Stderr, "Put it in place?", false); err != nil {
			return err
		}
	}
	if !yes {
		d.note("the gate is kept; to put it in place: ollim distil put %s", v.ID)
		return nil
	}
	return d.putGate(ctx, h, v.ID)
}

// putGate puts an accepted gate in place.
func (d *deps) putGate(ctx context.Context, h app.Home, id string) error {
	v, gate, err := acceptedGate(h, id)
	if err != nil {
		return err
	}
	return h.Disk.Locked(ctx, h.Dir.Lock("gates"), func() error { return d.placeGate(h, v, gate) })
}

// acceptedGate returns a gate as it was judged, and its verdict.
func acceptedGate(h app.Home, id string) (v distil.Verdict, gate []byte, err error) {
	v, err = h.Distils().Verdict(id)
	if as[*plaintext.Unknown](err) {
		return v, nil, hint(&withStatus{err, statusNoJob}, "ollim distil list")
	}
	if err == nil && !v.Accepted {
		err = fmt.Errorf("distil %s: the gate was refused: %s", v.ID, strings.Join(v.Why, "; "))
	}
	if err == nil {
		gate, err = h.Distils().Gate(id)
	}
	if sum := sha256.Sum256(gate); err == nil && hex.EncodeToString(sum[:]) != v.Digest {
		err = fmt.Errorf("distil %s: the gate is not as it was judged", v.ID)
	}
	if err != nil {
		err = &withStatus{err, statusData}
	}
	return v, gate, err
}

// placeGate writes a gate to gates/, and names it in the file of its job last: at every moment the job has its old gate or the new one. The
// new gate has another name than the one that the job has. A gate that the job has already stays as it is, and so does its approval.
func (d *deps) placeGate(h app.Home, v distil.Verdict, gate []byte) error {
	jobs, _, err := d.jobSet()
	if err != nil {
		return err
	}
	j, err := jobs.Find(v.Job)
	if err != nil {
		return explain(err)
	}
	if err := mayHaveGate(h, j); err != nil {
		return err
	}
	if now, err := store.Read(h.Dir.Gate(j.Gate)); j.Gate != "" && err == nil && bytes.Equal(now, gate) {
		d.note("%s has this gate already, gates/%s", j.Name(), j.Gate)
		return nil
	}
	name, err := gateName(h, jobs, j)
	if err != nil {
		return err
	}
	err = errors.Join(store.MkdirOwn(h.Dir.Path("gates")), h.Distils().Place(v.ID), store.Write(h.Dir.Gate(name), gate, store.Synced))
	if err == nil {
		err = os.Chmod(h.Dir.Gate(name), 0o700) //nolint:gosec // an executable of the owner
	}
	if err != nil {
		return err
	}
	text, err := j.WithGate(name)
	if err := rewriteJob(j, text, err); err != nil {
		return err
	}
	if j.Gate != "" && !named(jobs, j, j.Gate) { // mayHaveGate says that ollim wrote it
		if err := store.Remove(h.Dir.Gate(j.Gate)); err != nil {
			return err
		}
	}
	d.note("%s has the gate gates/%s, and waits for your approval: ollim approve %s", j.Name(), name, j.Name())
	return nil
}

// named reports whether a job other than j names a gate.
func named(jobs job.Set, j job.Job, gate string) bool {
	for _, other := range jobs.Jobs {
		if other.Path != j.Path && (other.Gate == gate || other.After == gate || other.Verify == gate) {
			return true
		}
	}
	return j.After == gate || j.Verify == gate
}

// gateName returns a name for the new gate of a job, which no job uses and no file has that ollim did not write.
func gateName(h app.Home, jobs job.Set, j job.Job) (string, error) {
	base := j.Name()
	if !plaintext.IsID(base) {
		base = j.ID
	}
	for _, name := range []string{base, base + "-2"} {
		text, err := store.Read(h.Dir.Gate(name))
		if name != j.Gate && !named(jobs, j, name) && (err == nil && distil.Written(text) != "" || errors.Is(err, os.ErrNotExist)) {
			return name, nil
		}
	}
	err := fmt.Errorf("gates/%s and gates/%s-2 exist, and ollim did not write them or another job uses them", base, base)
	return "", hint(&withStatus{err, statusData}, "rename one of them")
}

// distilRow is a distil in the list.
type distilRow struct{ distil.Verdict }

func (r distilRow) cells() []any {
	verdict := "accepted"
	if !r.Accepted {
		verdict = "refused"
	}
	return []any{
		r.ID, brief(r.Name), verdict, fmt.Sprintf("%d of %d", r.Skipped, r.Quiet), fmt.Sprintf("%d of %d", r.Lost, r.Loud), fmt.Sprintf("$%.4f", r.Cost),
	}
}

func (d *deps) distils(context.Context) (rows []distilRow, err error) {
	h, err := d.Home()
	if err != nil {
		return nil, err
	}
	list, bad, err := h.Distils().List()
	d.warnBad(bad)
	for _, v := range list {
		rows = append(rows, distilRow{v})
	}
	return rows, err
}
