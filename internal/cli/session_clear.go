package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
)

func newSessionClear(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "clear SESSION...",
		Short:       "Forget the main session or a routine's, so that the next turn starts a new one",
		Long: "Clear forgets the session's id; the conversation is kept, and session history lists the id. SESSION is main or " +
			"routine:ID. Main is cleared even during a turn, which then ends without becoming the main session again; a " +
			"routine's session is not cleared while the routine runs.",
		Example: "  ollim session clear main\n  ollim session clear routine:daily-market",
		RunE: inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return d.each("session clear", args, func(text string) error {
				n, found, err := h.SessionName(text)
				if err != nil {
					return err
				}
				if !found {
					return hint(usage("want main or routine:ID"), "to delete a transcript or a channel's session: ollim session rm %s", text)
				}
				return forget(ctx, h, n)
			})
		}),
	}
}
