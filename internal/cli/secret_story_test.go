package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const token = "sup3r-s3cret-t0ken"

// secrets writes the owner's file of secrets.
func (w *world) secrets(lines string) {
	w.t.Helper()
	dir := filepath.Join(w.home, ".config/ollim")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secrets.env"), []byte(lines), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// holding is the files below a directory of the data directory that hold a text.
func (w *world) holding(folder, text string) (names []string) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, folder), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

// What a tool finds of a secret reaches neither the model nor the record, also when a program writes it in pieces, to its
// standard error, or a model repeats it in its input and its answer.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.secrets("delivery.TOKEN=" + token + "\nengine.ANTHROPIC_BASE_URL=" + api.URL() + "\nwebhook.default=the-first-value the-second-value\ndelivery.PIN=1234567\n")
	w.write("notes.md", "token "+token+" and the-second-value and 1234567\n")
	w.writeProgram("show.sh", "#!/bin/sh\nprintf sup3r-s3; printf cret-t0ken; echo "+token+" >&2\n")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Bash(cat *)",
		"--allowed-tools", "Bash(./show.sh *)", "Work.")
	api.Reply(
		bash("cat notes.md"), bash("./show.sh "+token),
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": "notes.md"}}}},
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "Grep", Input: map[string]string{"pattern": "token", "path": "notes.md", "output_mode": "content"}}}},
		anthropicapi.Reply{Text: "It is " + token + "."},
	)
	w.must("fire", "daily")
	requests := api.Requests()
	if len(requests) != 5 {
		t.Fatalf("%d requests", len(requests))
	}
	for _, q := range requests[1:] {
		results := q.ToolResults()
		if got := results[len(results)-1].ResultText; strings.Contains(got, token) || strings.Contains(got, "the-second-value") || !strings.Contains(got, "[secret]") {
			t.Errorf("the model reads %q", got)
		}
	}
	if got := requests[1].ToolResults()[0].ResultText; strings.TrimSpace(got) != "token [secret] and [secret] and 1234567" {
		t.Errorf("the model reads %q", got)
	}
	if files := w.holding("state", token); len(files) > 0 {
		t.Errorf("the record holds it: %q", files)
	}
	if got := w.last()["text"]; got != "It is [secret]." {
		t.Errorf("the record says %q", got)
	}
}

// The transcript that a question to another engine leaves is a record, too.
func TestSecretsAreHiddenInTranscripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secrets("delivery.TOKEN=" + token + "\n")
	w.script("turns:\n  - - text: It is " + token + "\n")
	w.must("ask", "what is it?")
	for _, folder := range []string{"state", "sessions"} {
		for _, file := range w.holding(folder, token) {
			if !strings.Contains(file, "sessions/script/") { // the engine's own
				t.Errorf("%s holds it", file)
			}
		}
	}
}
