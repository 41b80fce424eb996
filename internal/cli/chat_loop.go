package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// chatLoop is a prompt at which the owner talks to the agent. Lines typed during a turn are queued as one group.
type chatLoop struct {
	d        *deps       // its streams are the screen
	h        app.Home    // which a turn in progress uses
	o        chatOptions // of the next turn
	group    string
	editor   editor
	asked    chan permission
	question *permission // that the next line answers; nil: none

	pasted  []string // lines before the one that is typed
	waiting []*queue.Ticket
	stop    context.CancelCauseFunc // of the turn in progress; nil: none
	ended   chan ending
	leaving bool // when no turn is in progress
}

type editor struct {
	keys  *keys
	term  *term.Terminal
	lines chan typed
}

type typed struct {
	line   string
	pasted bool // more of the message follows
	end    bool // of the input
	era    int  // in which it was typed
}

type ending struct {
	left []*queue.Ticket // messages that it has not answered
	err  error
}

func (l *chatLoop) run(ctx context.Context) error {
	l.showUpdates(ctx)
	go l.editor.read()
	for !l.leaving || l.stop != nil {
		select {
		case <-ctx.Done():
			if l.stop != nil {
				l.waiting = append((<-l.ended).left, l.waiting...)
			}
			return l.abandon(ctx)
		case <-l.editor.keys.interrupts:
			l.interrupt()
		case e := <-l.editor.lines:
			select {
			case <-l.editor.keys.interrupts: // it was typed before
				l.interrupt()
			default:
			}
			l.refresh()
			l.report(l.hear(ctx, e))
		case q := <-l.asked:
			l.question = &q
			l.ask()
		case <-l.question.over():
			l.question = nil
			l.note("no answer: the use is refused")
		case e := <-l.ended:
			l.stop(nil)
			l.stop, l.waiting = nil, append(e.left, l.waiting...)
			l.report(e.err)
			l.refresh()
			l.next(ctx)
		}
	}
	return nil
}

// ask shows the question. The next line that is typed answers it.
func (l *chatLoop) ask() {
	l.editor.keys.discard()
	l.pasted = nil
	l.note(l.question.String())
}

// refresh reads the settings again, if their file has changed; a turn in progress goes on with those before.
func (l *chatLoop) refresh() {
	if l.stop != nil {
		return
	}
	h, err := l.d.Home()
	if err == nil {
		l.h = h
	}
	l.report(err)
}

func (l *chatLoop) interrupt() {
	if l.stop != nil {
		l.stop(interrupted())
	}
	l.pasted = nil
}

// abandon leaves the messages that wait in the queue, unless the owner withdraws them.
func (l *chatLoop) abandon(ctx context.Context) (err error) {
	for _, t := range l.waiting {
		if errors.Is(context.Cause(ctx), runner.ErrWithdrawn) {
			err = errors.Join(err, t.Remove())
		} else {
			t.Leave()
		}
	}
	return errors.Join(context.Cause(ctx), err)
}

func (l *chatLoop) showUpdates(ctx context.Context) {
	list, err := l.h.Updates.Peek(ctx)
	l.report(err)
	for i, u := range list {
		if i == 0 {
			_, _ = fmt.Fprintln(l.d.Stderr, "pending updates, which the agent gets with your next message:")
		}
		_, _ = fmt.Fprintf(l.d.Stderr, "- (%s) %s\n", prompt.Ago(l.d.Now().Sub(u.TS)), printable(u.Message))
	}
}

func (e *editor) read() {
	for {
		line, err := e.term.ReadLine()
		pasted := errors.Is(err, term.ErrPasteIndicator)
		if err != nil && !pasted {
			e.lines <- typed{end: true}
			_, _ = io.Copy(io.Discard, e.keys) // for Ctrl-C
			return
		}
		e.lines <- typed{line: line, pasted: pasted, era: e.keys.era}
	}
}

// mostTyped is the number of characters at which the editor drops what is typed. It does not drop what is pasted.
const mostTyped = 4096

// hear acts on a line. The lines of a pasted text are one message, which Enter sends.
func (l *chatLoop) hear(ctx context.Context, e typed) error {
	switch {
	case e.end:
		l.leaving = true
		return nil
	case e.era < l.editor.keys.in.now(): // before a question
		return nil
	case utf8.RuneCountInString(e.line) == mostTyped && !e.pasted:
		l.pasted = nil
		return fmt.Errorf("the line has %d characters or more, and was not sent: paste a longer one, or use -f FILE", mostTyped)
	case e.pasted:
		l.pasted = append(l.pasted, e.line)
		return nil
	}
	text := strings.TrimSpace(strings.Join(append(l.pasted, e.line), "\n"))
	pasted := l.pasted != nil
	l.pasted = nil
	if l.question != nil {
		if l.question.reply(text) {
			l.question = nil
		} else {
			l.ask()
		}
		return nil
	}
	if pasted {
		return l.send(ctx, text)
	}
	c, text, err := parse(text)
	switch {
	case err != nil:
		return err
	case c == nil:
		return l.send(ctx, text)
	case !c.alone:
		return errors.Join(c.run(l, ctx, text), l.d.flush())
	case l.stop != nil:
		return fmt.Errorf("%s: a turn is in progress: wait for its end, or stop it with Ctrl-C", c.name)
	}
	l.begin(ctx, func(ctx context.Context) ([]*queue.Ticket, error) {
		return nil, errors.Join(c.run(l, ctx, text), l.d.flush())
	})
	return nil
}

func (l *chatLoop) send(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	o := l.o
	o.text, o.typed = text, text
	m, err := o.message(l.h)
	if err != nil {
		return err
	}
	l.o.files = nil // they come with the first message
	m.Group = l.group
	ticket, place, err := l.h.Runner(true).Enqueue(ctx, m, runner.Options{Model: o.model, Owner: true})
	if err != nil {
		return err
	}
	if place.Ahead > 0 {
		l.d.sayQueued(l.h, place)
	}
	l.waiting = append(l.waiting, ticket)
	if l.stop == nil {
		l.next(ctx)
	}
	return nil
}

func (l *chatLoop) next(ctx context.Context) {
	own, o := l.waiting, l.o // which a command may change during the turn
	if len(own) == 0 {
		return
	}
	l.waiting = nil
	l.begin(ctx, func(ctx context.Context) (left []*queue.Ticket, err error) {
		err = l.d.turn(l.h, o.model, func(r *runner.Runner, options runner.Options) (record runlog.Record, err error) {
			o.apply(&options)
			record, left, err = r.Converse(ctx, own, options)
			return record, err
		})
		return left, errors.Join(err, l.d.flush())
	})
}

func (l *chatLoop) begin(ctx context.Context, work func(context.Context) ([]*queue.Ticket, error)) {
	ctx, l.stop = context.WithCancelCause(ctx)
	go func() {
		left, err := work(ctx)
		l.ended <- ending{left, err}
	}()
}

func (l *chatLoop) note(text string) { _, _ = fmt.Fprintln(l.d.Stderr, text) }

func (l *chatLoop) report(err error) {
	if err != nil && !as[*reported](err) {
		l.d.fail("chat", "", err)
	}
}
