package cli

// This file reads what the owner types at a terminal. What was typed before a question is no answer to it: it is discarded before the
// question is shown, in the kernel, in what was read and in the line that is being edited.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ollim/ollim/internal/ui"
)

// line reads a line of a terminal that is not in raw mode, byte by byte: what follows it stays unread.
func (a *asker) line() (l typedLine) {
	for b := make([]byte, 1); ; {
		n, era, err := a.in.Read(b)
		if era != l.era {
			l = typedLine{era: era}
		}
		if n > 0 && b[0] == '\n' {
			return l
		}
		l.text += string(b[:n])
		if err != nil {
			l.err = err
			return l
		}
	}
}

type typedLine struct {
	text string
	era  int   // era in which it was typed
	err  error // of the input, after the text
}

// asker asks the owner on a terminal that is not in raw mode, one question at a time.
type asker struct {
	in    *ui.Input
	lines chan typedLine // receives the line that is being read; nil: none
}

func newAsker(in io.Reader) *asker { return &asker{in: ui.NewInput(in)} }

// ask shows a question and returns the line that is typed then, without its end. The error is that of the input, with what was typed before
// it, or the cause of ctx's end. A read cannot be interrupted: it continues for the next question.
func (a *asker) ask(ctx context.Context, out io.Writer, question string) (string, error) {
	era := a.in.Discard()
	if _, err := fmt.Fprint(out, question); err != nil {
		return "", err
	}
	for {
		if a.lines == nil {
			lines := make(chan typedLine, 1)
			a.lines = lines
			go func() { lines <- a.line() }()
		}
		select {
		case l := <-a.lines:
			if a.lines = nil; l.era == era {
				return strings.TrimSuffix(l.text, "\r"), l.err
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// agrees asks a question whose answer is yes or no. An empty line is the standard answer; any other, and the end of the input, is no.
func (a *asker) agrees(ctx context.Context, out io.Writer, question string, standard bool) (bool, error) {
	choice := map[bool]string{true: " [Y/n] ", false: " [y/N] "}[standard]
	line, err := a.ask(ctx, out, question+choice)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	case "":
		return standard && err == nil, nil
	}
	return false, nil
}

// askHidden is ask without showing what is typed. Standard functions for this cannot be interrupted, and take what was typed before.
func (a *asker) askHidden(ctx context.Context, out io.Writer, question string) (string, error) {
	show, err := a.in.Hide()
	if err != nil {
		return "", err
	}
	if show != nil {
		defer func() {
			show()
			_, _ = fmt.Fprintln(out)
		}()
	}
	return a.ask(ctx, out, question)
}
