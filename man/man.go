// Package man holds the manual pages, so that a machine with only the binary has them, shows them as plain text, and searches
// them: Answer returns the sections that match a few words best.
//
// DESCRIPTION and EXAMPLE of the pages of section 1 are written by hand and are also what --help says. The rest of these pages follows
// from the commands: go test ./internal/cli -run Manual -update.
//
// The pages are not compressed: that would take 0.26 of 18 MB off the program, and needs either a generated file in the repository
// or a build with more steps than go build.
package man

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.1 *.5 *.7
var pages embed.FS

// Pages is one file for each page, in roff, named like ollim-fire.1.
func Pages() fs.FS { return pages }

// Help returns the description and the examples of the page of a command such as "ollim fire", as the command's --help shows them.
func Help(command string) (description, examples string) {
	page, _ := pages.ReadFile(strings.ReplaceAll(command, " ", "-") + ".1") // hidden commands have none
	_, rest, _ := strings.Cut(string(page), "\n.SH DESCRIPTION\n")
	description, rest, _ = strings.Cut(rest, "\n.SH ")
	if _, rest, found := strings.Cut(rest, "\n.SH EXAMPLE\n.EX\n"); found {
		examples, _, _ = strings.Cut(rest, "\n.EE\n")
	}
	return strings.NewReplacer("\n.PP\n", "\n", `\fB`, "`", `\fR`, "`").Replace(strings.TrimSpace(description)), examples
}
