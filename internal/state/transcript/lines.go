package transcript

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/ollim/ollim/internal/platform/store"
)

// forward yields the lines of a file from its current offset, without line breaks. It yields a last line without a line break only if
// that is a complete message.
func forward(f io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReaderSize(f, 64<<10)
		for {
			line, err := store.ReadLine(r, nil)
			switch {
			case err == nil:
				if !yield(line[:len(line)-1], nil) {
					return
				}
				continue
			case !errors.Is(err, io.EOF):
				yield(nil, err)
			case isEntry(line):
				yield(line, nil)
			}
			return
		}
	}
}

// tail returns a complete message at the end of a file that lacks only its line break, as an editor may leave it; nil
// if there is none.
func tail(f io.ReaderAt, whole, size int64) ([]byte, error) {
	if whole == size {
		return nil, nil
	}
	rest := make([]byte, size-whole)
	if _, err := f.ReadAt(rest, whole); err != nil {
		return nil, err
	}
	if !isEntry(rest) {
		return nil, nil
	}
	return rest, nil
}

func isEntry(line []byte) bool {
	_, ok, _ := decode(line)
	return ok
}

// wholeLines returns the length of a file up to its last line break.
func wholeLines(f *os.File, size int64) (int64, error) {
	last := make([]byte, 1)
	if size == 0 {
		return 0, nil
	}
	if _, err := f.ReadAt(last, size-1); err != nil || last[0] == '\n' {
		return size, err
	}
	next, stop := iter.Pull2(store.Backward(f, 0, size))
	defer stop()
	rest, err, _ := next()
	return size - int64(len(rest)), err
}
