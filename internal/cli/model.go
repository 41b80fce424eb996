package cli

import (
	"github.com/spf13/cobra"
)

func newModel(d *Deps) *cobra.Command {
	return group("model", "models", "The table of models", newModelList(d))
}
