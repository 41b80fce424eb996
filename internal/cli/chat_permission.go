package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/state/runlog"
)

// permission is a question to the owner: may the agent use a tool? Its context ends when the answer is no longer needed.
type permission struct {
	ctx    context.Context //nolint:containedctx // it belongs to the question
	use    runlog.Event
	answer chan string // takes one: yes, always or no
}

// Answers to a question. The first letter of one is enough.
const (
	yes    = "yes"
	always = "always"
	no     = "no"
)

// over is closed when the answer is no longer needed; nil for no question.
func (q *permission) over() <-chan struct{} {
	if q == nil {
		return nil
	}
	return q.ctx.Done()
}

// permits asks the owner one question at a time, and remembers what is always allowed.
type permits struct {
	always map[string]bool // patterns that the owner has allowed for as long as the process runs
	ask    func(permission)
}

func newPermits(ask func(permission)) *permits { return &permits{map[string]bool{}, ask} }

// permit is a run.Observer's Permit.
func (p *permits) permit(ctx context.Context, use runlog.Event) bool {
	if p.always[use.Text] {
		return true
	}
	question := permission{ctx, use, make(chan string, 1)}
	p.ask(question)
	select {
	case <-ctx.Done():
		return false
	case answer := <-question.answer:
		p.always[use.Text] = answer == always
		return answer != no
	}
}

// String returns the question to the owner.
func (q permission) String() string {
	return fmt.Sprintf("The agent wants to use %s. Allow it? y (once), a (always in this chat), n: ", printable(q.use.Text))
}

// reply takes what the owner typed, and reports whether it is an answer.
func (q permission) reply(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, answer := range []string{yes, always, no} {
		if text == answer || text == answer[:1] {
			q.answer <- answer
			return true
		}
	}
	return false
}

// permitsOnTerminal asks on the terminal of a process that reads nothing else from it.
func (d *deps) permitsOnTerminal() *permits {
	asks := newAsker(d.In)
	return newPermits(func(q permission) {
		if d.screen != nil {
			defer d.screen.Lend()()
		}
		for {
			line, err := asks.ask(q.ctx, d.Stderr, q.String())
			switch {
			case q.ctx.Err() != nil:
				_, _ = fmt.Fprintln(d.Stderr)
				return
			case q.reply(line):
				return
			case err != nil:
				q.answer <- no
				return
			}
		}
	})
}
