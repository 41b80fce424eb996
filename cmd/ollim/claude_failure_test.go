package main

import (
	"bytes"
	"regexp"
	"strings"
)

// complains runs a command that must fail as the house demands: that status and on standard error one line that the
// expression matches, with at most a hint behind it. Warnings may stand before it.
func (c *command) complains(want int, said string, args ...string) {
	c.t.Helper()
	var errOut bytes.Buffer
	cmd := c.cmd(args...)
	cmd.Stderr = &errOut
	got := status(cmd.Run())
	c.t.Logf("ollim %s: exit %d\n%s", strings.Join(args, " "), got, errOut.String())
	if got != want {
		c.t.Errorf("exit %d, want %d", got, want)
	}
	c.wellSaid(said, errOut.String())
}

func (c *command) wellSaid(said, text string) {
	c.t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[0], "ollim: warning: ") {
		lines = lines[1:]
	}
	if len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "ollim: hint: ") {
		c.t.Errorf("want one line, and at most a hint: %q", lines)
	}
	if fault := faultOfLine(lines[0]); fault != "" {
		c.t.Errorf("%s: %q", fault, lines[0])
	}
	if !regexp.MustCompile(said).MatchString(lines[0]) {
		c.t.Errorf("no match for %q in %q", said, lines[0])
	}
}
