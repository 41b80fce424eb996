package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/discordapi"
	"github.com/ollim/ollim/internal/ui"
)

const (
	longText = "Every morning this looks at the releases of forty projects 🚀 and says what changed, for 日本語の読者のために長い説明を書きます and for everybody else"
	longID   = "an-id-of-thirty-six-characters-01234"
	longName = "name-of-sixty-characters-that-nobody-types-0123456789-abcdefg"
)

// newRichWorld makes a world with long descriptions, ids, names and paths, wide characters and emoji in everything that is listed.
func newRichWorld(t *testing.T) *world {
	t.Helper()
	s := discordapi.New(t, discordapi.Options{})
	w := newWorld(t)
	w.random = rand.NewChaCha8([32]byte{}) // so that ids are always the same
	w.must("config", "set", "discord.api", s.URL())
	w.secrets("discord.TOKEN=" + discordapi.Token + "\n")
	w.script("turns:\n  - - tool: report_updates\n      input: {message: \"" + longText + "\"}\n    - cost: 1234.5\n    - text: " + longText + "\n")
	routine := "---\nid: %s\ncron: \"0 9,10,11,12,13 * * 1-5\"\nbackground: true\n%s\ndescription: %s\nallowed-tools: [\"Bash(df -h)\", \"Bash(git log *)\"]\n%s---\nLook.\n"
	w.write("routines/"+longName+".md", fmt.Sprintf(routine, longID, "session: persistent", longText, ""))
	w.write("routines/日本語の名前の長いルーチン.md", fmt.Sprintf(routine, "r2", "isolated: true", longText, ""))
	w.write("routines/waits.md", fmt.Sprintf(routine, "r3", "isolated: true", longText, ""))
	w.write("routines/fails.md", fmt.Sprintf(routine, "r4", "isolated: true", longText, "engine: script:"+strings.Repeat("far/", 9)+"away.yaml\n"))
	w.write("routines/faulty.md", "---\nid: r5\ncron: \"every day, "+longText+"\"\n---\nLook.\n")
	w.write("webhooks/"+longName+"-hook.md", "---\nid: "+longID+"h\ndescription: "+longText+"\nfields: {properties: {branch: {}, author: {}, message: {}}}\nsecret: ci\n---\nLook.\n")
	w.write("skills/standup/SKILL.md", "---\ndescription: "+longText+"\n---\nBody.\n")
	for _, args := range [][]string{
		{"task", "add", "(A) " + longText + " due:2026-03-09"}, {"update", "add", longText},
		{"remind", "45m", longText}, {"chat", longText}, {"ask", longText}, {"ping", longText},
	} {
		w.run(args...)
		w.pass(1e9)
	}
	w.run("chat", "--channel", "telegram", "--chat-id", "a-chat-with-a-long-id-0123456789", longText)
	for _, job := range []string{longName, "日本語の名前の長いルーチン", "fails"} {
		w.approveJob(job)
		w.run("fire", job)
		w.pass(1e9)
	}
	w.cron = true
	w.must("tick")
	w.cron = false
	w.pass(30 * time.Hour)
	return w
}

// lists are the commands that print lists or texts for a terminal.
func lists() []string {
	return []string{
		"status", "status --week", "run list", "cost", "cost --by day", "cost --by model", "schedule list", "schedule list --cost --days 3", "schedule audit",
		"session list", "session list --all", "session list --channels", "session history", "session search releases", "session show main",
		"approve", "check", "doctor", "routine list", "reminder list", "webhook list", "skill list", "task list --all", "config list", "update list",
		"update list --all", "update peek", "discord check", "model list", "mcp tools", "budget", "names", "tick --dry-run",
		"help", "help all", "help fire", "help routine", "help ping", "help ask", "help completion",
	}
}

// word matches what is not broken: a path, an id, a line of an example, and a command between backquotes.
var word = regexp.MustCompile("^ *(\\S+|(\\S+ +)?`[^`]*`\\S*)$")

// described matches the lists whose records have a long text.
var described = regexp.MustCompile("^(routine|schedule|webhook|skill|reminder|task|update) list")

// TestListsFit: at each width no line is longer than the terminal, unless it is one word or an example; no id is cut, and a pipe has all of every text.
func TestListsFit(t *testing.T) {
	t.Parallel()
	w := newRichWorld(t)
	for _, list := range lists() {
		args := strings.Fields(list)
		piped := w.run(args...)
		if piped.status != 0 && piped.status != 1 && piped.status != 65 || piped.out == "" {
			t.Errorf("%s: %+v", list, piped)
		}
		for _, columns := range []int{40, 60, 80, 200} {
			shown := w.onColumns(columns, args...)
			for line := range strings.Lines(shown.out) {
				if line = strings.TrimRight(line, "\n"); ui.Width(line) > columns && !word.MatchString(line) && (!strings.HasPrefix(list, "help ") || !strings.HasPrefix(line, "  ")) {
					t.Errorf("%s, %d columns: %d: %q", list, columns, ui.Width(line), line)
				}
			}
			for record := range strings.Lines(piped.out) {
				id, _, isRecord := strings.Cut(record, "\t")
				if isRecord && list != "status" && !strings.HasPrefix(list, "session search") && !strings.HasPrefix(list, "cost") && !strings.HasPrefix(list, "session history") && !strings.Contains(shown.out, id) {
					t.Errorf("%s, %d columns: %q is cut in\n%s", list, columns, id, shown.out)
				}
			}
		}
		if described.MatchString(list) && !strings.Contains(piped.out, longText) {
			t.Errorf("%s: a text is cut in a pipe:\n%s", list, piped.out)
		}
	}
}

// TestListsAtEightyColumns compares the main lists with golden files. UPDATE=1 writes them.
func TestListsAtEightyColumns(t *testing.T) {
	t.Parallel()
	w := newRichWorld(t)
	for _, list := range []string{"run list", "schedule list", "routine list", "webhook list", "reminder list", "task list", "update list", "cost", "approve", "skill list", "help"} {
		got := w.onColumns(80, strings.Fields(list)...).out
		path := filepath.Join("testdata", "lists", strings.ReplaceAll(list, " ", "-")+".txt")
		if os.Getenv("UPDATE") != "" {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s: %v\n%s\nwant\n%s", list, err, got, want)
		}
	}
}
