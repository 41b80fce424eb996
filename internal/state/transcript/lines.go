package transcript

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"os"

	"github.com/ollim/ollim/internal/platform/store"
)

// lines reads a file forward, in pieces of whole lines. Of a last line without its line break only a whole message counts.
type lines struct {
	from io.Reader
	rest []byte // the beginning of the line that the next piece begins with
}

// next fills buf, or a larger one if a line needs it. At the end the error is io.EOF.
func (l *lines) next(buf []byte) ([]byte, error) {
	buf = append(buf[:0], l.rest...)
	for searched := len(buf); ; searched = len(buf) {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, max(len(buf), 512))...)[:len(buf)]
		}
		n, err := io.ReadFull(l.from, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if end := bytes.LastIndexByte(buf[searched:], '\n'); end >= 0 {
			end += searched + 1
			l.rest = append(l.rest[:0], buf[end:]...)
			return buf[:end], nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if errors.Is(err, io.EOF) && isEntry(buf) {
			l.rest = l.rest[:0]
			return append(buf, '\n'), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// forward yields the lines of a file from where it stands, without their line breaks.
func forward(f io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		l := lines{from: f}
		buf := make([]byte, 0, 64<<10)
		for {
			piece, err := l.next(buf)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
			buf = piece
			for line := range bytes.Lines(piece) {
				if !yield(line[:len(line)-1], nil) {
					return
				}
			}
		}
	}
}

// upward yields the lines of a file's first so many bytes, the last first, without their line breaks: those that begin in the last
// most of them. As with forward a last message may lack its line break.
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

// tail is a message at the end of a file that lacks its line break alone, as an editor may leave it; nil if there is none.
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

// wholeLines is the length of a file without a last line that has no line break.
func wholeLines(f *os.File, size int64) (int64, error) {
	buf := make([]byte, 0, 4<<10)
	for end := size; end > 0; {
		n := min(int64(cap(buf)), end)
		if end == size {
			n = 1 // nearly always that is all
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
