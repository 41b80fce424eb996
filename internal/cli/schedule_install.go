package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/unit"
)

func newScheduleInstall(d *Deps) *cobra.Command {
	return newScheduleUnits(d, "install", "Have cron or systemd fire all routines",
		"Install writes a block of lines into your crontab, last and between markers, or units and timers for systemd, and removes those of "+
			"routines that are gone. Every other line and unit stays as it is; the crontab that was is kept in state/backups. What cron cannot "+
			"express is left to ollim tick, and said. Run it again when routines have changed; until then ollim tick fires what is new. "+
			"Units of your own work only while you are logged in, unless you call loginctl enable-linger once. See SCHEDULES in ollim(7).",
		[]string{forCrontab, forSystemd}, runScheduleInstall)
}

func runScheduleInstall(ctx context.Context, d *Deps, o unitOptions) error {
	if err := d.ownerHere(); err != nil {
		return err
	}
	h, host, jobs, err := d.entries(o)
	if err != nil {
		return err
	}
	if o.target == forCrontab {
		block, left, err := unit.Crontab(host, jobs)
		if err != nil {
			return unitFault(err)
		}
		d.tellLeft(left)
		changed, err := h.table(d).Edit(ctx, func(old []byte) ([]byte, error) {
			if _, err := ownBlock(host, old); err != nil {
				return nil, err
			}
			return unit.Merge(old, block)
		})
		if err == nil && changed {
			d.note("installed; take it back with: ollim schedule remove crontab")
		}
		return unitFault(err)
	}
	files, err := unit.Systemd(host, jobs)
	if err != nil {
		return unitFault(err)
	}
	return d.applyUnits(ctx, o, host, files)
}

// applyUnits tells what it changed, as diff would have said.
func (d *Deps) applyUnits(ctx context.Context, o unitOptions, host unit.Host, files []unit.File) error {
	units, err := d.units(o)
	if err != nil {
		return err
	}
	if err := ownUnits(host, units); err != nil {
		return unitFault(err)
	}
	changes, err := units.Apply(ctx, files, d.Now())
	if err != nil {
		return unitFault(err)
	}
	for _, c := range changes {
		d.note("%s %s", c.What, c.Name)
	}
	return nil
}

// errOtherHouse: a user has one crontab and one folder of units.
var errOtherHouse = errors.New("the entries of another data directory are installed there")

// ownBlock is the block of a crontab, or "" where there is none.
func ownBlock(host unit.Host, table []byte) (string, error) {
	block, _, err := unit.Extract(table)
	if err == nil {
		err = owned(host, block)
	}
	return block, err
}

func ownUnits(host unit.Host, units unit.Units) error {
	tick, err := units.Tick()
	if err == nil {
		err = owned(host, tick)
	}
	return err
}

// owned refuses the entries of another data directory.
func owned(host unit.Host, entries string) error {
	if strings.Contains(entries, " --data-dir ") && !host.Owns(entries) {
		return errOtherHouse
	}
	return nil
}
