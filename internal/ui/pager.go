package ui

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// Pager shows output that is longer than the terminal through a program such as less, as git does. A nil Pager shows nothing.
type Pager struct {
	stdout, stderr io.Writer
	lookup         Environment

	on     bool   // the command's output may be paged
	direct bool   // it is not: there is no program, or it could not be started
	held   []byte // output that still fits on the terminal
	width  int
	height int
	cmd    *exec.Cmd
	in     io.WriteCloser // nil: the program has not been started
}

// NewPager returns the pager of a terminal; nil where the size of the terminal is not known or it has no control sequences.
func NewPager(stdout, stderr io.Writer, lookup Environment) *Pager {
	width, height := Size(stdout)
	if width <= 0 || height <= 0 || Dumb(lookup) {
		return nil
	}
	return &Pager{stdout: stdout, stderr: stderr, lookup: lookup, width: width, height: height}
}

// Page lets the output be paged if it is long. Commands that a person waits for or talks with do not call it.
func (p *Pager) Page() {
	if p != nil {
		p.on = true
	}
}

// Pages reports whether output belongs into the pager.
func (p *Pager) Pages() bool { return p != nil && p.on && !p.direct }

// Running reports whether the program has the terminal.
func (p *Pager) Running() bool { return p != nil && p.in != nil }

// Write holds output back until it is longer than the terminal. It drops what the program no longer reads.
func (p *Pager) Write(text []byte) (int, error) {
	if p.in == nil {
		p.held = append(p.held, text...)
		if p.rows() < p.height {
			return len(text), nil
		}
		if !p.start() {
			p.direct = true
			_, err := p.stdout.Write(p.held)
			return len(text), err
		}
		_, _ = p.in.Write(p.held)
		p.held = nil
		return len(text), nil
	}
	_, _ = p.in.Write(text)
	return len(text), nil
}

// rows returns how many rows of the terminal the output takes that is held back.
func (p *Pager) rows() (n int) {
	for line := range strings.Lines(string(p.held)) {
		n += 1 + max(Width(unstyled(strings.TrimSuffix(line, "\n")))-1, 0)/p.width
	}
	return n
}

func (p *Pager) program() string {
	for _, name := range []string{"OLLIM_PAGER", "PAGER"} {
		if value, set := p.lookup(name); set {
			return value
		}
	}
	return "less"
}

// start starts the program, through a shell if its command line needs one, and reports whether it runs.
func (p *Pager) start() bool {
	line := strings.TrimSpace(p.program())
	words := strings.Fields(line)
	if line == "" || line == "cat" {
		return false
	}
	if strings.ContainsAny(line, "|&;<>()$`\\\"' \t\n*?[#~=%") && len(words) > 0 {
		words = []string{"sh", "-c", line}
	}
	p.cmd = exec.Command(words[0], words[1:]...) //nolint:noctx // the owner ends it
	p.cmd.Env = p.cmd.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} {
		if _, set := p.lookup(name); !set {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil || p.cmd.Start() != nil {
		return false
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the program, which has not inherited this
	p.in = in
	return true
}

// End writes what is held, or waits until the owner has left the program.
func (p *Pager) End() error {
	switch {
	case p == nil:
	case p.in != nil:
		_ = p.in.Close()
		_ = p.cmd.Wait() // how it ended is not the command's status
		p.in, p.direct = nil, true
	case !p.direct && len(p.held) > 0:
		_, err := p.stdout.Write(p.held)
		return err
	}
	return nil
}
