package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/unit"
)

func newScheduleInstall(d *Deps) *cobra.Command {
	return newScheduleUnits(d, "install", "Have cron or systemd fire all routines",
		"Install writes a block of lines into your crontab, last and between markers, or units and timers for systemd, and removes those of "+
			"routines that are gone. Every other line and unit stays as it is; the crontab that was is kept in state/backups. What cron cannot "+
			"express is left to the line of ollim tick, and said.",
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
			if installed, found, err := unit.Extract(old); err == nil && found && !host.Owns(installed) {
				return nil, errOtherHouse
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
	units, err := d.units(o)
	if err != nil {
		return err
	}
	if tick, err := units.Tick(); err != nil || tick != "" && !host.Owns(tick) {
		return errors.Join(err, unitFault(errOtherHouse))
	}
	return d.applyUnits(ctx, o, files)
}

// errOtherHouse: a user has one crontab and one folder of units.
var errOtherHouse = errors.New("the entries of another data directory are installed there")

// applyUnits prints what it changed, as diff would have said.
func (d *Deps) applyUnits(ctx context.Context, o unitOptions, files []unit.File) error {
	units, err := d.units(o)
	if err != nil {
		return err
	}
	changes, err := units.Apply(ctx, files, d.Now())
	for _, c := range changes {
		d.note("%s %s", c.What, c.Name)
	}
	return unitFault(err)
}
