package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

func newTick(d *deps) *cobra.Command {
	var dryRun, wait, waiting bool
	cmd := command(agentNever(nested), "tick", "Start due jobs, retry messages and clean up; run it every minute",
		func(cmd *cobra.Command, _ []string) error {
			if waiting {
				return runWaiting(cmd.Context(), d, wait)
			}
			return runTick(cmd.Context(), d, dryRun, wait)
		})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be started (start), reported as late (collect), set again (restore) or reminded (nudge), "+
		"and change nothing")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the started jobs, as in a container that ends with its first process; until they have "+
		"ended, do the work of each further minute as well, for an hour")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "start the slots that wait, as others end")
	_ = cmd.Flags().MarkHidden("waiting") // the flag exists
	return withJSON(d, cmd, "with --dry-run: "+jsonLines)
}

func runTick(ctx context.Context, d *deps, dryRun, wait bool) error {
	if d.json && !dryRun {
		return usage("--json needs --dry-run")
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	s := &starter{d: d, home: h, wait: wait}
	if wait {
		ctx.Done() // from here on a signal ends what is started, too
	}
	if !dryRun {
		return s.goOn(ctx, s.minute(ctx).Pass(ctx))
	}
	plan, err := s.minute(ctx).Plan(ctx)
	if err != nil {
		return err
	}
	return records(d, "ID ACTION TIME NAME", plan, func(a tick.Action) []any { return []any{a.Job, a.Do, clock(a.At), brief(a.Name)} })
}

// minute returns the work of one minute, which starts processes with s.
func (s *starter) minute(ctx context.Context) tick.Minute {
	d, h, keep := s.d, s.home, s.home.Config.Keep
	m := tick.Minute{
		Runner: h.Runner(false), Keep: keep.Runs, Retain: tick.Retain{Idle: keep.Idle, Transcripts: keep.Transcripts, History: keep.History}, Heartbeat: h.Config.Heartbeat, Space: doctor.Space,
		Start:     func(j job.Job) error { return s.start(ctx, j) },
		StartLate: func(j job.Job, at time.Time) error { return s.start(ctx, j, "--slot", at.UTC().Format(time.RFC3339)) },
		Parallel:  h.Parallel, Drain: func() error {
			if s.wait {
				return s.launch("tick", "--waiting", "--wait")
			}
			return s.launch("tick", "--waiting")
		},
		Entry:    s.entry,
		Converse: func() error { return s.launch("chat", "--abandoned") },
		Nudge:    func() error { return s.launch("fork", "nudge") },
		Continue: func(run string) error { return s.launch("answer", "--continue", "--", run) },
		Typed:    isTerminal(d.In) || isTerminal(d.Stderr),
		Sweep:    func(ctx context.Context) error { return sweepSessions(ctx, h) },
		Bill:     func(ctx context.Context) error { return overview.TellBill(ctx, h) },
		Models:   h.TellModels,
	}
	if h.Config.Summary == config.SummaryWeekly {
		m.Summary = func() (string, error) {
			w, err := overview.LastWeek(h)
			return w.Text(), err
		}
	}
	return m
}

// starter starts commands that continue after this process and its terminal session have ended.
type starter struct {
	d       *deps
	home    app.Home
	wait    bool
	started map[*exec.Cmd]bool // have not ended yet; only if wait is set
	exits   chan exit          // of those; only if wait is set
	ended   func()             // is called when a started process has ended; nil: this process does not live that long
}

func (s *starter) start(ctx context.Context, j job.Job, flags ...string) error {
	if len(flags) == 0 && !s.wait && s.asUnit(ctx, j) {
		return nil
	}
	return s.launch(slices.Concat([]string{"fire", "--scheduled"}, flags, []string{"--", j.ID})...)
}

// launch starts a command line of ollim in a process session of its own.
func (s *starter) launch(args ...string) error {
	_, err := s.begin(args...)
	return err
}

func (s *starter) begin(args ...string) (process.ID, error) {
	if s.d.Begin != nil {
		return s.d.Begin(args)
	}
	self, err := os.Executable()
	if err != nil {
		return process.ID{}, err
	}
	args = append([]string{"--data-dir", string(s.home.Dir), "--config", s.d.ConfigFile(s.home.Dir)}, args...)
	cmd := exec.Command(self, args...) //nolint:noctx // it outlives this process
	cmd.Dir = s.home.Dir.Path()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return process.ID{}, err
	}
	id := process.Of(cmd.Process.Pid)
	switch {
	case s.wait:
		s.watch(cmd)
	case s.ended != nil:
		ended := s.ended // of this process; it may be another function for the next
		go func() {
			_ = cmd.Wait()
			ended()
		}()
	default:
		err = cmd.Process.Release()
	}
	return id, err
}

// asUnit starts the job's unit if systemd started this process, and reports whether it did; if not, the caller starts the job itself. It
// does not start the unit of a job that is running: that does nothing, and the slot would have neither a claim nor a skipped run.
func (s *starter) asUnit(ctx context.Context, j job.Job) bool {
	if manager, _ := s.d.Lookup(installer.UnitsVariable); manager != "user" || !lock.Free(s.home.Dir.JobLock(j.ID)) {
		return false
	}
	units, err := s.d.units(unitOptions{})
	if err == nil {
		err = units.Start(ctx, j.ID)
	}
	if err != nil {
		s.d.info("tick: %s: %v", j.ID, err)
	}
	return err == nil
}

// runFireEntry runs the webhook of an entry of the inbox and then, unless alone, starts what can run after it.
func runFireEntry(ctx context.Context, d *deps, run string, alone bool) error {
	outlivePipe()
	ctx.Done() // from here on a signal ends the fire instead of the process
	h, err := d.Home()
	if err != nil {
		return err
	}
	f := h.Firer()
	record, err := f.FireEntry(ctx, run, fire.Options{})
	if record.ID != "" {
		d.info("fire: run %s: %s", record.ID, record.Outcome)
		err = (&fireOptions{}).verdict(d, record, err)
	}
	if alone || ctx.Err() != nil {
		return err
	}
	s := starter{d: d, home: h}
	_, startErr := f.Entries.Start(ctx, s.entry)
	return errors.Join(err, startErr)
}

// entry starts a process that runs an entry of the inbox. If this process waits for those that it starts, they start no others.
func (s *starter) entry(run string) (process.ID, error) {
	args := []string{"fire", "--inbox", run}
	if s.wait {
		args = append(args, "--alone")
	}
	return s.begin(args...)
}

// startEntries starts the runs of the entries in the inbox until ctx ends: at every wake, when a run that it has started has ended, and
// when a rate limit allows it. The configuration is read anew each time.
func (d *deps) startEntries(ctx context.Context, wake <-chan struct{}, home func() (app.Home, error)) {
	ended := make(chan struct{}, 1)
	s := &starter{d: d, ended: func() {
		select {
		case ended <- struct{}{}:
		default:
		}
	}}
	for ctx.Err() == nil {
		timer := time.NewTimer(d.passEntries(ctx, s, home))
		select {
		case <-ctx.Done():
		case <-time.After(betweenPasses):
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-ended:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// betweenPasses is the least time between two passes over the inbox, so that many events that arrive at once need only a few.
const betweenPasses = 50 * time.Millisecond

// passEntries starts the entries that can start now, and returns how long to wait before the next pass.
func (d *deps) passEntries(ctx context.Context, s *starter, home func() (app.Home, error)) time.Duration {
	h, err := home()
	if err == nil {
		s.home = h
		var again time.Duration
		if again, err = h.Firer().Entries.Start(ctx, s.entry); err == nil && again > 0 {
			return again
		}
	}
	if err != nil && ctx.Err() == nil {
		d.warn(err.Error())
	}
	return time.Minute
}
