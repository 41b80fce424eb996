package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

const (
	grepBytes = 16 << 20 // largest file that is searched, in bytes
	grepChars = 20000    // longest result, in characters
	grepWidth = 500      // longest line of a result, in characters
)

// grep is one search for text.
type grep struct {
	searching
	in            grepInput
	re            *regexp.Regexp
	literal       string   // text with which every match begins
	names         []string // name patterns of the file type to search; nil: all files
	before, after int
	out           report
	data          []byte // content of the present file
	large         []string
	unreadable    int // number of files
}

// hit is a match: its lines, counted from 0, and its text.
type hit struct {
	from, to int
	texts    [][]byte // matched texts, for -o
}

// look searches one file. An error ends the search.
func (g *grep) look(ctx context.Context, dir *os.Root, name, at string) error {
	shownAt := nameOf(g.g, at)
	if err := g.load(ctx, dir, name, at); err != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errLarge):
			g.large = append(g.large, shownAt)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errProtected):
			g.unreadable++
		}
		return nil
	}
	if bytes.IndexByte(g.data, 0) >= 0 || !bytes.Contains(g.data, []byte(g.literal)) {
		return nil
	}
	switch g.in.Mode {
	case "files_with_matches":
		hits, err := g.hits(ctx, 1)
		if err != nil || len(hits) == 0 {
			return err
		}
		return g.out.add(shownAt)
	case "count":
		n, err := g.count(ctx)
		if err != nil || n == 0 {
			return err
		}
		return g.out.add(fmt.Sprintf("%s:%d", shownAt, n))
	}
	hits, err := g.hits(ctx, g.out.skip+grepChars) // more would not fit into the result
	if err != nil {
		return err
	}
	if g.in.Only {
		return g.showParts(shownAt, hits)
	}
	return g.showLines(shownAt, hits)
}

var errLarge = errors.New("too large")

// load reads a file into g.data.
func (g *grep) load(ctx context.Context, dir *os.Root, name, at string) error {
	f, info, err := openFile(g.g, dir, name, at)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > grepBytes {
		return errLarge
	}
	buffer := bytes.NewBuffer(g.data[:0])
	buffer.Grow(int(info.Size()) + bytes.MinRead)
	_, err = buffer.ReadFrom(io.LimitReader(patient{ctx, f}, grepBytes+1))
	g.data = buffer.Bytes()
	if err == nil && len(g.data) > grepBytes {
		err = errLarge
	}
	return err
}

// hits returns the matches, at most so many. Without multiline, a line counts as one match.
func (g *grep) hits(ctx context.Context, most int) (hits []hit, err error) {
	if g.in.Multiline {
		return g.spans(ctx, most)
	}
	err = g.lines(ctx, func(number int, line []byte) bool {
		h := hit{from: number, to: number}
		if g.in.Only {
			if h.texts = g.parts(line, most); len(h.texts) == 0 {
				return true
			}
			most -= len(h.texts) - 1
		}
		hits = append(hits, h)
		return len(hits) < most
	})
	return hits, err
}

// parts returns the matches in a line that are not empty, at most so many. A line can be the whole file, and most of its matches can be
// empty, so it asks for more matches step by step, up to some million.
func (g *grep) parts(line []byte, most int) [][]byte {
	const limit = 4 << 20
	for n := most; ; n = min(16*n, limit) {
		texts := g.re.FindAll(line, n)
		found := len(texts)
		texts = slices.DeleteFunc(texts, func(match []byte) bool { return len(match) == 0 })
		if found < n || len(texts) >= most || n >= limit {
			return texts[:min(len(texts), most)]
		}
	}
}

// count returns how many lines match; with multiline, how many matches there are.
func (g *grep) count(ctx context.Context) (n int, err error) {
	if g.in.Multiline {
		hits, err := g.spans(ctx, 1_000_000)
		return len(hits), err
	}
	err = g.lines(ctx, func(int, []byte) bool { n++; return true })
	return n, err
}

// lines calls visit for each line that matches, until visit returns false.
func (g *grep) lines(ctx context.Context, visit func(number int, line []byte) bool) error {
	number := 0
	for line := range bytes.Lines(g.data) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if line = bytes.TrimRight(line, "\r\n"); g.re.Match(line) && !visit(number, line) {
			return nil
		}
		number++
	}
	return nil
}

// spans returns matches that may span lines.
func (g *grep) spans(ctx context.Context, most int) ([]hit, error) {
	var hits []hit
	line, at := 0, 0
	for _, loc := range g.re.FindAllIndex(g.data, most) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		line += bytes.Count(g.data[at:loc[0]], []byte("\n"))
		at = loc[0]
		if at == len(g.data) && (at == 0 || g.data[at-1] == '\n') {
			break // after the end of the last line
		}
		text := g.data[loc[0]:loc[1]]
		last := line + bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		hits = append(hits, hit{line, last, [][]byte{text}})
	}
	return hits, nil
}

func (g *grep) showParts(name string, hits []hit) error {
	for _, h := range hits {
		for _, text := range h.texts {
			if len(text) == 0 {
				continue
			}
			if err := g.out.add(g.line(name, ':', h.from, text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// showLines writes the lines of all hits and the lines around them, each once.
func (g *grep) showLines(name string, hits []hit) error {
	lines := bytes.Split(bytes.TrimSuffix(g.data, []byte("\n")), []byte("\n"))
	next := -1 // number of the first line that is not written yet
	for i, h := range hits {
		start := max(next, h.from-g.before, 0)
		if g.before+g.after > 0 && start > next && g.out.seen > 0 {
			if err := g.out.add("--"); err != nil {
				return err
			}
		}
		end := min(len(lines)-1, h.to+g.after)
		if i+1 < len(hits) {
			end = min(end, hits[i+1].from-1) // the rest belongs to the next hit
		}
		for n := start; n <= max(end, min(h.to, len(lines)-1)); n++ {
			mark := '-'
			if n >= h.from && n <= h.to {
				mark = ':'
			}
			if err := g.out.add(g.line(name, mark, n, bytes.TrimSuffix(lines[n], []byte("\r")))); err != nil {
				return err
			}
			next = n + 1
		}
	}
	return nil
}

func (g *grep) line(name string, mark rune, number int, text []byte) string {
	s := cut(string(text[:min(len(text), grepWidth*utf8.UTFMax)]), grepWidth, len(text) > grepWidth*utf8.UTFMax)
	if g.in.Numbers {
		return fmt.Sprintf("%s%c%d%c%s", name, mark, number+1, mark, s)
	}
	return fmt.Sprintf("%s%c%s", name, mark, s)
}

// unsearched returns notes about the files that were not searched.
func (g *grep) unsearched() (lines []string) {
	if len(g.large) > 0 {
		lines = append(lines, fmt.Sprintf("(not searched, larger than %d MiB: %s)", grepBytes>>20, some(g.large)))
	}
	if g.unreadable > 0 {
		lines = append(lines, fmt.Sprintf("(files that could not be read: %d)", g.unreadable))
	}
	return lines
}

func some(names []string) string {
	const most = 5
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// errEnough ends a search whose result is complete.
var errEnough = errors.New("enough")

// report collects the lines of a result.
type report struct {
	skip  int // number of lines to skip at the beginning
	most  int // number of lines at most; 0: no limit
	lines []string
	chars int
	seen  int
	cut   string // why the result was cut
}

func (r *report) add(line string) error {
	r.seen++
	if r.seen <= r.skip {
		return nil
	}
	n := utf8.RuneCountInString(line) + 1
	switch {
	case r.most > 0 && len(r.lines) == r.most:
		r.cut = fmt.Sprintf("(more results follow; continue with offset %d)", r.skip+r.most)
		return errEnough
	case r.chars+n > grepChars:
		r.cut = fmt.Sprintf("(cut at %d characters; continue with offset %d, or narrow the search)", grepChars, r.skip+len(r.lines))
		return errEnough
	}
	r.lines, r.chars = append(r.lines, line), r.chars+n
	return nil
}

func (r *report) result() []string {
	switch {
	case r.seen == 0:
		return []string{"(no match)"}
	case len(r.lines) == 0:
		return []string{fmt.Sprintf("(offset %d is past the end of %s)", r.skip, plaintext.Count(r.seen, "line"))}
	case r.cut != "":
		return append(r.lines, r.cut)
	}
	return r.lines
}
