package ui

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// TextOptions say how a Text is shown.
type TextOptions struct {
	Columns func() int // of the terminal; nil, or 0 when called: rows have no end
	Indent  int        // columns before each row
	Styled  bool       // Markdown is shown with attributes and colour, else as it was typed
}

// Text shows a text that arrives in pieces, word by word, in rows that fit a terminal. What is not decided yet waits: a word until
// its end, `**` until it is closed or cannot be any more, a table until its last row. Control characters are removed, so that a text
// cannot take the terminal over.
type Text struct {
	w    io.Writer
	o    TextOptions
	wrap wrapper

	cut     string   // the beginning of a character
	pending string   // the part of a line that is not shown
	begun   bool     // the beginning of the line is shown
	style   style    // of the line
	prev    rune     // the character before what is pending
	fence   string   // that ends the code block; "": there is none
	rows    []string // of a table
}

// NewText returns a Text that is shown on w.
func NewText(w io.Writer, o TextOptions) *Text { return &Text{w: w, o: o} }

// Write shows the next piece of the text.
func (t *Text) Write(p []byte) (int, error) {
	text := append([]byte(t.cut), p...)
	whole := plaintext.WholeRunes(text)
	t.cut = string(text[len(whole):])
	t.pending += plaintext.Lines(string(whole))
	t.show(false)
	if err := t.pass(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// End shows what has waited, and ends the last line.
func (t *Text) End() error {
	t.pending += plaintext.Lines(t.cut)
	t.cut = ""
	t.show(true)
	if t.begun {
		t.endLine()
	}
	t.fence = ""
	return t.pass()
}

func (t *Text) pass() error {
	text := t.wrap.take()
	if text == "" {
		return nil
	}
	_, err := io.WriteString(t.w, text)
	return err
}

// show shows what can be decided; all if the text has ended.
func (t *Text) show(ended bool) {
	t.wrap.columns = 0
	if t.o.Columns != nil {
		t.wrap.columns = max(t.o.Columns()-1, 0) // the last column stays free: terminals differ in what they do there
	}
	for t.pending != "" {
		line, rest, whole := strings.Cut(t.pending, "\n")
		last := ""
		if !whole && !ended {
			line, last = withoutLast(line)
		}
		if !t.begun && !t.open(&line, whole || ended) {
			return
		}
		if !t.begun { // it has been shown
			t.pending = rest
			continue
		}
		waits := t.text(line, whole || ended)
		if !whole {
			t.pending = waits + last
			break
		}
		t.pending = rest
		t.endLine()
	}
	if ended {
		t.table()
	}
}

// withoutLast splits off the last character, which what arrives next may change.
func withoutLast(text string) (before, last string) {
	begin, next := 0, 0
	for g := displaywidth.StringGraphemes(text); g.Next(); next += len(g.Value()) {
		begin = next
	}
	return text[:begin], text[begin:]
}

// text shows a part of a line, and returns what must wait for more of it.
func (t *Text) text(line string, whole bool) (waits string) {
	pieces := []span{{line, t.style}}
	if t.o.Styled {
		pieces, waits = spans(line, whole, t.style, t.prev)
	}
	for _, p := range pieces {
		t.wrap.put(p)
	}
	if shown := line[:len(line)-len(waits)]; shown != "" {
		t.prev, _ = utf8.DecodeLastRuneInString(shown)
	}
	return waits
}

// endLine ends the line that has begun.
func (t *Text) endLine() {
	t.wrap.flush()
	t.wrap.newline()
	t.begun, t.style, t.prev = false, 0, ' '
}

// start begins a line: its first row and the others have these prefixes.
func (t *Text) start(first, others span, s style) {
	indent := span{strings.Repeat(" ", t.o.Indent), 0}
	t.wrap.prefix = []span{indent, others}
	t.wrap.begin([]span{indent, first})
	t.begun, t.style, t.prev = true, s, ' '
}

// lines shows lines that are complete.
func (t *Text) lines(s style, texts ...string) {
	for _, text := range texts {
		t.start(span{}, span{}, s)
		t.wrap.put(span{text, s})
		t.endLine()
	}
}

// open decides what kind of a line begins, and shows its beginning. It reports false if more of the line must arrive. A line that it
// has shown as a whole has not begun afterwards.
func (t *Text) open(line *string, whole bool) bool {
	if *line == "" && whole && t.fence == "" {
		t.table()
		t.wrap.newline()
		return true
	}
	if !t.o.Styled {
		t.start(span{}, span{}, 0)
		return true
	}
	text := strings.TrimLeft(*line, " ")
	indent := (*line)[:len(*line)-len(text)]
	if t.fence != "" {
		if whole {
			t.codeLine(*line)
		}
		return whole
	}
	if strings.HasPrefix(text, "|") {
		if whole {
			t.row(text)
		}
		return whole
	}
	b, decided := opening(text, whole)
	if !decided {
		return false
	}
	t.table()
	switch {
	case b.fence != "":
		t.fence = b.fence
	case b.rule:
		t.lines(faint, strings.Repeat("─", max(min(t.wrap.columns-t.o.Indent, 40), 3)))
	default:
		if t.wrap.columns > 0 {
			indent = indent[:min(len(indent), t.wrap.columns/3)]
		}
		t.start(span{indent + b.mark, b.markStyle}, span{indent + b.hang, b.markStyle}, b.style)
		*line = text[b.length:]
	}
	return true
}

// codeLine shows a line of a code block, or ends the block. Rows are cut, not wrapped.
func (t *Text) codeLine(line string) {
	if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, t.fence) && strings.Trim(trimmed, t.fence[:1]) == "" {
		t.fence = ""
		return
	}
	line = strings.ReplaceAll(line, "\t", "    ")
	indent := strings.Repeat(" ", t.o.Indent+2)
	for first := true; first || line != ""; first = false {
		row, rest := line, ""
		if t.wrap.columns > 0 {
			row, rest = Cut(line, max(t.wrap.columns-len(indent), wide))
		}
		t.wrap.write([]span{{indent, 0}, {row, code}})
		t.wrap.newline()
		line = rest
	}
}

// beginning is how a line begins.
type beginning struct {
	length     int    // of the markup
	mark, hang string // what is shown before the first row and the others
	markStyle  style
	style      style // of the line
	fence      string
	rule       bool
}

// opening reads the markup at the beginning of a line. It reports false if more of the line must arrive first.
func opening(text string, whole bool) (b beginning, decided bool) {
	if text == "" {
		return b, whole
	}
	n := run(text, 0)
	switch c := text[0]; {
	case strings.Trim(text, "-*_ ") == "" && strings.ContainsAny(text[:1], "-*_"):
		marks := strings.ReplaceAll(text, " ", "")
		b.rule = len(marks) >= 3 && strings.Trim(marks, marks[:1]) == ""
		if !b.rule && len(text) > 1 && text[1] == ' ' {
			b = bullet()
		}
		return b, whole
	case (c == '`' || c == '~') && n >= 3:
		b.fence = text[:n]
		if c == '`' && strings.Contains(text[n:], "`") {
			b.fence = "" // a span of code
		}
		return b, whole
	case n == len(text) && !whole && strings.IndexByte("#+`~", c) >= 0:
		return b, false
	case c == '#' && n <= 6 && n < len(text) && text[n] == ' ':
		b.length, b.style = n+1, strong
		if n == 1 {
			b.style |= link
		}
	case c == '>':
		return quote(text, whole)
	case strings.IndexByte("-*+", c) >= 0 && len(text) > 1 && text[1] == ' ':
		b = bullet()
	case unicode.IsDigit(rune(c)):
		return number(text, whole)
	}
	return b, true
}

func bullet() beginning { return beginning{length: 2, mark: "• ", hang: "  "} }

// deepest is how deep a quotation is shown.
const deepest = 3

func quote(text string, whole bool) (b beginning, decided bool) {
	rest := strings.TrimLeft(text, "> ")
	bars := strings.Repeat("│ ", min(strings.Count(text[:len(text)-len(rest)], ">"), deepest))
	return beginning{length: len(text) - len(rest), mark: bars, hang: bars, markStyle: faint}, rest != "" || whole
}

// longestNumber is the digits of the longest number of a list.
const longestNumber = 4

// number reads the number of a list, such as 12. or 3).
func number(text string, whole bool) (b beginning, decided bool) {
	rest := strings.TrimLeft(text, "0123456789")
	digits := len(text) - len(rest)
	switch {
	case digits > longestNumber:
	case len(rest) < 2 && !whole && strings.Trim(rest, ".)") == "":
		return b, false
	case len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' ':
		mark := text[:digits+2]
		return beginning{length: len(mark), mark: mark, hang: strings.Repeat(" ", len(mark))}, true
	}
	return b, true
}
