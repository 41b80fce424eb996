package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/schedule/installer"
)

func newScheduleInstall(d *Deps) *cobra.Command {
	return newScheduleUnits(d, "install", "Install entries for all routines in cron or systemd",
		"Install writes a block of lines between two markers at the end of your crontab, or units and timers for systemd, "+
			"and removes entries of deleted routines. All other lines and units are kept, and the previous crontab is saved "+
			"in state/backups. Routines that cron cannot express are left to ollim tick, with a message. Run install again "+
			"when routines have changed; until then ollim tick fires the new ones. User units run only while you are logged "+
			"in, unless you enable lingering (loginctl enable-linger). See SCHEDULES in ollim(7).",
		[]string{forCrontab, forSystemd}, refused, runScheduleInstall)
}

func runScheduleInstall(ctx context.Context, d *Deps, o unitOptions) error {
	h, host, jobs, err := d.entries(o)
	if err != nil {
		return err
	}
	if passing(host.Ollim) {
		return hint(&withStatus{fmt.Errorf("%s is deleted when go run ends", host.Ollim), statusConfig}, "go install ./cmd/ollim, then ollim schedule install %s", o.target)
	}
	if o.target == forCrontab {
		block, left, err := installer.Crontab(host, jobs)
		if err != nil {
			return o.fault(err)
		}
		d.tellLeft(left)
		changed, err := crontabOf(h, d).Edit(ctx, func(old []byte) ([]byte, error) {
			if _, err := ownBlock(host, old); err != nil {
				return nil, err
			}
			return installer.Merge(old, block)
		})
		if err == nil && changed {
			d.note("installed; to undo: ollim schedule remove crontab")
		}
		return o.fault(err)
	}
	files, err := installer.Systemd(host, jobs)
	if err != nil {
		return o.fault(err)
	}
	return d.applyUnits(ctx, o, host, files)
}

// passing reports whether a program is one that go run has built.
func passing(program string) bool {
	return strings.Contains(program, "/go-build") && strings.Contains(program, "/exe/")
}

// applyUnits tells what it changed, as diff would have said.
func (d *Deps) applyUnits(ctx context.Context, o unitOptions, host installer.Host, files []installer.File) error {
	units, err := d.units(o)
	if err != nil {
		return err
	}
	if err := owned(host, units); err != nil {
		return o.fault(err)
	}
	changes, err := units.Apply(ctx, files, d.Now())
	if err != nil {
		return o.fault(err)
	}
	for _, c := range changes {
		d.note("%s %s", c.What, c.Name)
	}
	return nil
}

// otherHouse is the data directory whose entries are there: a user has one crontab and one directory of units.
type otherDataDir struct{ dir string }

func (*otherDataDir) Error() string {
	return "the entries of another data directory are installed there"
}

// ownBlock is the block of a crontab, or "" where there is none.
func ownBlock(host installer.Host, table []byte) (string, error) {
	block, _, err := installer.Extract(table)
	if dir := installer.DataDirOf(block); err == nil && dir != "" && !sameDir(dir, host.DataDir) {
		err = &otherDataDir{dir}
	}
	return block, err
}

// sameDir reports whether two paths lead to one directory.
func sameDir(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return a == b || err == nil && otherErr == nil && os.SameFile(one, other)
}

// owned refuses units of another data directory, if there is a single one: any of them may have been deleted by hand.
func owned(host installer.Host, units installer.Units) error {
	dirs, err := units.DataDirs()
	for _, dir := range dirs {
		if err == nil && !sameDir(dir, host.DataDir) {
			err = &otherDataDir{dir}
		}
	}
	return err
}
