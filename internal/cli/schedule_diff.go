package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/unit"
)

func newScheduleDiff(d *Deps) *cobra.Command {
	return newScheduleUnits(d, "diff", "Say what install would change; exit 1 when there is anything",
		"Diff compares what is installed with the routines. For crontab it prints lines that would go (-) and come (+), for systemd one line "+
			"for each unit: add, change or remove, and its name.",
		[]string{forCrontab, forSystemd}, runScheduleDiff)
}

func runScheduleDiff(ctx context.Context, d *Deps, o unitOptions) error {
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
		return d.diffTable(ctx, h, block)
	}
	files, err := unit.Systemd(host, jobs)
	if err != nil {
		return unitFault(err)
	}
	units, err := d.units(o)
	if err != nil {
		return err
	}
	changes, err := units.Compare(files)
	for _, c := range changes {
		_, _ = fmt.Fprintf(d.Out, "%s\t%s\n", c.What, c.Name)
	}
	if err == nil && len(changes) > 0 {
		return &reported{statusFailed}
	}
	return unitFault(err)
}

func (d *Deps) diffTable(ctx context.Context, h house, want string) error {
	now, err := h.table(d).Read(ctx)
	if err != nil {
		return unitFault(err)
	}
	have, _, err := unit.Extract(now)
	if err != nil || have == want {
		return unitFault(err)
	}
	gone, come := lines(have), lines(want)
	for line := range bytes.Lines([]byte(have)) {
		if !come[string(line)] {
			_, _ = fmt.Fprintf(d.Out, "- %s", line)
		}
	}
	for line := range bytes.Lines([]byte(want)) {
		if !gone[string(line)] {
			_, _ = fmt.Fprintf(d.Out, "+ %s", line)
		}
	}
	return &reported{statusFailed}
}

func lines(text string) map[string]bool {
	set := map[string]bool{}
	for line := range bytes.Lines([]byte(text)) {
		set[string(line)] = true
	}
	return set
}
