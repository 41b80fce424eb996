package hour

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/screen"
	"github.com/ollim/ollim/internal/ui"
)

// key is what the person types at hidden prompts. No screen and no file but secrets.env may have it.
const key = "sk-typed-in-the-first-hour-4711"

// person types commands at a shell, and looks at the screen.
type person struct {
	*screen.Screen
	t    *testing.T
	home string
	api  *anthropicapi.Server
	size screen.Size
	n    int // the number of the prompt that is on the screen
}

// sit starts a shell whose prompts are numbered: [1]$.
func sit(t *testing.T, home string, api *anthropicapi.Server) *person {
	t.Helper()
	cmd := exec.Command("bash", "--norc", "--noprofile")
	cmd.Dir = home
	for _, name := range []string{"HOME", "USER", "LOGNAME", "SHELL", "LANG", "PATH"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", `PS1=[\#]$ `, "HISTFILE=/dev/null")
	size := screen.Size{Columns: 80, Rows: 24}
	p := &person{Screen: screen.Start(t, size, cmd), t: t, home: home, api: api, size: size}
	p.prompted()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("at the end:\n%s", strings.Join(p.Scrolled(), "\n"))
		}
	})
	return p
}

// prompted waits for the next numbered prompt.
func (p *person) prompted() {
	p.t.Helper()
	p.n++
	p.WaitFor(fmt.Sprintf(`(?m)^\[%d\]\$$`, p.n))
}

// types types a line.
func (p *person) types(line string) {
	p.t.Helper()
	if line != key {
		p.t.Logf("types %s", line)
	}
	p.Type(line + "\r")
}

// run types a command, waits for its end and returns the lines that it showed, which must fit the screen.
func (p *person) run(command string) string {
	p.t.Helper()
	p.types(command)
	return p.shown()
}

// shown waits for the end of a command and returns the lines that it showed, without the command. They must fit the screen.
func (p *person) shown() string {
	p.t.Helper()
	p.prompted()
	lines := p.Scrolled()
	from := len(lines) - 1
	for from > 0 && !strings.HasPrefix(lines[from], fmt.Sprintf("[%d]$", p.n-1)) {
		from--
	}
	typed := lines[from]
	for from++; ui.Width(typed) == p.size.Columns && from < len(lines)-1; from++ { // a long command goes on in the next row
		typed = lines[from]
	}
	shown := lines[from : len(lines)-1]
	p.fit(shown)
	return strings.Join(append(shown, ""), "\n")
}

// fit fails the test if the terminal has broken a line that is no single word, such as a path, and no command on a line of its own.
func (p *person) fit(lines []string) {
	p.t.Helper()
	raw, command := p.Raw(), false
	for i, line := range lines[:max(0, len(lines)-1)] {
		if command = command && ui.Width(lines[i-1]) == p.size.Columns || strings.HasPrefix(line, "    "); command {
			continue
		}
		broken := ui.Width(line) == p.size.Columns && lines[i+1] != "" && !strings.Contains(raw, line+"\r\n")
		last := line[strings.LastIndex(line, " ")+1:]
		if next, _, _ := strings.Cut(lines[i+1], " "); broken && ui.Width(last)+ui.Width(next) < p.size.Columns-2 {
			p.t.Errorf("the terminal has broken this line of %d columns:\n%s\n%s", p.size.Columns, line, lines[i+1])
		}
	}
}

// sees runs a command and wants each of the patterns in what it shows.
func (p *person) sees(command string, patterns ...string) string {
	p.t.Helper()
	return p.has(command, p.run(command), patterns...)
}

func (p *person) has(what, shown string, patterns ...string) string {
	p.t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(`(?m)` + pattern).MatchString(shown) {
			p.t.Errorf("%s: there is no %s:\n%s", what, pattern, shown)
		}
	}
	return shown
}

// answers waits for questions, the ends of the screen's text, and types an answer to each.
func (p *person) answers(questions ...[2]string) {
	p.t.Helper()
	for _, q := range questions {
		p.WaitFor(q[0] + `\n$`)
		p.types(q[1])
	}
}

// keyIsHidden fails the test if the key was shown, or is in a file of the home or of /tmp that is not secrets.env.
func (p *person) keyIsHidden() {
	p.t.Helper()
	if strings.Contains(p.Raw(), key) {
		p.t.Error("the key was shown")
	}
	args := []string{"-rlsF", key}
	for _, root := range []string{p.home, os.TempDir()} {
		entries, err := os.ReadDir(root)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, entry := range entries { // all but the files of Go and the program of this test
			name := entry.Name()
			if !slices.Contains([]string{"go", ".cache", "ollim"}, name) && !strings.HasPrefix(name, "go-build") {
				args = append(args, filepath.Join(root, name))
			}
		}
	}
	secrets := filepath.Join(p.home, ".config/ollim/secrets.env")
	found, _ := exec.Command("grep", args...).Output() // it also fails if a file ends meanwhile
	if string(found) != secrets+"\n" {
		p.t.Errorf("the key is in these files:\n%s", found)
	}
	if info, err := os.Stat(secrets); err != nil || info.Mode().Perm() != 0o600 {
		p.t.Errorf("%s: %v, %v", secrets, info, err)
	}
}
