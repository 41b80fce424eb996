package app

import "runtime/debug"

// Version is the module's, as the go command stamped it; a build from a work tree is a development one.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "development"
	}
	return info.Main.Version
}
