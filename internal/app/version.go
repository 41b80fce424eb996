package app

import "runtime/debug"

// Version returns the module's version, as the go command stamped it; "development" for a build from a working tree.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "development"
	}
	return info.Main.Version
}
