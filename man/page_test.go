package man_test

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ollim/ollim/man"
)

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"ollim": "ollim.7", "ollim-sessions": "ollim-sessions.7", "ollim.1": "ollim.1", "ollim(1)": "ollim.1", "ollim-routine": "ollim-routine.5",
		"ollim-tick(1)": "ollim-tick.1", "ollim-tick.1": "ollim-tick.1", "ollim-routine(1)": "", "ollim-fire": "ollim-fire.1",
		"7": "", "5": "", "": "", ".": "", "routine": "", "fire": "", "ollim-": "", "ollim-fire(5)": "", "ollim-fire(": "", "man.go": "", "../man/ollim.7": "",
	} {
		if got, found := man.Find(name); got != want || found != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, found, want)
		}
	}
}

// A page as plain text has every section and word that the page has, in lines that fit.
func TestPlain(t *testing.T) {
	names, err := fs.Glob(man.Pages(), "*.[157]")
	if err != nil || len(names) < 50 {
		t.Fatal(names, err)
	}
	heading := regexp.MustCompile(`(?m)^(?: {3})?(\S.*)$`)
	for _, name := range names {
		roff, err := fs.ReadFile(man.Pages(), name)
		if err != nil {
			t.Fatal(err)
		}
		text := man.Plain(name, 0)
		narrow := man.Plain(name, 50)
		if len(strings.Fields(narrow)) != len(strings.Fields(text)) {
			t.Errorf("%s loses words in 50 columns", name)
		}
		stem, section, _ := strings.Cut(name, ".")
		if !strings.HasPrefix(text, stem+"("+section+")\n\nNAME\n       ollim") {
			t.Errorf("%s begins with %.60q", name, text)
		}
		if got, want := len(heading.FindAllString(text, -1))-1, len(regexp.MustCompile(`(?m)^\.S[HS] `).FindAll(roff, -1)); got != want {
			t.Errorf("%s: %d headings, want %d", name, got, want)
		}
		if strings.Contains(text, "\n\n\n") || strings.HasSuffix(text, "\n\n") || !strings.HasSuffix(text, "\n") {
			t.Errorf("%s: blank lines that separate nothing", name)
		}
		if bytes.Contains(roff, []byte("\n.nf")) || bytes.Contains(roff, []byte("\n.EX")) {
			continue // these lines stand as they are
		}
		for line := range strings.Lines(narrow) {
			if utf8.RuneCountInString(line) > 51 && len(strings.Fields(line)) > 1 {
				t.Errorf("%s: a line of more than 50 columns: %q", name, line)
			}
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > 79 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a long line: %q", name, line)
			}
		}
	}
	for file, want := range map[string]string{
		"ollim-seal.7":    "\n       * toolchains below your home, and the configuration of git (but no\n         stored passwords)\n",
		"ollim-fire.1":    "\n       --dry-run[=false]\n           print the prompt, tools, patterns, model and session,",
		"ollim-routine.5": "\n           * the id;\n",
	} {
		if got := man.Plain(file, 0); !strings.Contains(got, want) {
			t.Errorf("%s: no %q in\n%s", file, want, got)
		}
	}
}
