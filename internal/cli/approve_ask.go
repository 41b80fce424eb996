package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/approval"
)

// askAll shows and asks, one after the other.
func (a *approver) askAll(ctx context.Context) error {
	var tty *terminalOf
	for _, c := range a.found {
		if c.state == stateApproved {
			continue
		}
		if tty == nil {
			var err error
			if tty, err = openTerminal(); err != nil {
				return err
			}
			defer tty.close()
		}
		err := a.ask(ctx, tty, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.failed.add(c.name, err)
	}
	if tty == nil && len(a.failed.statuses) == 0 {
		a.d.note("nothing waits for approval")
	}
	return nil
}

func (a *approver) ask(ctx context.Context, tty *terminalOf, c candidate) error {
	lines, err := a.h.Approvals().Difference(c.subject)
	if err != nil {
		return err
	}
	t := a.d.table()
	for _, line := range lines {
		t.row(c.name, line)
		if !isTerminal(a.d.Stdout) { // where the question stands, too: what nobody saw nobody approves
			if _, err := fmt.Fprintln(tty.file, printable(c.name+" "+line)); err != nil {
				return err
			}
		}
	}
	t.end()
	if err := a.d.flush(); err != nil {
		return err
	}
	yes, err := tty.yes(ctx, printable(fmt.Sprintf("approve %s (%s)? [y/N] ", c.name, c.subject.Kind)))
	if err != nil {
		return err
	}
	if !yes {
		return &reported{statusFailed}
	}
	now, err := c.again()
	if err != nil || now.Digest() != c.subject.Digest() {
		err = &withStatus{errors.New("not approved: it changed while it was shown"), statusTempFail}
		return hint(err, "ollim approve %s", c.name)
	}
	return a.h.Approvals().Approve(ctx, c.subject, approval.Owner)
}

// terminalOf is the terminal that we were started from, wherever our streams lead.
type terminalOf struct {
	file  *os.File
	lines *bufio.Reader
}

func openTerminal() (*terminalOf, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, hint(fmt.Errorf("%w: no terminal to ask on", app.ErrNotAllowed), "run it in a terminal")
	}
	return &terminalOf{f, bufio.NewReader(f)}, nil
}

func (t *terminalOf) close() { _ = t.file.Close() }

// yes asks a question whose answer is no unless somebody says otherwise.
func (t *terminalOf) yes(ctx context.Context, question string) (bool, error) {
	if _, err := io.WriteString(t.file, question); err != nil {
		return false, err
	}
	answer := make(chan string, 1)
	go func() { // a signal does not end the read
		line, _ := t.lines.ReadString('\n') // the end of the input is no
		answer <- line
	}()
	select {
	case line := <-answer:
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
