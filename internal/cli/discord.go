package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/server/discord/api"
)

func newDiscord(d *Deps) *cobra.Command {
	return group("discord", "discords", "Connect the agent to Discord", newDiscordListen(d), newDiscordCheck(d), newDiscordSync(d))
}

func newDiscordCheck(d *Deps) *cobra.Command {
	return withJSON(d, &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "check",
		Short:       "Check the connection with Discord, and say what to fix",
		Long: "Check asks Discord about the token, the owner, the direct messages and the gateway, and looks at the listener, the clock " +
			"and the outbox. It prints one line per check: PASS, WARN or FAIL, what was checked, what was found, and what to do. It sends " +
			"no message. It exits 78 if the token is missing or not accepted, 69 if Discord cannot be reached or direct messages " +
			"are closed, and 1 for any other FAIL.",
		RunE: inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runDiscordCheck(ctx, d, h) }),
	}, jsonLines)
}

func runDiscordCheck(ctx context.Context, d *Deps, h app.Home) error {
	found := doctor.Doctor{App: d.App}.Discord(ctx, h)
	for i, f := range found {
		found[i].Text, found[i].Remedy = join(f.Text, f.Remedy), ""
	}
	if err := records(d, "RESULT CHECK FINDING", found, func(f doctor.Finding) []any { return []any{state(f.Result), f.What, f.Text} }); err != nil {
		return err
	}
	for _, f := range found {
		if f.Result == doctor.Fail {
			return &reported{checkStatus(f.Err)}
		}
	}
	return nil
}

// checkStatus is the exit status of what a check found; what may work later is unavailable.
func checkStatus(err error) status {
	if errors.Is(err, api.ErrUnreachable) || api.Temporary(err) {
		return statusUnavailable
	}
	return statusOf(err)
}
