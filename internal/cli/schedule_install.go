package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newSchedule(d *deps) *cobra.Command {
	return group("schedule", "Show future and past fires, and install entries for a scheduler",
		newScheduleList(d), newScheduleAudit(d),
		newScheduleUnits(d, "print", "Print the entries that install would install", programs, runSchedulePrint),
		newScheduleUnits(d, "install", "Install entries for all routines in cron, systemd or a cluster", refused, runScheduleInstall),
		newScheduleUnits(d, "diff", "Show what install would change; exits 1 if there is anything", programs, runScheduleDiff),
		newScheduleUnits(d, "remove", "Remove the entries that install has installed", refused, runScheduleRemove),
		// OnFailure= of systemd starts it.
		hidden(command(agentNever(programs), "failed UNIT", "Report the failure of a unit, unless its run has reported it",
			inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
				return runScheduleFailed(ctx, d, h, args[0])
			}))))
}

func runSchedulePrint(_ context.Context, d *deps, o unitOptions) error {
	e, err := d.entries(o)
	if err != nil {
		return err
	}
	var text string
	var files []installer.File
	var left []installer.Left
	switch o.target {
	case forCrontab:
		text, left, err = installer.Crontab(e.host, e.jobs)
	case forKubernetes:
		text, left, err = installer.Kubernetes(e.host, e.all, o.kube)
	default:
		files, err = installer.Systemd(e.host, e.jobs)
	}
	if err != nil {
		return e.told(d, err)
	}
	d.tellLeft(left)
	for i, f := range files {
		if i > 0 {
			text += "\n"
		}
		text += fmt.Sprintf("==> %s <==\n%s", f.Name, f.Text)
	}
	_, err = io.WriteString(d.Out, text)
	return e.told(d, err)
}

func runScheduleInstall(ctx context.Context, d *deps, o unitOptions) error {
	e, err := d.entries(o)
	if err != nil {
		return err
	}
	if why := d.vanishes(e.host.Ollim); why != "" {
		return hint(&withStatus{fmt.Errorf("%s: %s", e.host.Ollim, why), statusConfig},
			"copy ollim to ~/.local/bin, or run go install, then run schedule install %s with that one", o.target)
	}
	switch o.target {
	case forCrontab:
		return e.told(d, d.installCrontab(ctx, o, e))
	case forKubernetes:
		return e.told(d, d.installCluster(ctx, o, e))
	}
	if err := d.applyUnits(ctx, o, e.host, e.files); err != nil {
		return err
	}
	d.warnOfTick(ctx, e.home, e.host)
	return e.told(d, nil)
}

func (d *deps) installCrontab(ctx context.Context, o unitOptions, e entries) error {
	var left []installer.Left
	changed, err := d.editCrontab(ctx, e.home, e.host, func(old []byte) (text []byte, err error) {
		var block string
		block, left, err = d.crontabBlock(e, old)
		if err != nil {
			return nil, err
		}
		return installer.Merge(old, block)
	})
	if !o.untold {
		d.tellLeft(left)
	}
	if err == nil && changed {
		d.note("installed; to undo: ollim schedule remove crontab")
	}
	return err
}

// editCrontab changes the crontab, unless its block is that of another data directory.
func (d *deps) editCrontab(ctx context.Context, h app.Home, host installer.Host, edit func(old []byte) ([]byte, error)) (bool, error) {
	return crontabOf(h, d).Edit(ctx, func(old []byte) ([]byte, error) {
		if _, err := ownBlock(host, old); err != nil {
			return nil, err
		}
		return edit(old)
	})
}

// applyUnits changes the units to those that wanted returns, and prints the changes as diff would have.
func (d *deps) applyUnits(ctx context.Context, o unitOptions, host installer.Host, wanted func(installer.Units) ([]installer.File, error)) error {
	units, err := d.ownUnits(o, host)
	if err != nil {
		return err
	}
	files, err := wanted(units)
	if err != nil {
		return err
	}
	changes, err := units.Apply(ctx, files, d.Now())
	if err != nil {
		return err
	}
	d.noteChanges(changes)
	return nil
}

func (d *deps) noteChanges(changes []installer.Change) {
	for _, c := range changes {
		d.note("%s %s", c.What, c.Name)
	}
}

// otherDataDir is the error of entries that another data directory has installed: a user has one crontab and one directory of units.
type otherDataDir struct{ dir string }

func (*otherDataDir) Error() string {
	return "the entries of another data directory are installed there"
}

// ownBlock returns the block of a crontab, or "" if there is none. A block of another data directory is an error.
func ownBlock(host installer.Host, table []byte) (string, error) {
	block, _, err := installer.Extract(table)
	if _, dir := installer.CallOf(block); err == nil && dir != "" && !sameFile(dir, host.DataDir) {
		err = &otherDataDir{dir}
	}
	return block, err
}

// sameFile reports whether two paths lead to one file or directory.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return a == b || err == nil && otherErr == nil && os.SameFile(one, other)
}

// ownUnits returns the place of the units. A single unit of another data directory is an error, because the others may have been deleted by
// hand.
func (d *deps) ownUnits(o unitOptions, host installer.Host) (installer.Units, error) {
	units, err := d.units(o)
	if err != nil {
		return units, err
	}
	_, dirs, err := units.Calls()
	for _, dir := range dirs {
		if err == nil && !sameFile(dir, host.DataDir) {
			err = &otherDataDir{dir}
		}
	}
	return units, err
}

func runScheduleRemove(ctx context.Context, d *deps, o unitOptions) error {
	h, err := d.AnyHome()
	if errors.Is(err, app.ErrNoConfig) { // the entries of a deleted directory must be removable
		h, err = d.NewHome()
	}
	if err != nil {
		return err
	}
	host := installer.Host{DataDir: string(h.Dir)}
	if o.target == forKubernetes {
		return d.removeFromCluster(ctx, h, o, host)
	}
	if o.target == forCrontab {
		if !exists(host.DataDir) { // the directory is not created again: the backup of the crontab is temporary
			scratch, err := os.MkdirTemp("", "ollim-")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(scratch) }()
			h.Dir = paths.Dir(scratch)
		}
		_, err := d.editCrontab(ctx, h, host, func(old []byte) ([]byte, error) {
			rest, _, err := installer.Remove(old)
			return rest, err
		})
		return err
	}
	return d.applyUnits(ctx, o, host, func(installer.Units) ([]installer.File, error) { return nil, nil })
}

// justNow is how long after the end of a run a unit's failure is taken for that of the run.
const justNow = 5 * time.Minute

// runScheduleFailed notifies the owner of a unit that failed before its run began. It does nothing if the job's latest run explains the
// failure: a run that has just ended has reported its end, and the next tick reports a run whose process died.
func runScheduleFailed(ctx context.Context, d *deps, h app.Home, name string) error {
	if status, ok := d.Lookup("MONITOR_EXIT_STATUS"); ok && (status == "65" || status == "66") {
		return nil // the fire itself reports a file that cannot be read
	}
	if id := installer.JobOf(name); id != "" {
		if r, err := h.Runs.Noted(h.Dir.JobLock(id)); err == nil && tells(h, r) {
			return nil
		}
	}
	_, err := h.Runner(false).Notify().Open(ctx, notify.Cause{
		Kind: notify.Unit, Subject: name, Name: name,
		Text:   name + " failed before its run began",
		Remedy: fmt.Sprintf("see the journal: `journalctl -u %s` (with --user for user units)", name),
	})
	return err
}

// tells reports whether a job's latest run may be that of the failed unit: it has just ended, or its process died. A run in progress is
// not.
func tells(h app.Home, r runlog.Record) bool {
	if r.Done() {
		return h.Disk.Now().Sub(*r.Finished) < justNow
	}
	return !h.Runs.Attended(r)
}
