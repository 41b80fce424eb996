package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/schedule/installer"
)

func newScheduleRemove(d *Deps) *cobra.Command {
	return newScheduleUnits(d, "remove", "Remove the entries that install has installed",
		"Remove deletes our block from your crontab and restores the rest byte for byte, or stops and deletes our units. It "+
			"works even if the data directory has been deleted.",
		[]string{forCrontab, forSystemd}, refused, runScheduleRemove)
}

func runScheduleRemove(ctx context.Context, d *Deps, o unitOptions) error {
	h, err := d.AnyHome()
	if errors.Is(err, app.ErrNoConfig) { // the directory may be gone, and its entries must go, too
		h, err = d.NewHome()
	}
	if err != nil {
		return err
	}
	host := installer.Host{DataDir: string(h.Dir)}
	if o.target == forCrontab {
		_, err := crontabOf(h, d).Edit(ctx, func(old []byte) ([]byte, error) {
			if _, err := ownBlock(host, old); err != nil {
				return nil, err
			}
			rest, _, err := installer.Remove(old)
			return rest, err
		})
		return o.fault(err)
	}
	return d.applyUnits(ctx, o, host, nil)
}
