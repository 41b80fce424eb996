package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/changed"
)

func newChanged(d *deps) *cobra.Command {
	var allowEmpty bool
	cmd := command(agentOwn(""), "changed KEY", "Print how standard input differs from the last time", func(cmd *cobra.Command, args []string) error {
		return notOne(inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runChanged(ctx, d, h, args[0], allowEmpty)
		})(cmd, args))
	})
	cmd.Flags().BoolVar(&allowEmpty, "allow-empty", false, "accept empty input as a value instead of an error")
	return cmd
}

func runChanged(ctx context.Context, d *deps, h app.Home, key string, allowEmpty bool) error {
	keep, err := d.keeper(h)
	if err != nil {
		return err
	}
	value, err := readValue(ctx, d.In, allowEmpty)
	if err != nil {
		return err
	}
	diff, changed, err := h.Changes.Compare(key, value)
	if err != nil {
		return err
	}
	if !changed {
		return &reported{statusFailed}
	}
	_, err = io.WriteString(d.Out, diff)
	if err := cmp.Or(err, d.flush()); err != nil {
		return err // what nobody has seen is found once more
	}
	return keep(context.WithoutCancel(ctx), key, value)
}

// keeper is what becomes of a new value: inside a run it waits for the run's end.
func (d *deps) keeper(h app.Home) (func(ctx context.Context, key string, value []byte) error, error) {
	id := d.RunID()
	if id == "" {
		return h.Changes.Commit, nil
	}
	if _, err := h.InProgress(id); err != nil {
		return nil, err
	}
	return func(ctx context.Context, key string, value []byte) error {
		return h.Changes.Propose(ctx, id, key, value)
	}, nil
}

// readValue is standard input. An empty one most often means that the command before it has failed, which a shell does not
// tell us: as a value it would hide the next change, or be one.
func readValue(ctx context.Context, in io.Reader, allowEmpty bool) ([]byte, error) {
	value, err := io.ReadAll(io.LimitReader(in, changed.MaxValue+1))
	if err != nil {
		return nil, &withStatus{errors.New("standard input: " + store.Cause(err)), statusData}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // it may be half of a value, if the command before us was interrupted too
	}
	if len(bytes.TrimSpace(value)) == 0 && !allowEmpty {
		return nil, hint(&withStatus{errors.New("standard input is empty"), statusData},
			"the command before the pipe may have failed; use --allow-empty if empty input is valid")
	}
	return value, nil
}

// notOne gives errors their status, none of them 1: that says "no difference" here.
func notOne(err error) error {
	switch {
	case err == nil || as[*reported](err):
		return err
	case errors.Is(err, changed.ErrKey):
		return usage("%v", err)
	case errors.Is(err, changed.ErrTooLong):
		return &withStatus{err, statusData}
	case statusOf(err) == statusFailed:
		return &withStatus{err, statusUnavailable}
	}
	return err
}
