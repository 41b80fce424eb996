package builtin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/transcript"
)

const (
	readLines = 2000
	readBytes = 256 << 10 // of what is shown
	readWidth = 2000      // characters of a line
)

func callRead(ctx context.Context, b *Box, in struct {
	Path   string `json:"file_path"`
	Offset count  `json:"offset"`
	Limit  count  `json:"limit"`
	Pages  string `json:"pages"`
}) (engine.ToolResult, error) {
	if in.Pages != "" {
		return engine.ToolResult{}, badInput(errors.New("pages is not supported: a PDF is read as a whole"))
	}
	lines := min(int(cmp.Or(in.Limit, readLines)), readLines)
	var source *transcript.Source
	text, err := soon(ctx, func(ctx context.Context) (string, error) {
		return b.at(in.Path, toRead, func(s spot) (text string, err error) {
			f, info, err := openFile(s.g, s.dir, s.name, s.place.Real)
			if err != nil {
				return "", err
			}
			defer func() { _ = f.Close() }()
			if source, err = readSeen(ctx, f, info.Size(), in.Path); source != nil || err != nil {
				return seenText(source), err
			}
			return readPage(ctx, f, max(1, int(in.Offset)), lines)
		})
	})
	if err != nil { // then source may still be in use
		return engine.ToolResult{Text: text}, err
	}
	return engine.ToolResult{Text: text, Source: source}, nil
}

// readSeen reads an image or a PDF; nil if the file is neither, which is then at its beginning.
func readSeen(ctx context.Context, f *os.File, size int64, name string) (*transcript.Source, error) {
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	kind := media.Type(head[:n])
	if !media.IsSeen(kind) {
		return nil, nil
	}
	load := media.Load{Limits: media.Anthropic(0)} // the lowest
	if err := load.Add(kind, int(size), media.Facts{}); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(patient{ctx, f}, size))
	if err != nil {
		return nil, err
	}
	source, err := engine.Source(filepath.Base(name), content)
	if err != nil {
		return nil, err
	}
	load = media.Load{Limits: load.Limits}
	return source, load.Add(kind, len(content), source.Facts)
}

func seenText(s *transcript.Source) string {
	if s == nil {
		return ""
	}
	text := s.Label()
	if s.Pages > 0 {
		text += " " + plaintext.Count(s.Pages, "page")
	}
	if s.Width > 0 {
		text += fmt.Sprintf(" %d x %d pixels", s.Width, s.Height)
	}
	return text
}

// at works on the spot of a path, one at a time where the work is to change it. The errors of work are about the spot.
func (b *Box) at(path string, what purpose, work func(spot) (string, error)) (string, error) {
	if what != toRead {
		b.writing.Lock()
		defer b.writing.Unlock()
	}
	s, err := b.spot(path, what)
	if err != nil {
		return "", err
	}
	defer func() { _ = s.dir.Close() }()
	text, err := work(s)
	if err != nil {
		return "", wrong(path, err)
	}
	return text, nil
}

// OpenFile opens a regular file that the box may read. A link on the way to it that is changed meanwhile leads nowhere else.
func (b *Box) OpenFile(path string) (f *os.File, err error) {
	_, err = b.at(path, toRead, func(s spot) (_ string, err error) {
		f, _, err = openFile(s.g, s.dir, s.name, s.place.Real)
		return "", err
	})
	return f, err
}

// readPage is some lines of a file with their numbers, the first of them first.
func readPage(ctx context.Context, f *os.File, first, lines int) (string, error) {
	in := bufio.NewReaderSize(patient{ctx, f}, 64<<10)
	if err := checkText(in); err != nil {
		return "", err
	}
	var page strings.Builder
	number := 0
	for {
		line, more, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		number++
		if number < first {
			continue
		}
		if number == first+lines {
			return page.String() + goesOn(number), nil
		}
		if !utf8.Valid(line) {
			return "", fmt.Errorf("line %d is not UTF-8 text", number)
		}
		text := fmt.Sprintf("%6d\t%s\n", number, cut(string(line), readWidth, more))
		if page.Len()+len(text) > readBytes {
			return page.String() + goesOn(number), nil
		}
		page.WriteString(text)
	}
	switch {
	case number == 0:
		return "(the file is empty)", nil
	case page.Len() == 0:
		return "", fmt.Errorf("offset %d is past the end of the file; it has %s", first, plaintext.Count(number, "line"))
	}
	return page.String(), nil
}

func goesOn(number int) string {
	return fmt.Sprintf("(the file continues; read it from offset %d)", number)
}

// checkText looks at the beginning of a file, and skips the mark that some editors put there.
func checkText(in *bufio.Reader) error {
	const enough = 8 << 10
	head, err := in.Peek(enough)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return notText(head)
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		_, err = in.Discard(len("\ufeff"))
		return err
	}
	return nil
}

func notText(head []byte) error {
	return fmt.Errorf("it is not UTF-8 text but %s", http.DetectContentType(head))
}

// readLine reads one line, without its end, and keeps the beginning of a long one; more says that there was more.
func readLine(in *bufio.Reader) (line []byte, more bool, err error) {
	const keep = readWidth * utf8.UTFMax
	seen := false
	for {
		piece, err := in.ReadSlice('\n')
		seen = seen || len(piece) > 0
		if bytes.IndexByte(piece, 0) >= 0 {
			return nil, false, notText(piece)
		}
		end := err == nil
		piece = bytes.TrimSuffix(piece, []byte("\n"))
		n := min(len(piece), keep-len(line))
		line = append(line, piece[:n]...)
		more = more || n < len(piece)
		switch {
		case end || errors.Is(err, io.EOF) && seen:
			if more {
				return plaintext.WholeRunes(line), true, nil
			}
			return bytes.TrimSuffix(line, []byte("\r")), false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// lineCut marks a line of which only the beginning is shown.
const lineCut = "… (line cut)"

// cut is the beginning of a text of at most so many characters, with a mark if there was more.
func cut(s string, width int, more bool) string {
	s, cut := plaintext.First(s, width)
	if more || cut {
		s += lineCut
	}
	return s
}
