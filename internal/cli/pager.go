package cli

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/ollim/ollim/internal/ui"
)

// pager shows output that is longer than the terminal through a program such as less, as git does. A nil pager shows nothing.
type pager struct {
	d      *deps
	on     bool   // the command's output may be paged
	direct bool   // it is not: there is no program, or it could not be started
	held   []byte // output that still fits on the terminal
	rows   int    // of it
	width  int
	height int
	cmd    *exec.Cmd
	in     io.WriteCloser // nil: the program has not been started
}

func newPager(d *deps) *pager {
	width, height := sizeOf(d.Stdout)
	if width <= 0 || height <= 0 || d.dumb() {
		return nil
	}
	return &pager{d: d, width: width, height: height}
}

// page lets a pager show the output of this command if it is long. Commands that a person waits for or talks with do not call it.
func (d *deps) page() {
	if d.pager != nil {
		d.pager.on = true
	}
}

func (p *pager) pages() bool   { return p != nil && p.on && !p.direct }
func (p *pager) running() bool { return p != nil && p.in != nil }

// Write holds output back until it is longer than the terminal. It drops what the program no longer reads.
func (p *pager) Write(text []byte) (int, error) {
	if p.in == nil {
		p.held = append(p.held, text...)
		for line := range strings.Lines(string(text)) {
			p.rows += 1 + max(ui.Width(line)-2, 0)/p.width
		}
		if p.rows < p.height {
			return len(text), nil
		}
		if !p.start() {
			p.direct = true
			_, err := p.d.Stdout.Write(p.held)
			return len(text), err
		}
		_, _ = p.in.Write(p.held)
		p.held = nil
		return len(text), nil
	}
	_, _ = p.in.Write(text)
	return len(text), nil
}

func (p *pager) program() string {
	for _, name := range []string{"OLLIM_PAGER", "PAGER"} {
		if value, set := p.d.Lookup(name); set {
			return value
		}
	}
	return "less"
}

// start starts the program, through a shell if its command line needs one, and reports whether it runs.
func (p *pager) start() bool {
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
		if _, set := p.d.Lookup(name); !set {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = p.d.Stdout, p.d.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil || p.cmd.Start() != nil {
		return false
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the program, which has not inherited this
	p.in = in
	return true
}

// end writes what is held, or waits until the owner has left the program.
func (p *pager) end() error {
	switch {
	case p == nil:
	case p.in != nil:
		_ = p.in.Close()
		_ = p.cmd.Wait() // how it ended is not the command's status
		p.in, p.direct = nil, true
	case !p.direct && len(p.held) > 0:
		_, err := output{p.d.Stdout}.Write(p.held)
		return err
	}
	return nil
}
