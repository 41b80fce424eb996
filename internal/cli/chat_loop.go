package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/ui"
)

// chatLoop is a prompt at which the owner talks to the agent. Lines typed during a turn are queued as one group.
type chatLoop struct {
	d        *deps       // its streams are the screen
	h        app.Home    // which a turn in progress uses
	o        chatOptions // options of the next turn
	group    string
	tty      promptTerminal
	asked    chan permission
	question *permission // question that the next line answers; nil: none

	waiting []*queue.Ticket
	stop    context.CancelCauseFunc // of the turn in progress; nil: none
	ended   chan ending
	leaving bool // the loop ends when no turn is in progress
}

// promptTerminal is a terminal on which the owner types.
type promptTerminal struct {
	in      *ui.Input
	screen  *ui.Screen
	editor  *ui.Editor
	history *ui.History
	stderr  io.Writer            // standard error of another program that gets the terminal
	lend    func() (back func()) // makes the terminal ready for that program
	suspend func()               // stops this process until the shell continues it
	over    bool                 // the input has ended
}

type ending struct {
	left []*queue.Ticket // messages that the turn has not answered
	err  error
}

func (l *chatLoop) run(ctx context.Context) error {
	if !l.d.quiet {
		l.tty.screen.Remark("/help lists the commands; Ctrl-D leaves")
	}
	l.showUpdates(ctx)
	l.tty.screen.Edit(l.tty.editor)
	chunks, more := l.tty.in.Chunks()
	for !l.leaving || l.stop != nil {
		if l.stop == nil {
			l.tty.screen.Ready()
		}
		select {
		case <-ctx.Done():
			if l.stop != nil {
				l.waiting = append((<-l.ended).left, l.waiting...)
			}
			return l.abandon(ctx)
		case c := <-chunks:
			l.typed(ctx, c)
			more()
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

// typed handles a chunk of input. Of the input before a question it handles only Ctrl-C.
func (l *chatLoop) typed(ctx context.Context, c ui.Chunk) {
	if c.Era < l.tty.in.Era() || l.leaving && l.question == nil {
		if bytes.Contains(c.Text, []byte(ui.CtrlC)) {
			l.interrupt()
		}
	} else {
		for _, e := range l.tty.screen.Type(c.Text) {
			l.act(ctx, e)
		}
	}
	if c.Err != nil {
		l.tty.over = true
		l.leave()
	}
}

func (l *chatLoop) act(ctx context.Context, e ui.Event) {
	switch e.Kind {
	case ui.Interrupted:
		l.interrupt()
	case ui.Ended:
		l.leave()
	case ui.Entered:
		l.refresh()
		l.report(l.hear(ctx, e.Text))
	case ui.TooLong:
		l.report(fmt.Errorf("the text is longer than %d KiB, and was not sent: use -f FILE", ui.MostTyped>>10))
	case ui.Compose:
		l.report(l.compose(ctx))
	case ui.Suspended:
		back := l.tty.screen.Lend()
		l.tty.suspend()
		back()
	case ui.Redraw:
	}
}

// leave ends the loop when no turn is in progress. Until then the prompt comes back for questions only.
func (l *chatLoop) leave() {
	l.leaving = true
	switch {
	case l.question == nil:
		l.tty.screen.Edit(nil)
	case l.tty.over:
		l.question.answer <- no
		l.question = nil
	}
}

// ask shows the question. The next line that is typed answers it.
func (l *chatLoop) ask() {
	l.tty.in.Discard()
	l.tty.screen.Edit(l.tty.editor)
	l.tty.screen.Change((*ui.Editor).Discard)
	l.note(l.question.String())
	if l.tty.over {
		l.leave()
	}
}

// refresh reads the settings again, if their file has changed. It does nothing while a turn is in progress.
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
}

// abandon leaves the messages that wait in the queue, unless the owner withdraws them.
func (l *chatLoop) abandon(ctx context.Context) (err error) {
	for _, t := range l.waiting {
		if errors.Is(context.Cause(ctx), run.ErrWithdrawn) {
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

// hear handles a text that was entered. A text of several lines is always a message.
func (l *chatLoop) hear(ctx context.Context, text string) error {
	several := strings.Contains(text, "\n")
	text = strings.TrimSpace(text)
	if l.question != nil {
		if !l.question.reply(text) {
			l.ask()
			return nil
		}
		if l.question = nil; l.leaving {
			l.tty.screen.Edit(nil)
		}
		return nil
	}
	l.report(l.tty.history.Add(ctx, text))
	if several {
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
	l.o.files = nil // the first message has them
	m.Group = l.group
	ticket, place, err := l.h.Turns(true).Queue.Enqueue(ctx, m, turn.Options{Model: o.model, Owner: true})
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
		err = l.d.turn(l.h, o.model, func(t turn.Turns, options turn.Options) (record runlog.Record, err error) {
			o.apply(&options)
			record, left, err = t.Queue.Converse(ctx, own, options)
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
