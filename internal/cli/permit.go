package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/ollim/ollim/internal/state/runlog"
)

// permission is a question to the owner: may the agent use a tool? Its context ends when nobody waits for the answer any more.
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

// String is what the owner is asked.
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

// permitsOnTerminal asks on the terminal of a process that reads nothing else from it. A line answers the question that is asked when
// it is typed: a late one is dropped, so that it does not answer the next question.
func (d *deps) permitsOnTerminal() *permits {
	var asked atomic.Pointer[chan string] // takes the next line; nil: nothing is asked
	var ended chan struct{}
	p := newPermits(nil)
	p.ask = func(q permission) {
		lines := make(chan string, 1)
		asked.Store(&lines)
		defer asked.Store(nil)
		defer func() { _, _ = d.progress.giveWay(io.Discard, []byte("\n")) }() // Enter ended the line of the question
		if ended == nil {                                                      // a read of the terminal cannot be interrupted, but left
			ended = make(chan struct{})
			go readLines(d.In, &asked, ended)
		}
		for {
			_, _ = fmt.Fprint(d.talk(), q)
			select {
			case <-q.ctx.Done():
				_, _ = fmt.Fprintln(d.Stderr)
				return
			case <-ended:
				if len(lines) == 0 || !q.reply(<-lines) {
					q.answer <- no
				}
				return
			case line := <-lines:
				if q.reply(line) {
					return
				}
			}
		}
	}
	return p
}

func readLines(in io.Reader, asked *atomic.Pointer[chan string], ended chan<- struct{}) {
	defer close(ended)
	for s := bufio.NewScanner(in); s.Scan(); {
		if lines := asked.Load(); lines != nil {
			select {
			case *lines <- s.Text():
			default:
			}
		}
	}
}
