package cli

import "github.com/spf13/cobra"

func newImport(d *Deps) *cobra.Command {
	return group("import", "imports", "Convert other schedules into routines", newImportCrontab(d))
}
