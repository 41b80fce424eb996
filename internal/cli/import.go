package cli

import "github.com/spf13/cobra"

func newImport(d *Deps) *cobra.Command {
	return group("import", "imports", "Make routines of what ran your agent before", newImportCrontab(d))
}
