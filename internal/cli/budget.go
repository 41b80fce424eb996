package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/budget"
)

type budgetRow struct {
	Capacity     int       `json:"capacity"`
	Available    float64   `json:"available"`
	Rate         int       `json:"refill_rate_minutes"`
	NextRefill   time.Time `json:"next_refill,omitzero"`
	DailyUsed    int       `json:"daily_used"`
	CriticalUsed int       `json:"critical_used"`
}

func newBudget(d *deps) *cobra.Command {
	cmd := command(agentAll(), "budget", "Show the ping budget",
		inAnyHome(d, func(_ context.Context, h app.Home, _ []string) error { return runBudget(d, h) }))
	cmd.Aliases = []string{"budgets"}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage("unknown command %q: want set", args[0])
		}
		return nil
	}
	cmd.AddCommand(newBudgetSet(d))
	return withJSON(d, cmd, "as one JSON object")
}

func runBudget(d *deps, h app.Home) error {
	s, err := h.Budget.Status()
	if err != nil {
		return err
	}
	if !d.json {
		return d.answer(s.Full(), nil)
	}
	row := budgetRow{
		Capacity: s.Capacity, Available: s.Available, Rate: int(s.RefillEvery / time.Minute),
		DailyUsed: s.DailyUsed, CriticalUsed: s.CriticalUsed,
	}
	if s.NextRefill > 0 { // rounded up: then it is there
		row.NextRefill = d.Now().Add(s.NextRefill + time.Second).Truncate(time.Second).In(h.Config.Zone)
	}
	return d.emit(row)
}

func newBudgetSet(d *deps) *cobra.Command {
	var capacity, rate int
	cmd := command(agentNever(nested), "set [--capacity N] [--rate MINUTES]", "Change the capacity and the refill rate of the ping budget",
		func(cmd *cobra.Command, _ []string) error {
			given := func(name string, value *int) *int {
				if cmd.Flags().Changed(name) {
					return value
				}
				return nil
			}
			return runBudgetSet(cmd.Context(), d, given("capacity", &capacity), given("rate", &rate))
		})
	cmd.Args = cobra.NoArgs
	cmd.Flags().IntVar(&capacity, "capacity", 0, "maximum number of tokens, 0 to 1000")
	cmd.Flags().IntVar(&rate, "rate", 0, "minutes until a token is refilled, 1 to 10080")
	return cmd
}

func runBudgetSet(ctx context.Context, d *deps, capacity, rate *int) error {
	if capacity == nil && rate == nil {
		return usage("nothing to set: want --capacity or --rate")
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	err = h.Budget.Set(ctx, capacity, rate)
	if errors.Is(err, budget.ErrCapacity) || errors.Is(err, budget.ErrRate) {
		return usage("--%v", err)
	}
	return err
}
