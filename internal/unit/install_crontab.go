package unit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/home"
	"github.com/ollim/ollim/internal/program"
	"github.com/ollim/ollim/internal/store"
)

// Table is the crontab of the user that we run as.
type Table struct {
	Home home.Dir
	Disk store.Disk
	Env  []string // of the crontab command
}

// ErrTable is a crontab that could not be read or written; it is then as it was.
var ErrTable = errors.New("the crontab")

// maxTable is the largest crontab that is read, in bytes.
const maxTable = 16 << 20

// Read is the crontab as it is; none is an empty one.
func (t Table) Read(ctx context.Context) ([]byte, error) {
	r, err := program.Run(ctx, program.Call{Argv: []string{"crontab", "-l"}, Env: t.Env, Limit: maxTable})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: crontab -l: %w", ErrTable, err)
	case r.Cut:
		return nil, fmt.Errorf("%w is larger than %d MiB", ErrTable, maxTable>>20)
	case r.Status == 0:
		return r.Out, nil
	case len(r.Out) == 0 && isNone(r.Stderr):
		return nil, nil
	}
	return nil, fmt.Errorf("%w: crontab -l: %s: %s", ErrTable, r.End, strings.TrimSpace(r.Stderr))
}

// isNone knows how the cron of Debian, cronie and busybox say that there is no crontab.
func isNone(said string) bool {
	return strings.Contains(said, "no crontab for") || strings.Contains(said, "can't open '") && strings.Contains(said, "No such file")
}

// Edit changes the crontab and says whether it did. What it was is kept in the data directory first, what it is now is read
// again and compared. Two of ours do not do so at once.
func (t Table) Edit(ctx context.Context, change func(old []byte) ([]byte, error)) (changed bool, err error) {
	held, err := t.Disk.Lock(ctx, t.Home.Lock("crontab"))
	if err != nil {
		return false, err
	}
	defer held.Release()
	old, err := t.Read(ctx)
	if err != nil {
		return false, err
	}
	text, err := change(old)
	if err != nil || bytes.Equal(old, text) {
		return false, err
	}
	if err := t.backup(old); err != nil {
		return false, err
	}
	if err := t.write(ctx, text); err != nil {
		return false, err
	}
	now, err := t.Read(ctx)
	if err == nil && !bytes.Equal(now, text) {
		err = fmt.Errorf("%w was written and reads back as something else; what it was is in %s", ErrTable, t.Home.Backups())
	}
	return true, err
}

// keptBackups is how many crontabs are kept.
const keptBackups = 20

func (t Table) backup(old []byte) error {
	name := "crontab-" + t.Disk.Now().UTC().Format("20060102T150405.000000000Z")
	if err := store.MkdirAll(t.Home.Backups()); err != nil {
		return err
	}
	if err := store.Replace(filepath.Join(t.Home.Backups(), name), old); err != nil {
		return err
	}
	kept, err := filepath.Glob(filepath.Join(t.Home.Backups(), "crontab-*"))
	for len(kept) > keptBackups {
		err = errors.Join(err, os.Remove(kept[0])) // their names sort by time
		kept = kept[1:]
	}
	return err
}

// write hands a file to crontab, after a dry run where there is one: a pipe that breaks would leave an empty crontab.
func (t Table) write(ctx context.Context, text []byte) error {
	draft, err := os.CreateTemp(t.Home.State(), ".crontab.tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Close()); err != nil {
		return &store.NotWritten{Path: draft.Name(), Err: err}
	}
	if r, err := t.run(ctx, "-n", draft.Name()); err == nil && r.Status != 0 && !unknownOption(r.Stderr) {
		return fmt.Errorf("%w: cron does not take it: %s", ErrTable, strings.TrimSpace(r.Stderr))
	}
	r, err := t.run(ctx, draft.Name())
	if err == nil && r.Status != 0 {
		err = fmt.Errorf("%s: %s", r.End, strings.TrimSpace(r.Stderr))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTable, err)
	}
	return nil
}

// tableLimit bounds one call of crontab.
const tableLimit = 30 * time.Second

func (t Table) run(ctx context.Context, args ...string) (program.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, tableLimit)
	defer cancel()
	return program.Run(ctx, program.Call{Argv: append([]string{"crontab"}, args...), Env: t.Env})
}

func unknownOption(said string) bool {
	return strings.Contains(said, "option") || strings.Contains(said, "usage") || strings.Contains(said, "Usage")
}
