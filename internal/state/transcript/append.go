package transcript

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ollim/ollim/internal/platform/store"
)

// Append appends messages, all in one write. The caller holds the session's lock. The rest of a line left by a crash is
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
	err = appendTo(f, text, d)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && d == store.Synced {
		err = store.SyncDir(t.Path) // the file may be new
	}
	return err
}

func appendTo(f *os.File, text []byte, d store.Durability) error {
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
	if err == nil && d == store.Synced {
		err = f.Sync()
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
