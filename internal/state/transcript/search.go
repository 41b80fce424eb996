package transcript

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// match is a message that contains all words.
type match struct {
	Transcript Transcript
	Modified   time.Time // time of the last change of the file
	At         time.Time
	Role       string
	Excerpt    string // one line around the first word
	// returns the index of the message in Load's entries, for which it reads the file again; -1 if the file was removed
	Index func() int
}

// File is a file to search.
type File struct {
	Path     string
	Modified time.Time
}

// Files lists the transcripts of all directories.
func (d Dir) Files() (list []File, err error) {
	if real, err := filepath.EvalSymlinks(string(d)); err == nil {
		d = Dir(real)
	}
	all, err := d.newest("")
	for _, f := range all {
		list = append(list, File{f.path, f.modified})
	}
	return list, err
}

// reader reads a session that is not a transcript. It may omit the content of messages for whose lines maybe returns false. The error
// wraps ErrForeign if the file is not a session.
type reader func(path string, maybe func(lines []byte) bool) (Transcript, []Entry, error)

// Search finds messages that contain all of the words, in any order and case: in the texts, as own leaves them, and in
// the inputs and results of tools. A word may be a phrase. The last modified file comes first, and within each
// the last message, so that a caller can stop after some. Files that are not sessions
// are skipped. The sequence ends with the first error.
//
// The files are scanned on all processors, before any JSON is decoded. Only lines that may match are decoded; a file of other
// software is read as a whole if it has such a line, also on all processors.
func Search(ctx context.Context, files []File, words []string, own ownWords, read reader) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		s := &search{words: plaintext.NewQuery(words), own: own, read: read}
		if len(s.words) == 0 {
			return
		}
		files = slices.Clone(files)
		slices.SortStableFunc(files, func(a, b File) int { return b.Modified.Compare(a.Modified) })
		i := -1
		for found := range ahead(ctx, files, s.scan) {
			if i++; found.err != nil {
				yield(match{}, found.err)
				return
			}
			for m, err := range s.matches(ctx, found) {
				m.Transcript, m.Modified = found.transcript, files[i].Modified
				if !yield(m, err) || err != nil {
					return
				}
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(match{}, err)
		}
	}
}

type search struct {
	words plaintext.Query
	own   ownWords
	read  reader

	buffers sync.Pool // buffers that scan uses
}

// place is the position of a line in a file.
type place struct {
	at     int64
	length int
}

// scanned is a file that may match.
type scanned struct {
	transcript Transcript
	matches    []match // the last match first
	lines      []place // further lines that may match, before those of matches
	err        error
}

// ahead calls do for the items on all processors, shortly before the results are needed, and yields the results in the order of the
// items. It ends early if the context is cancelled, as do must.
func ahead[T, R any](ctx context.Context, items []T, do func(context.Context, T) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		var working sync.WaitGroup
		defer working.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		results := make([]chan R, len(items))
		for i := range results {
			results[i] = make(chan R, 1)
		}
		n := runtime.GOMAXPROCS(0)
		unused := make(chan struct{}, 4*n) // holds one element for each result that was started and not yielded
		var next atomic.Int64
		for range n {
			working.Go(func() {
				for {
					select {
					case unused <- struct{}{}:
					case <-ctx.Done():
						return
					}
					i := int(next.Add(1)) - 1
					if i >= len(items) {
						return
					}
					results[i] <- do(ctx, items[i])
				}
			})
		}
		for _, result := range results {
			select {
			case r := <-result:
				if !yield(r) {
					return
				}
				<-unused
			case <-ctx.Done():
				return
			}
		}
	}
}

// scan searches a file for matches. A file that cannot be read has none: it was just removed, or is not accessible.
func (s *search) scan(ctx context.Context, file File) (found scanned) {
	f, err := openFile(file.Path)
	if err != nil {
		return found
	}
	defer func() { _ = f.Close() }()
	if found.lines, found.err = s.scanLines(ctx, f); found.err != nil || len(found.lines) == 0 {
		return found
	}
	found.transcript, _, err = readHead(f)
	if errors.Is(err, ErrForeign) && s.read != nil {
		return s.foreign(file.Path)
	}
	if err != nil {
		return scanned{}
	}
	size := 0
	for _, l := range found.lines {
		size += l.length
	}
	if size > scanBytes {
		return found // lines are decoded when they are needed
	}
	for m, err := range s.decoded(ctx, f, found.lines) {
		found.err = err
		found.matches = append(found.matches, m)
	}
	found.lines = nil
	return found
}

// foreign searches a file of other software.
func (s *search) foreign(path string) (found scanned) {
	t, entries, err := s.read(path, s.words.Maybe)
	if err != nil {
		return found
	}
	found.transcript = t
	for i, e := range slices.Backward(entries) {
		if m, ok := s.look(e); ok {
			m.Index = func() int { return i }
			found.matches = append(found.matches, m)
		}
	}
	return found
}

// scanLines finds the lines of a file that may match.
func (s *search) scanLines(ctx context.Context, f io.Reader) (lines []place, err error) {
	buffer, _ := s.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new(make([]byte, scanBytes))
	}
	defer s.buffers.Put(buffer)
	kept, at := 0, int64(0) // kept bytes at the beginning of the buffer, which are at offset at of the file
	for {
		n, err := f.Read((*buffer)[kept:])
		text := (*buffer)[:kept+n]
		whole := bytes.LastIndexByte(text, '\n') + 1
		if errors.Is(err, io.EOF) {
			whole = len(text)
		} else if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return nil, err
		}
		for begin, end := range s.words.Lines(text[:whole]) {
			lines = append(lines, place{at + int64(begin), end - begin})
		}
		if err != nil {
			return lines, nil
		}
		kept, at = copy(text, text[whole:]), at+int64(whole)
		if kept > store.MaxLine {
			return lines, nil
		}
		if kept == len(*buffer) {
			*buffer = append(*buffer, make([]byte, len(*buffer))...)
		}
	}
}

// scanBytes is the size of a buffer, chosen to fit into the processor's cache.
const scanBytes = 256 << 10

// matches yields the matches in a file, the last first.
func (s *search) matches(ctx context.Context, found scanned) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		for _, m := range found.matches {
			if !yield(m, context.Cause(ctx)) {
				return
			}
		}
		if len(found.lines) == 0 {
			return
		}
		f, err := openFile(found.transcript.Path)
		if err != nil {
			return // the file was just removed
		}
		defer func() { _ = f.Close() }()
		s.decoded(ctx, f, found.lines)(yield)
	}
}

// decoded yields the matches in lines of a transcript, the last first. It decodes lines one by one, because there may be many.
func (s *search) decoded(ctx context.Context, f *os.File, lines []place) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		numbers := sync.OnceValue(func() []int { return number(f.Name(), lines) })
		for i, p := range slices.Backward(lines) {
			line := make([]byte, p.length)
			_, err := f.ReadAt(line, p.at)
			if err = cmp.Or(err, context.Cause(ctx)); err != nil {
				yield(match{}, err)
				return
			}
			e, _, _ := decode(line)
			if m, ok := s.look(e); ok {
				m.Index = func() int { return numbers()[i] }
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// number returns the number of messages in the file before each of these lines; -1 if unknown.
func number(path string, lines []place) []int {
	numbers, next, count := slices.Repeat([]int{-1}, len(lines)), 0, 0
	f, err := openFile(path)
	if err != nil {
		return numbers // the file was just removed
	}
	defer func() { _ = f.Close() }()
	at := int64(0)
	for line, err := range forward(io.NewSectionReader(f, 0, lines[len(lines)-1].at)) {
		if err != nil {
			break // the other numbers stay unknown
		}
		for ; lines[next].at <= at; next++ {
			numbers[next] = count
		}
		if isMessage(line) {
			count++
		}
		at += int64(len(line)) + 1
	}
	for ; next < len(lines); next++ {
		numbers[next] = count
	}
	return numbers
}

func (s *search) look(e Entry) (match, bool) {
	var seen []string
	for _, b := range e.Message.Content {
		text := b.visible()
		if s.own != nil && b.Type == TextBlock && e.Message.Role == User {
			text = s.own(text)
		}
		seen = append(seen, text)
	}
	line, found := s.words.Excerpt(strings.Join(seen, "\n"))
	return match{At: e.At, Role: e.Message.Role, Excerpt: line}, found
}
