package pi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/pi"
	"github.com/ollim/ollim/internal/state/transcript"
)

// testdata/v3.jsonl was written by pi 0.73.1: two turns against a server of Anthropic's API, and the rest by its SessionManager.
func TestSessionOfPi(t *testing.T) {
	t.Parallel()
	s, err := pi.Open("testdata/v3.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != "01a20424-a02d-7595-beb8-448b06c75ecf" || s.Cwd != "/home/ada/zoo" || s.Provider != "anthropic" || s.Model != "claude-sonnet-4-5" ||
		s.Form != pi.Name || s.Timestamp.Year() != 2026 || s.ParentID != "" {
		t.Errorf("%+v", s)
	}
	bad := 0
	entries, err := pi.Load(s, &bad)
	if err != nil || bad != 0 {
		t.Fatal(err, bad)
	}
	want := []string{
		"user: what is in a.md?",
		`assistant: read {"path":"/home/ada/zoo/a.md"} toolu_1`,
		`user: toolu_1 the needle in "a.md" <b>`,
		`assistant: An okapi, "quoted" / <b>é</b>.`,
		"user: The left branch asked about Zürich.",
		"user: Injected by an extension.",
		"user: what is this picture? [image, image/png, 8 bytes]",
		"assistant: (hm, a secret thought) A walrus.",
		"user: Go on.",
		"assistant: Gone on.",
		"user: Summary: okapi, walrus.",
		"user: after the compaction",
	}
	if got := said(entries); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if entries[3].Tokens != 1461 || entries[3].At.Year() != 2026 {
		t.Errorf("%+v", entries[3])
	}
}

func said(entries []transcript.Entry) (lines []string) {
	for _, e := range entries {
		words := []string{e.Message.Role + ":"}
		for _, b := range e.Message.Content {
			if b.Thinking != "" {
				words = append(words, "("+b.Thinking+")")
			}
			text := b.Text + b.ToolUseID + " " + b.Content + b.Name + " " + string(b.Input) + " " + b.ID
			if b.Source != nil {
				text += b.Source.Label()
			}
			words = append(words, strings.Fields(text)...)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

func TestForms(t *testing.T) {
	t.Parallel()
	const head = `{"type":"session","version":3,"id":"a","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/p","parentSession":"/x/2024-12-02T14-00-00-000Z_b.jsonl"}` + "\n"
	for name, tc := range map[string]struct {
		text, want, parent string
		bad                int
	}{
		"version 1": {
			`{"type":"session","id":"a","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/p","provider":"openai","modelId":"x","branchedFrom":"/y/c.jsonl"}` + "\n" +
				`{"type":"message","timestamp":"2024-12-03T14:00:01.000Z","message":{"role":"user","content":"Hello"}}` + "\n" +
				`{"type":"message","timestamp":"2024-12-03T14:00:04.000Z","message":{"role":"bashExecution","command":"ls","output":"a\nb"}}` + "\n",
			"user: Hello|user: $ ls a b", "c", 0,
		},
		"a circle": {
			head + `{"type":"message","id":"1","parentId":"2","message":{"role":"user","content":"one"}}` + "\n" +
				`{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":"two"}}` + "\n", "user: one|user: two", "b", 0,
		},
		"damaged":    {head + "{\"type\":\"mess\n" + `{"type":"message","id":"1","parentId":"lost","message":{"role":"toolResult","toolCallId":"t","content":7}}` + "\n", "user: t", "b", 1},
		"no entries": {head, "", "b", 0},
		"ours":       {`{"type":"session","id":"n-1","cwd":"/p","provider":"x","model":"y","timestamp":"2026-01-01T00:00:00Z"}` + "\n", "foreign", "", 0},
		"empty":      {"", "foreign", "", 0},
		"a bad id":   {strings.ReplaceAll(head, `"a"`, `"../a"`), "foreign", "", 0},
	} {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := pi.Open(path)
		if tc.want == "foreign" {
			if !errors.Is(err, transcript.ErrForeign) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		bad := 0
		entries, loadErr := pi.Load(s, &bad)
		if got := strings.Join(said(entries), "|"); errors.Join(err, loadErr) != nil || got != tc.want || s.ParentID != tc.parent || bad != tc.bad {
			t.Errorf("%s: %q, parent %q, %d bad, %v", name, got, s.ParentID, bad, errors.Join(err, loadErr))
		}
	}
}
