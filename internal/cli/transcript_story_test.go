package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestForeignTranscript: a transcript of other software, with ids of any form, is listed and continued; its header decides.
func TestForeignTranscript(t *testing.T) {
	for name, id := range map[string]string{
		"any form": "abc123", "other than the name": "uuid", "a UUID": "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "of the script engine's form": "s-00000001",
	} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			here, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(here)
			file := "sessions/--" + strings.ReplaceAll(strings.TrimPrefix(here, "/"), "/", "-") + "--/2024-01-15T10-30-00_abc123.jsonl"
			w.write(file, fmt.Sprintf(`{"type": "session", "id": %q, "cwd": %q, "provider": "anthropic", "model": "claude-sonnet-4-5", "timestamp": "..."}
{"type": "message", "message": {"role": "user", "content": "Where is the cat?"}}
{"type": "message", "message": {"role": "assistant", "content": "On the roof."}}
`, id, here))
			if out := w.must("session", "list", "--here"); !strings.HasPrefix(out, id+"\t") || !strings.HasSuffix(out, "\tWhere is the cat?\n") {
				t.Errorf("%q", out)
			}
			for _, args := range [][]string{{"-c"}, {"-r", id}, {"-r", "abc"}, {"--session", filepath.Join(w.dir, file)}} {
				api.Reply(anthropicapi.Reply{Text: "Still there."})
				if out := w.must(append(args, "-p", "-n", "And now?")...); out != "Still there.\n" {
					t.Errorf("%q: %q", args, out)
				}
				if last := api.Requests()[len(api.Requests())-1]; !last.Has("On the roof.") || last.Model != "claude-sonnet-4-5" {
					t.Errorf("%q asked %s without what was said", args, last.Model)
				}
			}
			if n := strings.Count(w.read(file), "Still there."); n != 4 {
				t.Errorf("%d answers in the file", n)
			}
			if out := w.must("session", "show", id); !strings.Contains(out, "engine\tnative\n") {
				t.Errorf("%q", out)
			}
			w.must("session", "branch", id)
		})
	}
}

// TestWordsOfLists: a list and a search have what was said, not the time and the preamble in front of it.
func TestWordsOfLists(t *testing.T) {
	w, _ := newNativeWorld(t)
	here := t.TempDir()
	t.Chdir(here)
	w.must("-p", "-n", "Where is the cat?")
	if out := w.must("session", "list", "--here"); !strings.HasSuffix(out, "\tWhere is the cat?\n") {
		t.Errorf("%q", out)
	}
	w.must("chat", "begin with the dog")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look for the cat.")
	w.must("fire", "daily")
	for words, want := range map[string]int{"cat": 2, "dog": 1, "You run in the background": 0, "regret": 0, "UTC": 0} {
		if out := w.run("session", "search", words).out; strings.Count(out, "user\t")+strings.Count(out, "prompt\t") != want {
			t.Errorf("%s: want %d of the user's, got\n%s", words, want, out)
		}
	}
}
