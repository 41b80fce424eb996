package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
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

// progress is a line about the run that a terminal waits for: seconds, cost, and the tool in use. A nil progress shows nothing.
type progress struct {
	mu      sync.Mutex
	w       io.Writer
	now     func() time.Time
	width   int
	plain   bool // the terminal has no control sequences: only the last line is written
	ended   bool
	began   time.Time
	name    string
	tool    string
	cost    float64
	shown   bool // the line is on the terminal
	midLine bool // the output of the command has not ended its line
}

// watch shows the progress of a run until the returned function is called. It changes nothing unless standard error is a terminal.
func (d *deps) watch(name string) (stop func()) {
	if d.quiet || d.logFormat == "json" || !isTerminal(d.Stderr) {
		return func() {}
	}
	columns, _ := sizeOf(d.Stderr)
	p := &progress{w: d.Stderr, now: d.Now, began: d.Now(), name: name, plain: d.dumb(), width: max(columns, 40)}
	d.progress = p
	ticks, done := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticks.C:
				p.draw()
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticks.Stop()
		close(done)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
		p.hide()
	}
}

func (p *progress) hear(e runlog.Event) {
	if p == nil {
		return
	}
	p.mu.Lock()
	switch e.Type {
	case runlog.ToolUse:
		p.tool = e.Tool
	case runlog.ToolResult:
		p.tool = ""
	case runlog.UsageEvent:
		p.cost += e.Cost
	}
	p.mu.Unlock()
	if e.Type == runlog.ToolUse || e.Type == runlog.UsageEvent && e.Cost > 0 {
		p.draw()
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plain || p.ended || p.midLine {
		return
	}
	parts := []string{p.name, p.now().Sub(p.began).Round(time.Second).String()}
	if p.cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", p.cost))
	}
	if p.tool != "" {
		parts = append(parts, p.tool)
	}
	_, _ = io.WriteString(p.w, "\r\x1b[K"+plaintext.Short(printable(strings.Join(parts, "  ")), p.width-4))
	p.shown = true
}

// hide removes the line. The caller holds the lock.
func (p *progress) hide() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// giveWay writes text to a writer that ends on the terminal. The line is away until text ends a line.
func (p *progress) giveWay(w io.Writer, text []byte) (int, error) {
	if p != nil && len(text) > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hide()
		p.midLine = text[len(text)-1] != '\n'
	}
	return w.Write(text)
}

func (p *progress) Write(text []byte) (int, error) { return p.giveWay(p.w, text) }

// account says in one line, on a terminal, how a run ended that went well. The line of an error says it of others.
func (d *deps) account(verb, name string, r runlog.Record) {
	if d.quiet || !isTerminal(d.Stderr) || statusOfRun(r) != statusOK || !r.Done() {
		return
	}
	d.line("info", join(verb, name, fmt.Sprintf("%s, %s, run %s", outcome(r), costOf(r), r.ID)))
}

func costOf(r runlog.Record) string {
	took := r.Finished.Sub(r.Started)
	unit := time.Second / 10
	if took < time.Second {
		unit = time.Millisecond
	}
	text := took.Round(unit).String()
	if r.Cost > 0 {
		text += fmt.Sprintf(", $%.2f", r.Cost)
	}
	return text
}
