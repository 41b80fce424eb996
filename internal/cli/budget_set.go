package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/budget"
)

func newBudgetSet(d *Deps) *cobra.Command {
	var capacity, rate int
	cmd := &cobra.Command{
		Annotations: agentNever(nested),
		Use:         "set [--capacity N] [--rate MINUTES]",
		Short:       "Change the capacity and the refill rate of the ping budget",
		Long: "Values that are not given stay the same. Available tokens are kept, up to the new capacity. Capacity 0 " +
			"allows only critical pings.",
		Example: "  ollim budget set --capacity 3 --rate 120",
		Args:    checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error {
			given := func(name string, value *int) *int {
				if cmd.Flags().Changed(name) {
					return value
				}
				return nil
			}
			return runBudgetSet(cmd.Context(), d, given("capacity", &capacity), given("rate", &rate))
		}),
	}
	cmd.Flags().IntVar(&capacity, "capacity", 0, "maximum number of tokens, 0 to 1000")
	cmd.Flags().IntVar(&rate, "rate", 0, "minutes until a token is refilled, 1 to 10080")
	return cmd
}

func runBudgetSet(ctx context.Context, d *Deps, capacity, rate *int) error {
	if capacity == nil && rate == nil {
		return usage("nothing to set: want --capacity or --rate")
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	err = h.Budget().Set(ctx, capacity, rate)
	if errors.Is(err, budget.ErrCapacity) || errors.Is(err, budget.ErrRate) {
		return usage("--%v", err)
	}
	return err
}
