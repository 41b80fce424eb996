package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ollim/ollim/internal/ui"
)

// compose edits what is being typed in the owner's editor. The text comes back to the prompt, where Enter sends it.
func (l *chatLoop) compose(ctx context.Context) (err error) {
	f, err := os.CreateTemp("", "ollim-chat-*.md") // only the owner can read it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	l.tty.screen.Change(func(e *ui.Editor) { _, err = f.WriteString(e.Text()) })
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := l.openEditor(ctx, f.Name()); err != nil {
		return err
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	if len(data) > ui.MostTyped {
		return fmt.Errorf("the text is longer than %d KiB: use -f FILE", ui.MostTyped>>10)
	}
	l.tty.screen.Change(func(e *ui.Editor) { e.SetText(string(data)) })
	return nil
}

// openEditor gives the terminal to the editor until it ends.
func (l *chatLoop) openEditor(ctx context.Context, path string) error {
	defer l.tty.screen.Lend()()
	defer l.tty.lend()()
	d := *l.d
	d.Stderr = l.tty.stderr
	return d.openEditor(ctx, path)
}
