package cli

import "github.com/spf13/cobra"

func newWebhook(d *Deps) *cobra.Command {
	return group("webhook", "webhooks", "Let events from outside run jobs", newWebhookServe(d), newWebhookCall(d))
}
