// Package man holds the manual pages, so that a machine with nothing but the binary has them.
package man

import (
	"embed"
	"io/fs"
)

//go:embed *.1 *.5 *.7
var pages embed.FS

// Pages is one file for each page, in roff, named like ollim-fire.1.
func Pages() fs.FS { return pages }
