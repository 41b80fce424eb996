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
	"github.com/ollim/ollim/man"
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
		if cmd.HasSubCommands() && cmd.HasParent() && (cmd.Annotations[onlyVerbs] != "" || !cmd.Runnable()) {
			return // a noun, which only lists verbs
		}
		cmd.DisableAutoGenTag = true
		cmd.InitDefaultHelpFlag()
		describe(cmd)
		title := strings.ToUpper(strings.ReplaceAll(cmd.CommandPath(), " ", "-"))
		date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
		var page bytes.Buffer
		if err := doc.GenMan(cmd, &doc.GenManHeader{Title: title, Section: "1", Source: "ollim", Manual: "ollim", Date: &date}, &page); err != nil {
			t.Fatal(err)
		}
		pages[strings.ToLower(title)+".1"] = shorter(t, cmd, page.String())
	})
	return pages
}

// shorter leaves the options and exit statuses that all commands share to ollim(1), and adds the pages about the command.
func shorter(t *testing.T, cmd *cobra.Command, page string) []byte {
	t.Helper()
	page, _, _ = strings.Cut(page, ".SH SEE ALSO\n")
	shared, statuses := "", statusSection()
	if cmd.HasParent() {
		shared = "The options of \\fBollim(1)\\fP, such as --data-dir and --quiet, apply as well.\n\n\n"
		statuses = ".SH EXIT STATUS\n0 means success; \\fBollim(1)\\fP lists the others.\n\n\n"
		head, rest, found := strings.Cut(page, ".SH OPTIONS\n")
		own, rest, inherits := strings.Cut(rest, ".SH OPTIONS INHERITED FROM PARENT COMMANDS\n")
		if !found || !inherits {
			t.Fatalf("%s: options are not where they were", cmd.CommandPath())
		}
		if _, after, found := strings.Cut(rest, "\n.SH "); found {
			rest = ".SH " + after
		} else {
			rest = ""
		}
		if own = ownOptions(own); own != "" {
			shared = ".PP\n" + shared
		}
		page = head + ".SH OPTIONS\n" + own + shared + rest
	}
	see := []string{"\\fBollim(1)\\fP"}
	if !cmd.HasParent() {
		see = nil
	}
	for _, e := range man.About(cmd.CommandPath()) {
		see = append(see, "\\fB"+e.Name()+"\\fP")
	}
	if len(see) < 2 && cmd.HasParent() {
		t.Errorf("no page of section 5 or 7 lists %s under SEE ALSO", cmd.CommandPath())
	}
	return []byte(page + statuses + ".SH SEE ALSO\n" + strings.Join(see, ", ") + "\n")
}

// ownOptions leaves out --help, which every command has.
func ownOptions(options string) string {
	var kept strings.Builder
	for option := range strings.SplitSeq(strings.TrimSpace(options), "\n\n.PP\n") {
		if !strings.Contains(option, `\fB--help\fP`) {
			kept.WriteString(option + "\n\n.PP\n")
		}
	}
	return strings.TrimSuffix(kept.String(), ".PP\n")
}

func statusSection() string {
	var section strings.Builder
	section.WriteString(".SH EXIT STATUS\n")
	for _, m := range statusTable() {
		fmt.Fprintf(&section, ".TP\n.B %d\n%s\n", m.status, m.text)
	}
	return section.String()
}
