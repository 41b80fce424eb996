package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ollim/ollim/internal/app"
)

var rewrite = flag.Bool("update", false, "write the manual pages anew")

// TestManualPagesAreCurrent compares man/ with the command tree.
func TestManualPagesAreCurrent(t *testing.T) {
	t.Parallel()
	const dir = "../../man"
	pages := manualPages(t)
	for name, want := range pages {
		path := filepath.Join(dir, name)
		if *rewrite {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current (%v): go test ./internal/cli -run Manual -update", path, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if _, ok := pages[filepath.Base(path)]; ok {
			continue
		}
		if *rewrite {
			err = os.Remove(path)
		} else {
			t.Errorf("%s is of no command", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func manualPages(t *testing.T) map[string][]byte {
	t.Helper()
	root := newRoot(&deps{App: &app.App{}})
	root.InitDefaultCompletionCmd("bash")
	root.DisableAutoGenTag = true
	pages := map[string][]byte{}
	walk(root, func(cmd *cobra.Command) {
		cmd.DisableAutoGenTag = true
		cmd.InitDefaultHelpFlag()
		describe(cmd)
		title := strings.ToUpper(strings.ReplaceAll(cmd.CommandPath(), " ", "-"))
		date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
		var page bytes.Buffer
		if err := doc.GenMan(cmd, &doc.GenManHeader{Title: title, Section: "1", Source: "ollim", Manual: "ollim", Date: &date}, &page); err != nil {
			t.Fatal(err)
		}
		pages[strings.ToLower(title)+".1"] = withStatuses(t, page.Bytes())
	})
	return pages
}

// withStatuses puts EXIT STATUS before SEE ALSO, as man-pages(7) orders them.
func withStatuses(t *testing.T, page []byte) []byte {
	t.Helper()
	var section strings.Builder
	section.WriteString(".SH EXIT STATUS\n")
	for _, m := range statusTable() {
		fmt.Fprintf(&section, ".TP\n.B %d\n%s\n", m.status, m.text)
	}
	head, tail, found := bytes.Cut(page, []byte(".SH SEE ALSO"))
	if !found {
		return append(page, section.String()...)
	}
	return bytes.Join([][]byte{head, []byte(section.String()), []byte(".SH SEE ALSO"), tail}, nil)
}
