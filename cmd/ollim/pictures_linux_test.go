package main

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/screen"
)

// TestPictures compares the pictures of the README with what the program shows on a terminal now; UPDATE=1 draws them again. Times, ids
// and numbers may differ.
func TestPictures(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]func(testing.TB) *screen.Screen{"status": showStatus, "chat": showChat} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := show(t)
			path := filepath.Join("../../man", name+".svg")
			if os.Getenv("UPDATE") == "1" {
				draw(t, path, "\x1b[97m$ ollim "+name+"\x1b[m\n"+s.Styled())
			}
			drawn, shown := usual(drawnText(t, path)), usual("$ ollim "+name+"\n"+s.Text())
			if drawn != shown {
				t.Errorf("UPDATE=1 go test ./cmd/ollim -run TestPictures\nthe program shows:\n%s\n%s has:\n%s", shown, path, drawn)
			}
		})
	}
}

// night is a data directory after a night: one routine found what it looked for, one failed, one waits for an answer, one had nothing to
// do, and one is at work.
func night(t testing.TB) *command {
	t.Helper()
	c := newCommand(t)
	c.write("gates/quiet", "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(filepath.Join(c.data, "gates/quiet"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		name, steps string
		more        []string
		fails       bool
	}{
		{name: "Disk", steps: "- cost: 0.02\n    - tool: report_updates\n      input: {message: The disk is 61 % full.}"},
		{name: "Releases", steps: "- text: none", more: []string{"--gate", "quiet"}},
		{name: "News", steps: "- cost: 0.01\n    - error: service down", fails: true},
		{name: "Backup", steps: "- cost: 0.03\n    - tool: ask_owner\n      input: {question: 'Delete the backups of 2024?', choices: [keep, delete]}"},
		{name: "Summary", steps: "- delay: 1h"},
	} {
		id := strings.ToLower(r.name)
		c.write(id+".yaml", "turns:\n  - "+r.steps+"\n    - text: Done.\n")
		c.ok(append([]string{"routine", "add", id, "--cron", "0 9 * * *", "--background", "--isolated", "--description", r.name,
			"--engine", "script:" + id + ".yaml", "Look."}, r.more...)...)
		fire := c.cmd("fire", id)
		if id == "summary" {
			c.begin(fire)
		} else if out, err := fire.CombinedOutput(); (err != nil) != r.fails {
			t.Fatalf("%s: %v: %s", id, err, out)
		}
	}
	c.ok("tick")
	return c
}

// begin starts the run that is at work. It ends with the test.
func (c *command) begin(fire *exec.Cmd) {
	c.t.Helper()
	if err := fire.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = fire.Process.Kill()
		_ = fire.Wait() // it was killed
	})
	eventually(c.t, "the run has begun", func() bool { return strings.Contains(c.ok("status"), "\nrunning\t") })
}

func showStatus(t testing.TB) *screen.Screen {
	t.Helper()
	s := night(t).onScreen(80, "status")
	s.Leave()
	return s
}

// showChat is a conversation whose second turn is under way.
func showChat(t testing.TB) *screen.Screen {
	t.Helper()
	c, api := withNative(t)
	c.ok("update", "add", "Disk: 61 % full.")
	c.ok("update", "add", "Releases: go1.26.2 repairs two security faults.")
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		switch {
		case !r.Has("Remind me"):
			return anthropicapi.Reply{Text: "Two routines had something to say:\n\n| routine | outcome | cost |\n|---|---|---|\n" +
				"| `disk` | **61 %** full, as yesterday | $0.02 |\n| `releases` | **go1.26.2** repairs two security faults | $0.01 |\n\n" +
				"You build with 1.26.1: see `go version`."}
		case len(r.ToolResults()) == 0:
			return anthropicapi.Reply{Text: "I look at what you are reminded of already.", ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}}}
		}
		return anthropicapi.Reply{Text: "Done.", Hold: hold}
	})
	s := c.again(80)
	s.Type("What did I miss?\r")
	s.WaitFor(`see go version\.\n  [\d.]+m?s, [\d.]+k? tokens, \$\d\.\d\d\n>`)
	s.Type("Remind me tomorrow at nine to update Go.\r")
	s.Wait("the tool was shown", func() bool { return strings.Contains(s.Raw(), "list_reminders") }) // the line is the same before it
	s.WaitFor(`(?m)^  I look .*\nchat  \d+s  [\d.]+k? tokens  \$\d.\d\d\n>$`)
	return s
}

// draw writes a picture of what a terminal shows. The program that draws knows no bold or faint text: these become colours.
func draw(t *testing.T, path, shown string) {
	t.Helper()
	attribute := regexp.MustCompile(`\x1b\[[\d;]*m`)
	shown = attribute.ReplaceAllStringFunc(shown, func(sequence string) string {
		codes := strings.Split(strings.Trim(sequence, "\x1b[m"), ";")
		for i, code := range codes {
			if colour := map[string]string{"1": "97", "2": "38;5;245"}[code]; colour != "" {
				codes[i] = colour
			}
		}
		return "\x1b[" + strings.Join(codes, ";") + "m"
	})
	text := filepath.Join(t.TempDir(), "shown.ansi")
	if err := os.WriteFile(text, []byte(strings.TrimRight(shown, "\n ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	freeze := exec.Command("go", "run", "github.com/charmbracelet/freeze@v0.2.2", text, "--language", "ansi", "--output", path,
		"--font.family", "monospace", "--border.radius", "8")
	freeze.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := freeze.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// drawnText returns the lines of a picture.
func drawnText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Lines []struct {
			Parts []string `xml:"tspan"`
		} `xml:"g>text"`
	}
	if err := xml.Unmarshal(data, &picture); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var lines []string
	for _, line := range picture.Lines {
		lines = append(lines, strings.TrimRight(strings.Join(line.Parts, ""), " "))
	}
	return strings.Join(append(lines, ""), "\n")
}

// usual replaces what differs from one run of the program to the next, and from one machine to another.
func usual(text string) string {
	for _, replace := range []struct{ pattern, with string }{
		{`(?m)^seal .*\n(?: .*\n)*`, ""},
		{`\d{8}T[\d.]+Z-[0-9a-f]{6}`, "RUN"},
		{`\((?:in|on) [^)]*\)|just now|\d+ \w+ ago`, "WHEN"},
		{`(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d )?\d\d:\d\d(?::\d\d| \w+)`, "WHEN"},
		{`[\d.]+m?s, `, "Ns, "},
		{`[\d.]+k?`, "N"},
		{`\bruns\b`, "run"},
		{`\s+`, " "},
	} {
		text = regexp.MustCompile(replace.pattern).ReplaceAllString(text, replace.with)
	}
	return text
}
