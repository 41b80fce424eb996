package cli

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
)

func runScheduleDiff(ctx context.Context, d *deps, o unitOptions) error {
	h, host, jobs, err := d.entries(o)
	if err != nil {
		return err
	}
	if o.target == forCrontab {
		changes, _, left, err := d.crontabChanges(ctx, h, host, jobs)
		d.tellLeft(left)
		if err != nil {
			return err
		}
		return differences(d, "", changes, lineChange.cells)
	}
	changes, err := d.unitChanges(ctx, o, host, jobs)
	told := differences(d, "UNIT CHANGE", changes, func(c installer.Change) []any { return []any{c.Name, c.What} })
	return cmp.Or(err, told)
}

// differences lists changes. The error is a status if there is any.
func differences[T any](d *deps, columns string, changes []T, cells func(T) []any) error {
	if err := records(d, columns, changes, cells); err != nil || len(changes) == 0 {
		return err
	}
	return &reported{statusFailed}
}

// unitChanges is what install would change of the units of systemd. With an error it is what is known of it.
func (d *deps) unitChanges(ctx context.Context, o unitOptions, host installer.Host, jobs []job.Job) ([]installer.Change, error) {
	files, err := installer.Systemd(host, jobs)
	if err != nil {
		return nil, err
	}
	units, err := d.units(o)
	if err != nil {
		return nil, err
	}
	if err := owned(host, units); err != nil {
		return nil, err
	}
	changes, err := units.Compare(files)
	if err == nil { // an idle unit that changes is listed once
		idle := units.Idle(ctx, files)
		changes = append(changes, slices.DeleteFunc(idle, func(c installer.Change) bool {
			return slices.ContainsFunc(changes, func(known installer.Change) bool { return known.Name == c.Name })
		})...)
	}
	return changes, err
}

// lineChange is a line of a crontab that would go or come.
type lineChange struct {
	Line string `json:"line"`
	What string `json:"what"` // add, remove
}

func (c lineChange) cells() []any {
	return []any{map[string]string{installer.Add: "+ ", installer.Drop: "- "}[c.What] + c.Line}
}

// crontabChanges is what install would change of the crontab, with the block that is there, "" for none, and the routines that are left
// to the tick.
func (d *deps) crontabChanges(ctx context.Context, h app.Home, host installer.Host, jobs []job.Job) (changes []lineChange, have string, left []installer.Left, err error) {
	now, err := crontabOf(h, d).Read(ctx)
	if err != nil {
		return nil, "", left, err
	}
	want, left, err := d.crontabBlock(host, jobs, now)
	if err != nil {
		return nil, "", left, err
	}
	have, err = ownBlock(host, now)
	if err != nil {
		return nil, have, left, err
	}
	merged, err := installer.Merge(now, want)
	if err != nil || bytes.Equal(merged, now) {
		return nil, have, left, err
	}
	gone, come := lacking(have, want), lacking(want, have)
	if len(gone)+len(come) == 0 { // only their order or place is another
		gone, come = lacking(have, ""), lacking(want, "")
	}
	for _, line := range gone {
		changes = append(changes, lineChange{line, installer.Drop})
	}
	for _, line := range come {
		changes = append(changes, lineChange{line, installer.Add})
	}
	return changes, have, left, nil
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
