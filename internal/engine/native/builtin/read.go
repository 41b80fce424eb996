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
	readBytes = 256 << 10 // bytes of a file that are shown at most
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
	if err != nil { // after an error source may still be in use
		return engine.ToolResult{Text: text}, err
	}
	return engine.ToolResult{Text: text, Source: source}, nil
}

// readSeen reads an image or a PDF. It returns nil for any other file, which is then at its beginning again.
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
	load := media.Load{Limits: media.Anthropic(0)} // the strictest limits
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

// at calls work with the spot of a path. Calls that change it run one at a time. Errors of work get the path.
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

// OpenFile opens a regular file that the box may read. If a link on the way is changed meanwhile, the change is not followed.
func (b *Box) OpenFile(path string) (f *os.File, err error) {
	_, err = b.at(path, toRead, func(s spot) (_ string, err error) {
		f, _, err = openFile(s.g, s.dir, s.name, s.place.Real)
		return "", err
	})
	return f, err
}

// readPage returns lines of a file with their numbers, beginning with line first.
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

// checkText returns an error if the beginning of a file is not text. It skips a byte order mark.
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

// readLine reads one line without its end. It keeps only the beginning of a long line; more reports that there was more.
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

// lineCut marks a line that was cut.
const lineCut = "… (line cut)"

// cut returns the first width characters of a text, with a mark if there was more.
func cut(s string, width int, more bool) string {
	s, cut := plaintext.First(s, width)
	if more || cut {
		s += lineCut
	}
	return s
}
