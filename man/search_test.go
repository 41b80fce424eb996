package man

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What people ask is found where it is written.
func TestSearch(t *testing.T) {
	for query, want := range map[string]string{
		"fire dry-run":               "ollim-fire(1)",
		"update-main-session always": "ollim-routine(5)",
		"pop updates into a command": "ollim-update-pop(1)",
		"budget":                     "ollim-messages(7)",
	} {
		found := search(query)
		shown := found[:min(4, len(found))]
		if !slices.ContainsFunc(shown, func(s section) bool { return s.Page == want }) {
			t.Errorf("%q: %d sections, first %+v", query, len(found), shown)
		}
	}
	if found := search("xyzzy"); len(found) > 0 {
		t.Errorf("xyzzy is in %+v", found[0])
	}
	for _, query := range []string{"", "!!", "--", "- -", "xyzzy"} {
		if got := Answer(query); !strings.Contains(got, "ollim help all") {
			t.Errorf("%q is answered by %q", query, got)
		}
	}
	if got := Answer("ollim"); len(got) > 16000 || !strings.HasPrefix(got, "ollim") {
		t.Errorf("%d bytes: %.60q", len(got), got)
	}
}

// A macro or an escape that the reader does not know would reach an agent as noise.
func TestNoRoffIsLeft(t *testing.T) {
	roff := regexp.MustCompile(`(?m)^\.[A-Z][A-Z]?( |$)|\\[f(&~]|\\-`)
	sections := allSections()
	if len(sections) < 100 {
		t.Fatalf("%d sections", len(sections))
	}
	for _, s := range sections {
		if left := roff.FindString(s.Text + s.Title); left != "" || s.Title == "" {
			t.Errorf("%s, %s: %q in %q", s.Page, s.Title, left, s.Text)
		}
	}
}

// Whoever asks gets sentences: a paragraph is one line, however many lines and macros it has in the page.
func TestAnswersAreSentences(t *testing.T) {
	for query, want := range map[string]string{
		"frontmatter kebab-case keys": "Keys are written in kebab-case; snake_case is read too (update-main-session and update_main_session are one key). An unknown key",
		"routine frontmatter prompt":  "A routine is a file routines/NAME.md in the data directory. It consists of YAML frontmatter, which",
		"fire dry-run":                "\n--dry-run[=false]\n  print the prompt, tools, patterns, model and session",
		"duration such as 90s":        "\n\nduration\nA number with a unit, such as 90s, 30m, 1h30m or 7d; a day has 24 hours.",
	} {
		if got := Answer(query); !strings.Contains(got, want) {
			t.Errorf("%q: no %q in\n%s", query, want, got)
		}
	}
	for _, s := range allSections() {
		if s.Title == "SEE ALSO" || s.Title == "SYNOPSIS" {
			t.Errorf("%s, %s answers nothing", s.Page, s.Title)
		}
		for line := range strings.SplitSeq(s.Text, "\n") {
			if strings.HasSuffix(line, ",") && !strings.HasPrefix(line, " ") {
				t.Errorf("%s, %s: a line ends in the middle of a sentence: %q", s.Page, s.Title, line)
			}
		}
	}
	long := Answer("session transcripts files state directory run")
	for part := range strings.SplitSeq(long, "\n\n---\n\n") {
		if text, cut := strings.CutSuffix(part, " …"); cut && !strings.HasSuffix(text, ".") && !strings.Contains(text[max(0, len(text)-200):], "\n") {
			t.Errorf("cut in the middle: …%q", text[max(0, len(text)-80):])
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	for b.Loop() {
		Answer("how is a reminder retried")
	}
}
