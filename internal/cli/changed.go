package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/runlog"
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
	values, err := d.values(h)
	if err != nil {
		return err
	}
	value, err := readValue(ctx, d.In, allowEmpty)
	if err != nil {
		return err
	}
	diff, differs, err := values.compare(key, value)
	if err != nil {
		return err
	}
	if !differs {
		return &reported{statusFailed}
	}
	_, err = io.WriteString(d.Out, diff)
	if err := cmp.Or(err, d.flush()); err != nil {
		return err // a change that was not printed is found again
	}
	return values.keep(context.WithoutCancel(ctx), key, value)
}

// values are the owner's values, or those of a run's job, whose new values are committed at the end of the run.
type values struct {
	compare func(key string, value []byte) (diff string, differs bool, err error)
	keep    func(ctx context.Context, key string, value []byte) error
}

func (d *deps) values(h app.Home) (values, error) {
	id := d.RunID()
	if id == "" {
		return values{h.Changes.Compare, h.Changes.Commit}, nil
	}
	run, err := h.InProgress(id)
	if err != nil {
		return values{}, err
	}
	return values{
		compare: func(key string, value []byte) (string, bool, error) {
			return h.Changes.CompareOf(changed.Job{Kind: run.Kind, ID: run.Job}, key, value, usedBefore(h, run.Record, key))
		},
		keep: func(ctx context.Context, key string, value []byte) error {
			return h.Changes.Propose(ctx, id, key, value)
		},
	}, nil
}

// usedBefore reports whether the owner has approved that a job uses a key: the executable of its gate, verify or after, which runs now, or
// a pattern of the job names it. Before jobs had keys of their own, the owner's value of such a key was the job's.
func usedBefore(h app.Home, run runlog.Record, key string) bool {
	for _, pattern := range run.Tools {
		if changed.Names([]byte(pattern), key) {
			return true
		}
	}
	programs, _ := os.ReadDir(h.Dir.Run(run.ID, "programs")) // the directory exists only while one runs
	return slices.ContainsFunc(programs, func(e fs.DirEntry) bool {
		text, err := store.Read(h.Dir.Run(run.ID, "programs", e.Name()))
		return err == nil && changed.Names(text, key)
	})
}

// readValue returns standard input. Empty input most often means that the command before it in the pipe failed. As a value it would hide
// the next change or count as one, so it is refused unless allowEmpty is set.
func readValue(ctx context.Context, in io.Reader, allowEmpty bool) ([]byte, error) {
	value, err := io.ReadAll(io.LimitReader(in, changed.MaxValue+1))
	if err != nil {
		return nil, &withStatus{errors.New("standard input: " + store.Cause(err)), statusData}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // it may be half of a value, if the command before it in the pipe was interrupted too
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
