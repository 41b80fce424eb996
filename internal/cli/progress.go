package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/ui"
)

// watch shows the progress of a run in a status line until the returned function is called. Without a terminal, or on one without
// control sequences, it shows nothing.
func (d *deps) watch(name string) (stop func()) {
	if d.quiet || d.logFormat == "json" || d.screen == nil && (!isTerminal(d.Stderr) || d.dumb()) {
		return func() {}
	}
	if d.screen == nil {
		d.screen = ui.NewScreen(d.Stderr, ui.ScreenOptions{Size: func() (int, int) { return ui.Size(d.Stderr) }, Colour: d.colour(d.Stderr)})
	}
	d.progress = d.screen.Begin(name, d.Now)
	return d.progress.End
}

// follow shows what happens in a run in its status line.
func (d *deps) follow(e runlog.Event) {
	switch e.Type {
	case runlog.ToolUse:
		d.progress.Use(e.Tool)
	case runlog.ToolResult:
		d.progress.Use("")
	case runlog.UsageEvent:
		tokens := 0
		if u := e.Usage; u != nil {
			tokens = u.In + u.Out + u.CacheRead + u.CacheWrite
		}
		d.progress.Spent(tokens, e.Cost)
	}
}

// sameTerminal reports whether two streams are one terminal, which a status line may share with text.
func sameTerminal(a, b any) bool {
	if !isTerminal(a) || !isTerminal(b) {
		return false
	}
	first, isFile := a.(*os.File)
	second, both := b.(*os.File)
	if !isFile || !both {
		return a == b
	}
	one, err := first.Stat()
	other, otherErr := second.Stat()
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// answerText returns a writer that shows the text of an agent on the terminal, broken at words into rows that fit, and indented at the
// prompt of chat.
func (d *deps) answerText(chat config.Chat) *ui.Text {
	o := ui.TextOptions{Styled: chat.Markdown != config.Off && d.colour(d.Stdout)}
	switch {
	case d.atPrompt:
		o.Indent, o.Columns = len(ui.Mark), d.screen.Columns
	case !d.dumb():
		o.Columns = func() int {
			columns, _ := ui.Size(d.Stdout)
			return columns
		}
	}
	return ui.NewText(d.styled(), o)
}

// account prints one line on a terminal about a run that ended well, and where its answer is if it was not shown. Other runs have the line
// of their error.
func (d *deps) account(verb, name string, r runlog.Record) {
	switch where := ", run " + r.ID; {
	case d.quiet || statusOfRun(r) != statusOK || !r.Done():
	case d.atPrompt:
		d.screen.Remark(strings.Repeat(" ", len(ui.Mark)) + costOf(r))
	case isTerminal(d.Stderr):
		if r.OfJob() {
			where = "; see: " + logOf(r)
		}
		d.line("info", join(verb, name, outcome(r)+", "+costOf(r)+where))
	}
}

// logOf returns the command that prints what a run of a job did.
func logOf(r runlog.Record) string {
	if plaintext.IsWord(r.Name, "._-") && !strings.HasPrefix(r.Name, "-") {
		return "ollim run log " + r.Name
	}
	return "ollim run log " + r.ID
}

func costOf(r runlog.Record) string {
	took := r.Finished.Sub(r.Started)
	unit := time.Second / 10
	if took < time.Second {
		unit = time.Millisecond
	}
	text := took.Round(unit).String()
	if tokens := r.Usage.In + r.Usage.Out + r.Usage.CacheRead + r.Usage.CacheWrite; tokens > 0 {
		text += ", " + plaintext.Thousands(tokens) + " tokens"
	}
	if r.Cost > 0 {
		text += fmt.Sprintf(", $%.2f", r.Cost)
	}
	return text
}
