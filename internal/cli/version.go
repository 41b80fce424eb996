package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "version",
		Short:       "Print the version and how it was built",
		Args:        checked(cobra.NoArgs),
		RunE: works(func(*cobra.Command, []string) error {
			return d.answer(fmt.Sprintf("ollim %s %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH), nil)
		}),
	}
}

// version is the module's, as the go command stamped it; a build from a work tree is a development one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "development"
	}
	return info.Main.Version
}
