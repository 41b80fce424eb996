package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/state/spend"
)

type fireOptions struct {
	jobs                           []string
	dryRun, print, scheduled       bool
	slot, engine, model, wait, now string
}

func (o *fireOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.dryRun, "dry-run", false, "print the prompt, tools, patterns, model and session, and change nothing")
	f.BoolVar(&o.print, "print", false, "print the agent's final text")
	f.BoolVar(&o.scheduled, "scheduled", false, "for timers: exit 0 silently if no slot is due or another fire has claimed "+
		"it, and respect the limits")
	f.StringVar(&o.slot, "slot", "", "with --scheduled: the missed slot that this fire catches up, RFC 3339")
	f.StringVar(&o.engine, "engine", "", "use this engine, such as script:FILE")
	f.StringVar(&o.model, "model", "", "use this model")
	f.StringVar(&o.wait, "wait", "0", "wait this long for a running fire of the job, instead of skipping")
	f.StringVar(&o.now, "now", "", "pretend that it is this time, RFC 3339 (script engine and --dry-run only)")
}

func newFire(d *deps) *cobra.Command {
	var o fireOptions
	var inbox string
	var alone, asCron bool
	cmd := command(agentNever(nested), "fire JOB... [-]", "Run jobs now, once each", func(cmd *cobra.Command, args []string) error {
		switch {
		case inbox != "":
			return runFireEntry(cmd.Context(), d, inbox, alone)
		case asCron:
			return d.asCron(cmd, args)
		}
		o.jobs = args
		return runFire(cmd.Context(), d, o)
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if inbox != "" {
			return cobra.NoArgs(cmd, args)
		}
		return cobra.MinimumNArgs(1)(cmd, args)
	}
	f := cmd.Flags()
	o.flags(f)
	f.BoolVar(&asCron, "as-cron", false, "run with cron's environment, from /, to see whether it works there")
	f.StringVar(&inbox, "inbox", "", "run the webhook of this event, which waits in the inbox")
	f.BoolVar(&alone, "alone", false, "with --inbox: start no other event at the end")
	_ = errors.Join(f.MarkHidden("inbox"), f.MarkHidden("alone")) // the flags exist
	return withJSON(d, cmd, "print the run record, or with --dry-run the plan, as one JSON object per job")
}

func runFire(ctx context.Context, d *deps, o fireOptions) error {
	outlivePipe()
	ctx.Done() // from here on a signal ends the fire instead of the process
	h, err := d.Home()
	if err != nil {
		return err
	}
	options, err := o.resolve(d)
	if err != nil {
		return err
	}
	if o.now != "" {
		now, err := parseTime(o.now, h.Config.Zone)
		if err != nil {
			return err
		}
		d.Now = func() time.Time { return now }
		if h, err = d.Home(); err != nil { // its stores keep the clock
			return err
		}
	}
	firer := h.Firer()
	return d.each("fire", o.jobs, func(name string) error { return o.one(ctx, d, firer, name, options) })
}

// resolve reads the options that can be wrong, and standard input where - asks for it.
func (o *fireOptions) resolve(d *deps) (fire.Options, error) {
	wait, err := job.ParseDuration(o.wait)
	if err != nil {
		return fire.Options{}, usage("--wait %v", err)
	}
	var late time.Time
	if o.slot != "" && (!o.scheduled || len(o.jobs) > 1) {
		return fire.Options{}, usage("--slot needs --scheduled and exactly one job")
	}
	if o.slot != "" {
		if late, err = time.Parse(time.RFC3339, o.slot); err != nil {
			return fire.Options{}, usage("--slot %q: write a time like 2026-03-07T09:00:00Z", o.slot)
		}
	}
	if o.engine != "" {
		if err := config.CheckEngine(o.engine); err != nil {
			return fire.Options{}, usage("--engine: %v", err)
		}
	}
	out := fire.Options{
		Engine: o.engine, Model: o.model, Wait: wait, Moved: o.now != "" && !o.dryRun, Owner: isTerminal(d.In) && !o.scheduled,
		Trigger: fire.Trigger{Scheduled: o.scheduled, Slot: late},
	}
	if !out.Owner && !out.Scheduled {
		out.Cron = sync.OnceValue(process.UnderCron) // a fire asks three times, and the answer cannot change
	}
	if last := len(o.jobs) - 1; o.jobs[last] == "-" {
		if o.jobs = o.jobs[:last]; last == 0 {
			return out, usage("no job: - only adds standard input to the prompt")
		}
		out.Input, err = readInput(d.In)
	}
	return out, err
}

func (o *fireOptions) one(ctx context.Context, d *deps, f fire.Firer, name string, options fire.Options) error {
	if o.dryRun {
		return o.preview(ctx, d, f, name, options)
	}
	stop := d.watch(strings.TrimSuffix(name, ".md"))
	options.Observe.Event = func(e runlog.Event) {
		if e.Type == runlog.CarriedOver && options.Owner {
			d.sayCarried(e)
		}
		d.follow(e)
	}
	r, err := f.Fire(ctx, name, options)
	stop()
	if o.needless(err) {
		return nil
	}
	if o.scheduled && (as[*run.Later](err) || errors.Is(err, fire.ErrUnasked)) { // the tick tries again; cron would mail an error each minute
		d.info("fire: %s: %v", name, err)
		return &reported{statusTempFail}
	}
	if r.ID == "" || errors.Is(err, runlog.ErrClosed) {
		return explain(err)
	}
	d.info("fire: %s: run %s: %s", name, r.ID, r.Outcome)
	if d.json {
		err = errors.Join(err, d.emit(r))
	}
	shown := r.Foreground && isTerminal(d.Stdout) // it was delivered here
	if o.print && r.Text != "" && !shown {
		_, writeErr := fmt.Fprintln(d.Out, r.Text)
		err = errors.Join(err, writeErr)
	}
	d.account("fire", name, r)
	return o.verdict(d, r, err)
}

// needless reports whether there was nothing to do: another process answers the slot, or the entry is stale. It is not stale if its
// file may be among those that cannot be read.
func (o *fireOptions) needless(err error) bool {
	if unknown := (*plaintext.Unknown)(nil); errors.As(err, &unknown) && unknown.What == "job" {
		return o.scheduled && unknown.Bad == 0
	}
	return errors.Is(err, slot.ErrClaimed) || errors.Is(err, slot.ErrNone)
}

func (o *fireOptions) verdict(d *deps, r runlog.Record, err error) error {
	ended := statusOfRun(r)
	switch {
	case r.Outcome == "" && err != nil:
		return explain(err) // the record could not be finished
	case ended == statusOK:
		return explain(err)
	case r.Outcome == runlog.Skipped && d.quiet, o.scheduled && slices.Contains([]runlog.Outcome{runlog.Skipped, runlog.Paused}, r.Outcome): // nobody wants cron's mail each time
		return &reported{ended}
	}
	if s := statusOf(err); r.Outcome == runlog.Failed && slices.Contains([]status{statusData, statusUnavailable, statusUnwritten, statusConfig}, s) {
		ended = s
	}
	if errors.Is(err, seal.ErrUnsupported) {
		ended = statusConfig
	}
	reason := r.Error
	if r.Outcome != runlog.Skipped {
		reason = string(r.Outcome) + ": " + r.Error
	}
	failure := error(&withStatus{errors.New(reason), ended})
	switch r.Outcome {
	case runlog.Paused:
		if strings.HasPrefix(r.Error, "enabled: false") {
			return hint(failure, "to enable it: ollim routine enable %s; to see its prompt: ollim fire --dry-run %s", r.Name, r.Name)
		}
	case runlog.Refused:
		if limit := (*spend.Limit)(nil); errors.As(err, &limit) {
			return hint(failure, "to raise the limit: ollim config set spend.%s NUMBER", limit.Key)
		}
		if errors.Is(err, seal.ErrUnsupported) {
			return hint(failure, "to run unsealed where nothing can be sealed: ollim config set seal auto, and no seal: on in the job")
		}
	case runlog.Failed, runlog.Timeout, runlog.Unreported:
		if known, ok := errors.AsType[*app.Hinted](err); ok {
			return hint(failure, "%s", known.Hint)
		}
		if errors.Is(err, engine.ErrNoKey) {
			return d.KeyHint(failure)
		}
		return hint(failure, "ollim run log %s", r.ID)
	}
	return failure
}

// explain adds what to do about an error before a run.
func explain(err error) error { return explainFor(job.Routine, err) }

// explainFor is explain for a command that takes a job of this kind.
func explainFor(kind job.Kind, err error) error {
	var unknown *plaintext.Unknown
	switch {
	case errors.Is(err, run.ErrNoEngine):
		return hint(err, "ollim config set engine claude-code (or native, or script:FILE; ollim demo shows one)")
	case errors.Is(err, run.ErrMovedClock):
		return usage("--now: %v", err)
	case errors.As(err, &unknown) && unknown.Bad > 0:
		return hint(err, "%s cannot be read, see: ollim check", plaintext.Count(unknown.Bad, "job file"))
	case errors.As(err, &unknown) && unknown.What == "job" && len(unknown.Near) == 0:
		return hint(err, "ollim %s list", kind)
	}
	return err
}

func (o *fireOptions) preview(ctx context.Context, d *deps, f fire.Firer, name string, options fire.Options) error {
	p, err := f.Preview(ctx, name, options)
	if err != nil {
		return explain(err)
	}
	if d.json {
		return d.emit(p)
	}
	var b strings.Builder
	session := cmp.Or(p.Session, "a new one")
	if p.Branch {
		session = "a branch of " + session
	}
	fmt.Fprintf(&b, "job: %s\nmode: %s\nengine: %s\nmodel: %s\nsession: %s\n",
		p.Job, p.Mode, cmp.Or(p.Engine, "none, the text is delivered"), cmp.Or(p.Model, "the engine's default"), session)
	if p.Refused != "" {
		fmt.Fprintf(&b, "would not run: %s\n", p.Refused)
	}
	for _, name := range p.Tools {
		refused := ""
		if slices.Contains(p.Refuses, name) {
			refused = " (refused when called)"
		}
		fmt.Fprintf(&b, "tool: %s%s\n", name, refused)
	}
	for _, pattern := range p.Patterns {
		fmt.Fprintf(&b, "pattern: %s\n", pattern)
	}
	if p.Alone {
		fmt.Fprintf(&b, "\nsystem prompt:\n\n%s\n\nprompt:\n", strings.TrimSpace(p.System))
	}
	_, err = io.WriteString(d.Out, d.flow(b.String()+"\n"+p.Prompt, 0))
	return err
}

// The years in which an instant may lie. The year of a later instant would not have four digits in every zone.
const (
	firstYear = 1970
	lastYear  = 9998
)

// parseTime reads an instant: RFC 3339, or without an offset in zone.
func parseTime(text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		t, err := time.ParseInLocation(layout, text, zone)
		if err != nil {
			continue
		}
		if t.Year() < firstYear || t.Year() > lastYear {
			return t, usage("--now %q: want a year from %d to %d", text, firstYear, lastYear)
		}
		return t, nil
	}
	return time.Time{}, usage("--now %q: write a time like 2026-03-07T09:00:00+01:00", text)
}
