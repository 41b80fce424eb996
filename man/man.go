// Package man holds the manual pages, so that a machine with only the binary has them, shows them as plain text, and searches
// them: Search cuts the pages into sections and returns those that match a few words best.
//
// The pages are not compressed: that would take 0.26 of 18 MB off the program, and needs either a generated file in the repository
// or a build with more steps than go build.
package man

import (
	"embed"
	"io/fs"
)

//go:embed *.1 *.5 *.7
var pages embed.FS

// Pages is one file for each page, in roff, named like ollim-fire.1.
func Pages() fs.FS { return pages }
