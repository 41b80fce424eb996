package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// TestPipeReceivesFinalText: narration between tools, and what came of an answer that broke off, stay out of a pipe or a file.
func TestPipeReceivesFinalText(t *testing.T) {
	t.Parallel()
	for _, verb := range [][]string{{"-p", "-n", "add type hints"}, {"chat", "add type hints"}} {
		w, api := newNativeWorld(t)
		narrated := anthropicapi.Use("Glob", map[string]string{"pattern": "*"})
		narrated.Text = "Let me look at it first."
		api.Reply(narrated, anthropicapi.Reply{Text: "x: int = 1"})
		if out := w.must(verb...); out != "x: int = 1\n" {
			t.Errorf("%q with narration: %q", verb, out)
		}
		api.Reply(anthropicapi.Reply{Text: strings.Repeat("a broken answer ", 20), Fault: apiserver.Cut, After: 6}, anthropicapi.Reply{Text: "x: int = 2"})
		if out := w.must(verb...); out != "x: int = 2\n" {
			t.Errorf("%q after a broken stream: %q", verb, out)
		}
		api.Reply(anthropicapi.Reply{Text: "x: i", StopReason: "max_tokens"})
		if r := w.run(verb...); r.status != 1 || r.out != "" || !strings.Contains(r.errOut, "cut at its token limit") {
			t.Errorf("%q, cut short: %+v", verb, r)
		}
	}
}

// TestNoSessionKeepsNothingSaid: after --no-session no file holds a word of the question, its input, the tools or the answer.
func TestNoSessionKeepsNothingSaid(t *testing.T) {
	w, api := newNativeWorld(t)
	t.Chdir(t.TempDir())
	for _, format := range []string{"text", "json", "stream-json"} {
		api.Reply(anthropicapi.Reply{Thinking: "okapi", Text: "okapi", ToolUses: []anthropicapi.ToolUse{
			{Name: "Glob", Input: map[string]string{"pattern": "okapi*"}}, {Name: "Write", Input: map[string]string{"file_path": "okapi", "content": "okapi"}},
		}}, anthropicapi.Reply{Text: strings.Repeat("The okapi. ", 7000), Usage: anthropicapi.Usage{In: 10, Out: 10}})
		if r := w.pipe("okapi in", "-p", "--no-session", "--output-format", format, "okapi?"); r.status != 0 || !strings.Contains(r.out, "The okapi.") {
			t.Errorf("%s: %d %.200s %s", format, r.status, r.out, r.errOut)
		}
		r := w.last()
		if r["outcome"] != "ok" || r["cost"] == 0.0 || r["finished"] == nil || r["turns"] != 1.0 {
			t.Errorf("%v", r)
		}
		w.pass(1e9)
	}
	api.Reply(anthropicapi.Reply{Text: "okapi", StopReason: "max_tokens"})
	if out := w.must("run", "log", "last"); !strings.Contains(out, "\nprompt and answer not kept: ") {
		t.Errorf("run log does not say what is missing:\n%s", out)
	}
	if page := w.must("report"); !strings.Contains(page, "<b>Prompt and answer</b> not kept: ") {
		t.Error("the report does not say what is missing")
	}
	if r := w.run("-p", "-n", "--no-session", "okapi?"); r.status != 1 {
		t.Errorf("%+v", r)
	}
	err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "okapi") {
			t.Errorf("%s holds what was said:\n%.300s", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
