package installer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
)

// Table is the crontab of the user that we run as.
type Table struct {
	Home paths.Dir
	Disk store.Disk
	Env  []string // of the crontab command

	Backups int // how many earlier tables are kept; 0: 20
}

// ErrTable is a crontab that could not be read or written; it is then as it was.
var ErrTable = errors.New("the crontab")

// maxTable is the largest crontab that is read, in bytes.
const maxTable = 16 << 20

// Read is the crontab as it is; none is an empty one.
func (t Table) Read(ctx context.Context) ([]byte, error) {
	r, err := t.run(ctx, t.Env, "-l")
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: crontab -l: %w", ErrTable, err)
	case r.Cut:
		return nil, fmt.Errorf("%w is larger than %d MiB", ErrTable, maxTable>>20)
	case r.Status == 0:
		return t.exact(ctx, r.Out)
	case len(r.Out) == 0 && isNone(r.Stderr):
		return nil, nil
	}
	return nil, fmt.Errorf("%w: crontab -l: %w", ErrTable, r.Failure())
}

// exact is the crontab that was listed, byte for byte: where Debian's crontab -l shows \r or \b, it may be one byte that would
// hide what stands before it. What it gives an editor is the file itself.
func (t Table) exact(ctx context.Context, listed []byte) ([]byte, error) {
	if !bytes.Contains(listed, []byte(`\r`)) && !bytes.Contains(listed, []byte(`\b`)) {
		return listed, nil
	}
	r, err := t.run(ctx, append(slices.Clone(t.Env), "VISUAL=cat", "EDITOR=cat"), "-e")
	if err == nil {
		err = r.Failure()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: crontab -e: %w", ErrTable, err)
	}
	shown := bytes.ReplaceAll(bytes.ReplaceAll(r.Out, []byte("\r"), []byte(`\r`)), []byte("\b"), []byte(`\b`))
	if !bytes.Equal(r.Out, listed) && !bytes.Equal(shown, listed) {
		return nil, fmt.Errorf("%w: crontab -e edits a different crontab than crontab -l prints", ErrTable)
	}
	return r.Out, nil
}

// isNone knows how the cron of Debian, cronie and busybox say that there is no crontab.
func isNone(said string) bool {
	return strings.Contains(said, "no crontab for") || strings.Contains(said, "can't open '") && strings.Contains(said, "No such file")
}

// Edit changes the crontab and reports whether it did. What it was is kept in the data directory first, what it is now is read
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
	kept, err := t.backup(old)
	if err != nil {
		return false, err
	}
	written, err := t.write(ctx, text)
	if err != nil {
		return false, err
	}
	now, err := t.Read(ctx)
	if err == nil && !bytes.Equal(now, written) {
		err = fmt.Errorf("%w was written but reads back differently; the previous one is in %s", ErrTable, kept)
	}
	return true, err
}

const keptBackups = 20

// backup keeps a crontab and says where.
func (t Table) backup(old []byte) (path string, err error) {
	name := "crontab-" + t.Disk.Now().UTC().Format("20060102T150405.000000000Z")
	path = t.Home.State("backups", name)
	if err := store.MkdirOwn(t.Home.State("backups")); err != nil {
		return "", err
	}
	if err := store.Write(path, old, store.Synced); err != nil {
		return "", err
	}
	kept, err := filepath.Glob(t.Home.State("backups", "crontab-*"))
	for len(kept) > cmp.Or(t.Backups, keptBackups) {
		err = errors.Join(err, os.Remove(kept[0])) // their names sort by time
		kept = kept[1:]
	}
	return path, err
}

// write hands over a text, and returns it as it was taken. Debian's cron takes no table without a final newline, so one that
// came to be there without its crontab command cannot go back as it was.
func (t Table) write(ctx context.Context, text []byte) ([]byte, error) {
	err := t.put(ctx, text)
	if errors.Is(err, ErrTable) && len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(bytes.Clone(text), '\n')
		err = t.put(ctx, text)
	}
	return text, err
}

// put has crontab read a file: a pipe that breaks would leave an empty crontab. crontab checks it and takes all of it or
// nothing. A dry run before that would tell no more, and -n is one only in Debian: cronie's sets the host of a cluster.
func (t Table) put(ctx context.Context, text []byte) error {
	draft, err := os.CreateTemp(t.Home.State(), ".crontab.tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Close()); err != nil {
		return &store.NotWritten{Path: draft.Name(), Err: err}
	}
	r, err := t.run(ctx, t.Env, draft.Name())
	if err == nil {
		err = r.Failure()
	}
	switch {
	case ctx.Err() != nil && err != nil: // crontab was killed, and has replaced all of the table or nothing
		return fmt.Errorf("%w may have been written: %w", ErrTable, err)
	case err != nil:
		return fmt.Errorf("%w was rejected: %w", ErrTable, err)
	}
	return nil
}

// tableLimit bounds one call of crontab.
const tableLimit = 30 * time.Second

func (t Table) run(ctx context.Context, env []string, arg string) (process.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, tableLimit)
	defer cancel()
	return process.Run(ctx, process.Call{Argv: []string{"crontab", arg}, Env: env, Limit: maxTable})
}
