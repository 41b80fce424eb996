package cli

import (
	"context"
	"fmt"
	"strings"

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
		return d.diffTable(ctx, h, host, block)
	}
	files, err := unit.Systemd(host, jobs)
	if err != nil {
		return unitFault(err)
	}
	units, err := d.units(o)
	if err != nil {
		return err
	}
	if err := ownUnits(host, units); err != nil {
		return unitFault(err)
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

func (d *Deps) diffTable(ctx context.Context, h house, host unit.Host, want string) error {
	now, err := h.table(d).Read(ctx)
	if err != nil {
		return unitFault(err)
	}
	have, err := ownBlock(host, now)
	if err != nil || have == want {
		return unitFault(err)
	}
	gone, come := lacking(have, want), lacking(want, have)
	if len(gone)+len(come) == 0 { // only their order is another
		gone, come = lacking(have, ""), lacking(want, "")
	}
	for _, line := range gone {
		_, _ = fmt.Fprintln(d.Out, "-", line)
	}
	for _, line := range come {
		_, _ = fmt.Fprintln(d.Out, "+", line)
	}
	return &reported{statusFailed}
}

// lacking is the lines of a text that the other has not, or not as often.
func lacking(text, other string) (list []string) {
	count := map[string]int{}
	for line := range strings.Lines(other) {
		count[strings.TrimRight(line, "\n")]++
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if count[line]--; count[line] < 0 {
			list = append(list, line)
		}
	}
	return list
}
