package transcript

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Append appends messages, all in one write. store.Whole is for messages that must survive a power cut in a file whose name an earlier Append
// has made durable. The caller holds the session's lock. The rest of a line left by a crash is
// cut off first, see mend; after a failed write the file has its old length. The error is a *store.NotWritten.
func (t Transcript) Append(d store.Durability, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	err := t.append(d, entries)
	if err != nil {
		return &store.NotWritten{Path: t.Path, Err: err}
	}
	return nil
}

func (t Transcript) append(d store.Durability, entries []Entry) error {
	text, err := encode(entries)
	if err != nil {
		return err
	}
	f, err := store.Open(t.Path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return err
	}
	err = t.appendTo(f, text, d)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (t Transcript) appendTo(f *os.File, text []byte, d store.Durability) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	whole, err := wholeLines(f, size)
	if err == nil && whole == 0 {
		err = fmt.Errorf("%w: it has no header", ErrForeign)
	}
	if err == nil && whole < size {
		whole, err = mend(f, whole, size)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && d != store.Buffered {
		err = f.Sync()
	}
	if err == nil && d == store.Synced {
		err = store.SyncDir(t.Path) // the file may be new
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(whole))
	}
	return err
}

// mend repairs a last line without a line break: a complete message gets one, a torn line is cut off. It returns the
// length of the file.
func mend(f *os.File, whole, size int64) (int64, error) {
	rest, err := tail(f, whole, size)
	if err != nil {
		return whole, err
	}
	if rest == nil {
		return whole, f.Truncate(whole)
	}
	_, err = f.Write([]byte("\n")) // at its end
	return size + 1, err
}

// Create creates a transcript, with entries, and its directory. The file appears complete under its name, so that
// a file of a killed writer is never taken for a complete one; store.IsDraft recognizes the draft that is left. A file
// without entries reaches the disk with the first synced append. The error wraps fs.ErrExist, or is a
// *store.NotWritten, unless the id is not valid.
func (d Dir) Create(h Header, entries ...Entry) (Transcript, error) {
	to := store.Synced
	if len(entries) == 0 {
		to = store.Buffered
	}
	if !plaintext.IsName(h.ID) {
		return Transcript{}, fmt.Errorf("session %.100q: not a valid session id", h.ID) // it could name a file elsewhere
	}
	h.Cwd = clean(h.Cwd)
	t := Transcript{Path: d.Place(h), Header: h}
	dir, name := filepath.Split(t.Path)
	if err := store.MkdirOwn(dir); err != nil {
		return Transcript{}, err
	}
	draft, err := os.CreateTemp(dir, "."+name+".tmp-*")
	if err != nil {
		return Transcript{}, &store.NotWritten{Path: t.Path, Err: err}
	}
	err = t.write(draft, to, entries)
	if closeErr := draft.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Link(draft.Name(), t.Path) // unlike a rename it replaces nothing
	}
	_ = os.Remove(draft.Name())
	if err == nil && to == store.Synced {
		err = store.SyncDir(t.Path)
	}
	if errors.Is(err, os.ErrExist) {
		return Transcript{}, fmt.Errorf("%s: %w", t.Path, os.ErrExist)
	}
	if err != nil {
		return Transcript{}, &store.NotWritten{Path: t.Path, Err: err}
	}
	return t, nil
}

func (t Transcript) write(f *os.File, d store.Durability, entries []Entry) error {
	line, err := marshal(headerLine{"session", t.Header})
	if err != nil {
		return err
	}
	if len(line) >= headBytes {
		return errors.New("the header is too long")
	}
	text, err := encode(entries)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append(line, '\n'), text...))
	if err == nil && d == store.Synced {
		err = f.Sync()
	}
	return err
}
