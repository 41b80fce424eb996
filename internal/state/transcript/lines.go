package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/ollim/ollim/internal/platform/store"
)

// forward yields the lines of a file from its current offset, without their line breaks. A last line without one counts only
// if it is a whole message.
func forward(f io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReaderSize(f, 64<<10)
		for {
			line, err := r.ReadBytes('\n')
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

// upward yields the lines that begin in the last most bytes of a file of the given size, the last first, without their
// line breaks. As with forward, the last message may lack its line break.
func upward(f *os.File, size, most int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		whole, err := wholeLines(f, size)
		var rest []byte
		if err == nil {
			rest, err = tail(f, whole, size)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if rest != nil && !yield(rest, nil) {
			return
		}
		for line, err := range store.Backward(f, max(0, whole-most), whole) {
			if !yield(line, err) {
				return
			}
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
	buf := make([]byte, 0, 4<<10)
	for end := size; end > 0; {
		n := min(int64(cap(buf)), end)
		if end == size {
			n = 1 // nearly always all of it
		}
		buf = buf[:n]
		if _, err := f.ReadAt(buf, end-n); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(buf, '\n'); at >= 0 {
			return end - n + int64(at) + 1, nil
		}
		end -= n
		if cap(buf) < 1<<20 {
			buf = make([]byte, 0, 2*cap(buf))
		}
	}
	return 0, nil
}
