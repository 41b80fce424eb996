package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

func newModelCheck(d *deps) *cobra.Command {
	const short = "Check that the models in use are listed by their services, stay and have a price"
	return withJSON(d, command(agentNever(refused), "check", short,
		inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runModelCheck(ctx, d, h) })), jsonLines)
}

func runModelCheck(ctx context.Context, d *deps, h app.Home) error {
	uses, err := h.ModelUses()
	if err != nil {
		return err
	}
	lists, unavailable := h.AskModels(ctx, uses, d.atShell())
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, l := range lists.Lists {
		if l.Why != "" && l.Asked() {
			d.warn("model check: " + l.Engine + ": the list of models is not checked: " + l.Why)
		}
	}
	faults := h.ModelFaults(uses, lists, d.atShell())
	if err := records(d, "MODEL FAULT USED-BY FINDING REMEDY", faults, func(f app.ModelFault) []any {
		return []any{printable(f.Model), f.Fault, brief(strings.Join(f.UsedBy, ",")), prose(f.Text), remedy(f.Remedy)}
	}); err != nil {
		return err
	}
	switch {
	case provider.Unavailable(unavailable):
		return &withStatus{unavailable, statusUnavailable}
	case unavailable != nil:
		return unavailable
	case len(faults) > 0:
		return &reported{statusFailed}
	}
	d.note("%s of models in use: nothing is wrong", plaintext.Count(len(uses), "use"))
	return nil
}
