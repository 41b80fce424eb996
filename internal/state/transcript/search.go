package transcript

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/internal/platform/order"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Match is a message that contains all words.
type Match struct {
	Transcript Transcript `json:"transcript"`
	Modified   time.Time  `json:"modified"` // time of the last change of the file
	Index      int        `json:"index"`    // of the message in Load's entries
	At         time.Time  `json:"at"`
	Role       string     `json:"role"`
	Excerpt    string     `json:"excerpt"` // one line around the first word
}

// File is a file to search.
type File struct {
	Path     string
	Modified time.Time
}

// Files lists the transcripts of all directories.
func Files(sessions string) (list []File, err error) {
	all, err := newest(sessions, "")
	for _, f := range all {
		list = append(list, File{f.path, f.modified})
	}
	return list, err
}

// Read reads a session that is not a transcript. The error wraps ErrForeign if the file is no session.
type Read func(path string) (Transcript, []Entry, error)

// Search finds messages that contain all of the words, in any order and case: in the texts, as own leaves them, and in
// the inputs and results of tools. A word may be a phrase. The last modified file comes first, and within each
// the last message, so that a caller can stop after some. Files that are not sessions
// are skipped. The sequence ends with the first error, which is yielded with the zero Match.
//
// The files are scanned on all processors, before any JSON is decoded. Only lines that may match are decoded; a file of other
// software is read as a whole if it has such a line.
func Search(ctx context.Context, files []File, words []string, own Words, read Read) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		s := &search{words: plaintext.NewQuery(words), own: own, read: read}
		if len(s.words) == 0 {
			return
		}
		files = slices.Clone(files)
		order.Sort(files, func(a, b File) int { return b.Modified.Compare(a.Modified) })
		i := -1
		for found := range ahead(ctx, files, s.scan) {
			if i++; found.err != nil {
				yield(Match{}, found.err)
				return
			}
			if len(found.lines) > 0 && !s.in(ctx, files[i], found.lines, yield) {
				return
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(Match{}, err)
		}
	}
}

type search struct {
	words plaintext.Query
	own   Words
	read  Read

	buffers sync.Pool // of scan
}

// place is a line of a file.
type place struct {
	at     int64
	length int
}

type scanned struct {
	lines []place // that may match
	err   error
}

// ahead calls do for the items on all processors, a few items before they are needed, and yields the results in the order of the
// items. It ends early when the context is cancelled; so must do.
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
		unused := make(chan struct{}, 4*n) // an element for each result that is begun and not yielded
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

// scan finds the lines of a file that may match. A file that cannot be read has none: it has just been removed, or is not ours.
func (s *search) scan(ctx context.Context, file File) (found scanned) {
	f, err := openFile(file.Path)
	if err != nil {
		return found
	}
	defer func() { _ = f.Close() }()
	buffer, _ := s.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new(make([]byte, scanBytes))
	}
	defer s.buffers.Put(buffer)
	kept, at := 0, int64(0) // bytes at the beginning of the buffer, which are at this offset of the file
	for {
		n, err := f.Read((*buffer)[kept:])
		text := (*buffer)[:kept+n]
		whole := bytes.LastIndexByte(text, '\n') + 1
		if errors.Is(err, io.EOF) {
			whole = len(text)
		} else if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			found.err = err
			return found
		}
		for begin, end := range s.words.Lines(text[:whole]) {
			found.lines = append(found.lines, place{at + int64(begin), end - begin})
		}
		if err != nil {
			return found
		}
		kept, at = copy(text, text[whole:]), at+int64(whole)
		if kept == len(*buffer) {
			*buffer = append(*buffer, make([]byte, len(*buffer))...)
		}
	}
}

// scanBytes is the size of a buffer: it stays in the processor's cache.
const scanBytes = 256 << 10

// in decodes the lines of a file that may match, and reports whether to search the next.
func (s *search) in(ctx context.Context, file File, lines []place, yield func(Match, error) bool) bool {
	t, err := Open(file.Path)
	if errors.Is(err, ErrForeign) && s.read != nil {
		return s.inForeign(file, yield)
	}
	if err != nil {
		return true
	}
	f, err := openFile(file.Path)
	if err != nil {
		return true // it has just been removed
	}
	defer func() { _ = f.Close() }()
	var numbers []int
	for i, p := range slices.Backward(lines) {
		line := make([]byte, p.length)
		_, err := f.ReadAt(line, p.at)
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			yield(Match{}, err)
			return false
		}
		m, ok := s.match(line)
		if !ok {
			continue
		}
		if numbers == nil {
			numbers = number(f, lines[:i+1])
		}
		m.Transcript, m.Modified, m.Index = t, file.Modified, numbers[i]
		if !yield(m, nil) {
			return false
		}
	}
	return true
}

// inForeign searches a file of other software, which may have to be read as a whole to know what belongs to the conversation.
func (s *search) inForeign(file File, yield func(Match, error) bool) bool {
	t, entries, err := s.read(file.Path)
	if err != nil {
		return true
	}
	for i, e := range slices.Backward(entries) {
		if m, ok := s.matchEntry(e); ok {
			m.Transcript, m.Modified, m.Index = t, file.Modified, i
			if !yield(m, nil) {
				return false
			}
		}
	}
	return true
}

// number counts the messages of a file before each of these lines.
func number(f io.ReaderAt, lines []place) (numbers []int) {
	at, count := int64(0), 0
	for line, err := range forward(io.NewSectionReader(f, 0, lines[len(lines)-1].at+1)) { // with a byte of the last line
		for len(numbers) < len(lines) && lines[len(numbers)].at <= at {
			numbers = append(numbers, count)
		}
		if err != nil {
			break // the line itself could be read a moment ago
		}
		if isMessage(line) {
			count++
		}
		at += int64(len(line)) + 1
	}
	for len(numbers) < len(lines) {
		numbers = append(numbers, count)
	}
	return numbers
}

func (s *search) match(line []byte) (Match, bool) {
	e, ok, _ := decode(line)
	if !ok {
		return Match{}, false
	}
	return s.matchEntry(e)
}

func (s *search) matchEntry(e Entry) (Match, bool) {
	var seen []string
	for _, b := range e.Message.Content {
		text := b.visible()
		if s.own != nil && b.Type == TextBlock && e.Message.Role == User {
			text = s.own(text)
		}
		seen = append(seen, text)
	}
	line, found := s.words.Excerpt(strings.Join(seen, "\n"))
	return Match{At: e.At, Role: e.Message.Role, Excerpt: line}, found
}
