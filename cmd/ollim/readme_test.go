package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/screen"
)

// TestREADMETerminal compares the terminal in the README with what the program writes on one now; UPDATE=1 rewrites it. Ids, digits and
// the width of columns may differ.
func TestREADMETerminal(t *testing.T) {
	t.Parallel()
	script := testkit.Program(t, "script", "bsdutils")
	const readme = "../../README.md"
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), "-run TestREADMETerminal -->\n```text\n")
	written, after, ends := strings.Cut(rest, "```\n")
	if !found || !ends {
		t.Fatal("the README has no terminal")
	}
	shown := showTerminal(t, script)
	if normal(shown) != normal(written) {
		t.Errorf("UPDATE=1 go test ./cmd/ollim -run TestREADMETerminal; the program writes:\n%s\nthe README has:\n%s", shown, written)
	}
	if os.Getenv("UPDATE") == "1" {
		text := before + "-run TestREADMETerminal -->\n```text\n" + shown + "```\n" + after
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// showTerminal is what a terminal shows of some commands, with their prompts.
func showTerminal(t *testing.T, script string) string {
	t.Helper()
	c := newCommand(t)
	c.write("disk.yaml", "turns:\n  - - cost: 0.02\n    - delay: 1200ms\n    - text: The disk is 41 % full.\n")
	c.write("news.yaml", "turns:\n  - - cost: 0.01\n    - error: the service is overloaded\n")
	for _, name := range []string{"disk", "news"} {
		c.ok("routine", "add", name, "--id", name, "--cron", "0 9 * * *", "--background", "--description", strings.ToUpper(name[:1])+name[1:]+" check",
			"--engine", "script:"+name+".yaml", "Look.")
	}
	failing := c.cmd("fire", "news")
	if err := failing.Run(); err == nil {
		t.Fatal("the run of news has not failed")
	}
	var text strings.Builder
	for _, line := range []string{"ollim routine list", "ollim fire disk", "ollim run list", "ollim schedule list -n 2"} {
		cmd := c.cmd()
		cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
		cmd.Path, cmd.Args = script, []string{"script", "-qefc", strings.Replace(line, "ollim", c.path, 1), os.DevNull}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		text.WriteString("$ " + line + "\n" + screen.Of(string(out)))
	}
	return text.String()
}

// normal replaces what differs from one run of the program to the next.
func normal(text string) string {
	for pattern, with := range map[string]string{`\d{8}T[\d.]+Z-[0-9a-f]{6}`: "RUN", `\(in [^)]*\)`: "(in)", `(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d E[SD]T`: "WHEN"} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
	}
	text = regexp.MustCompile(`[\d.]+(ms|s)`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}
