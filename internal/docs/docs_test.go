package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/docs"
)

// What people ask is found where it is written.
func TestSearch(t *testing.T) {
	for query, want := range map[string]string{
		"fire dry-run":               "ollim-fire(1)",
		"update-main-session always": "ollim-routine(5)",
		"pop updates into a command": "ollim-update-pop(1)",
	} {
		found := docs.Search(query)
		shown := found[:min(4, len(found))]
		if !slices.ContainsFunc(shown, func(s docs.Section) bool { return s.Page == want }) {
			t.Errorf("%q: %d sections, first %+v", query, len(found), shown)
		}
	}
	if found := docs.Search("xyzzy"); len(found) > 0 {
		t.Errorf("xyzzy is in %+v", found[0])
	}
	for _, query := range []string{"", "!!", "--", "- -", "xyzzy"} {
		if got := docs.Answer(query); !strings.Contains(got, "ollim help all") {
			t.Errorf("%q is answered by %q", query, got)
		}
	}
	if got := docs.Answer("ollim"); len(got) > 16000 || !strings.HasPrefix(got, "ollim") {
		t.Errorf("%d bytes: %.60q", len(got), got)
	}
}

// A macro or an escape that the reader does not know would reach an agent as noise.
func TestNoRoffIsLeft(t *testing.T) {
	roff := regexp.MustCompile(`(?m)^\.[A-Z][A-Z]?( |$)|\\[f(&]|\\-`)
	sections := docs.Sections()
	if len(sections) < 100 {
		t.Fatalf("%d sections", len(sections))
	}
	for _, s := range sections {
		if left := roff.FindString(s.Text + s.Title); left != "" || s.Title == "" {
			t.Errorf("%s, %s: %q in %q", s.Page, s.Title, left, s.Text)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	for b.Loop() {
		docs.Answer("how is a reminder retried")
	}
}
