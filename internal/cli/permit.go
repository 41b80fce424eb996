package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ollim/ollim/internal/state/runlog"
)

// permission is a question to the owner: may the agent use a tool? Its context ends when nobody waits for the answer any more.
type permission struct {
	ctx    context.Context //nolint:containedctx // it belongs to the question
	use    runlog.Event
	answer chan bool // takes one
}

// over is closed when nobody waits for the answer any more; nil for no question.
func (q *permission) over() <-chan struct{} {
	if q == nil {
		return nil
	}
	return q.ctx.Done()
}

// permits asks the owner, and remembers what is allowed always. It is for one question at a time.
type permits struct {
	always map[string]bool // patterns that the owner has allowed for as long as the process runs
	ask    func(permission)
}

func newPermits(ask func(permission)) *permits { return &permits{map[string]bool{}, ask} }

// permit is a runner.Observer's Permit.
func (p *permits) permit(ctx context.Context, use runlog.Event) bool {
	if p.always[use.Text] {
		return true
	}
	question := permission{ctx, use, make(chan bool, 1)}
	p.ask(question)
	select {
	case <-ctx.Done():
		return false
	case allowed := <-question.answer:
		return allowed
	}
}

// question is what the owner is asked.
func (permits) question(use runlog.Event) string {
	return fmt.Sprintf("The agent wants to use %s. Allow it? y (once), a (always in this chat), n: ", printable(use.Text))
}

// reply answers a question by what the owner typed. It reports whether that is an answer.
func (p *permits) reply(question permission, text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes":
		question.answer <- true
	case "a", "always":
		p.always[question.use.Text] = true
		question.answer <- true
	case "n", "no":
		question.answer <- false
	default:
		return false
	}
	return true
}

// permitsOnTerminal asks on the terminal of a process that reads nothing else from it.
func (d *Deps) permitsOnTerminal() *permits {
	lines := make(chan string)
	reading := false
	p := newPermits(nil)
	p.ask = func(q permission) {
		if !reading { // a read of the terminal cannot be interrupted, but left
			reading = true
			go readLines(d.In, lines)
		}
		for {
			_, _ = fmt.Fprint(d.Stderr, p.question(q.use))
			select {
			case <-q.ctx.Done():
				_, _ = fmt.Fprintln(d.Stderr)
				return
			case line, open := <-lines:
				if !open {
					q.answer <- false
					return
				}
				if p.reply(q, line) {
					return
				}
			}
		}
	}
	return p
}

func readLines(in io.Reader, lines chan<- string) {
	defer close(lines)
	for s := bufio.NewScanner(in); s.Scan(); {
		lines <- s.Text()
	}
}
