package cli

import (
	"github.com/spf13/cobra"
)

func newModel(d *Deps) *cobra.Command {
	return group("model", "models", "Models: what is known of them", newModelList(d))
}
