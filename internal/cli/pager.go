package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/ui"
)

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
	columns, _ := ui.Size(d.Stderr)
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
