package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/ollim/ollim/internal/app"
)

// typed runs a command line as the owner types it, beside what this process does, and returns what it prints.
func (d *Deps) typed(ctx context.Context, h app.Home, words []string) (string, error) {
	var out, wrong bytes.Buffer
	typed := &Deps{
		In: strings.NewReader(""), Out: &out, Stdout: &out, Stderr: &wrong, Automatic: d.Automatic, layout: aligned,
		App: &app.App{Machine: d.Machine, Commands: d.Commands},
	}
	typed.Warn = typed.warn
	words = append([]string{words[0], "--data-dir", string(h.Dir), "--config", d.ConfigFile(h.Dir)}, words[1:]...)
	root := newRoot(typed, words...)
	root.SetArgs(words)
	root.SetIn(typed.In)
	root.SetOut(&out)
	root.SetErr(&wrong)
	cmd, err := root.ExecuteContextC(ctx)
	if typed.conclude(verbOf(cmd), err) != 0 {
		return "", errors.New(strings.TrimSpace(wrong.String()))
	}
	return out.String() + wrong.String(), nil
}
