package ui

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is a set of attributes of a text.
type style uint8

const (
	strong style = 1 << iota
	emphasis
	code
	link
	faint
	deleted
)

// sequence returns what begins the style on a terminal, "" for none.
func (s style) sequence() string {
	var out strings.Builder
	for i, attribute := range []string{bold, italic, cyan, underline, dim, struck} {
		if s&(1<<i) != 0 {
			out.WriteString(attribute)
		}
	}
	return out.String()
}

// span is a text in one style.
type span struct {
	text  string
	style style
}

// longestSpan is the number of bytes within which markup must be closed. A longer text between two asterisks is shown as typed: it
// would be held back until the second one.
const longestSpan = 400

// inline is the state of a reader of the markup within a line.
type inline struct {
	text  string
	whole bool // the text is the rest of its line
	style style
	prev  rune // the character before the text
	out   []span
}

// spans reads the markup in a text, and returns its pieces and the rest that can be read when more has arrived. A text that is whole
// has no rest. Markup that is not closed stays as it was typed.
func spans(text string, whole bool, s style, prev rune) (pieces []span, rest string) {
	in := inline{text: text, whole: whole, style: s, prev: prev}
	for at := 0; at < len(text); {
		next := strings.IndexAny(text[at:], "\\`*_~[")
		if next < 0 {
			in.add(text[at:], s)
			return in.out, ""
		}
		in.add(text[at:at+next], s)
		at += next
		n, ok := in.markup(at)
		if !ok {
			return in.out, text[at:]
		}
		if n == 0 { // it is no markup
			n = run(text, at)
			in.add(text[at:at+n], s)
		}
		at += n
	}
	return in.out, ""
}

func (in *inline) add(text string, s style) {
	if text != "" {
		in.out = append(in.out, span{text, s})
	}
}

// markup reads the markup that may begin at a place, and returns its length; 0 if there is none. It reports false if more of the line
// must arrive first.
func (in *inline) markup(at int) (length int, ok bool) {
	n := run(in.text, at)
	if at+n == len(in.text) && !in.whole {
		return 0, false
	}
	switch c := in.text[at]; c {
	case '\\':
		if n == 1 && at+1 < len(in.text) && isPunctuation(in.text[at+1]) {
			in.add(in.text[at+1:at+2], in.style)
			return 2, true
		}
		return 0, true
	case '[':
		return in.link(at)
	default:
		return in.span(at, n, c)
	}
}

// run returns how often the mark at a place, an ASCII character, is repeated.
func run(text string, at int) int {
	return len(text) - at - len(strings.TrimLeft(text[at:], text[at:at+1]))
}

func isPunctuation(b byte) bool {
	return b > ' ' && b < utf8.RuneSelf && !unicode.IsLetter(rune(b)) && !unicode.IsDigit(rune(b))
}

// span reads a text between two equal marks.
func (in *inline) span(at, n int, c byte) (length int, ok bool) {
	of, opens := styleOf(c, n)
	if !opens || !in.opens(at, n, c) {
		return 0, true
	}
	begin := at + n
	for end := begin; end < min(len(in.text), begin+longestSpan); {
		if in.text[end] != c {
			end++
			continue
		}
		found := run(in.text, end)
		if end+found == len(in.text) && !in.whole {
			return 0, false
		}
		if stop := in.closes(begin, end, n, found, c); stop > 0 {
			in.inside(in.text[begin:stop], of, c)
			return stop + n - at, true
		}
		end += found
	}
	return 0, in.whole || len(in.text) >= begin+longestSpan
}

func styleOf(c byte, n int) (s style, ok bool) {
	switch {
	case c == '`':
		return code, true
	case c == '~':
		return deleted, n == 2
	case n > 3:
		return 0, false
	}
	return []style{emphasis, strong, strong | emphasis}[n-1], true
}

// opens reports whether marks may begin a span: a word follows them, and underscores are not within a word.
func (in *inline) opens(at, n int, c byte) bool {
	if c == '`' {
		return true
	}
	before, after := in.prev, ' '
	if at > 0 {
		before, _ = utf8.DecodeLastRuneInString(in.text[:at])
	}
	if at+n < len(in.text) {
		after, _ = utf8.DecodeRuneInString(in.text[at+n:])
	}
	return !unicode.IsSpace(after) && (c != '_' || !ofWord(before))
}

// closes returns where the text of a span ends if found marks at end close it, else 0.
func (in *inline) closes(begin, end, n, found int, c byte) int {
	stop := end
	if found == 3 && n < 3 && c != '`' {
		stop += 3 - n // the other marks belong to a span within
	} else if found != n {
		return 0
	}
	last, _ := utf8.DecodeLastRuneInString(in.text[begin:end])
	after, _ := utf8.DecodeRuneInString(in.text[end+found:])
	if end == begin || c != '`' && unicode.IsSpace(last) || c == '_' && ofWord(after) {
		return 0
	}
	return stop
}

func (in *inline) inside(text string, s style, c byte) {
	if c == '`' {
		if trimmed := strings.TrimSuffix(strings.TrimPrefix(text, " "), " "); len(trimmed) == len(text)-2 && trimmed != "" {
			text = trimmed
		}
		in.add(text, in.style|s)
		return
	}
	pieces, _ := spans(text, true, in.style|s, rune(c))
	in.out = append(in.out, pieces...)
}

// link reads [TEXT](ADDRESS). Both are shown: a text that hides where a link leads could deceive.
func (in *inline) link(at int) (length int, ok bool) {
	undecided := in.whole || len(in.text) >= at+longestSpan
	window := in.text[at+1 : min(len(in.text), at+longestSpan)]
	end := strings.IndexByte(window, ']')
	if end < 0 || end+1 == len(window) {
		return 0, undecided
	}
	if end == 0 || window[end+1] != '(' {
		return 0, true
	}
	address := window[end+2:]
	stop := strings.IndexAny(address, ") ")
	if stop < 0 {
		return 0, undecided
	}
	if address[stop] == ' ' || stop == 0 {
		return 0, true
	}
	text, address := window[:end], address[:stop]
	pieces, _ := spans(text, true, in.style|link, '[')
	in.out = append(in.out, pieces...)
	if address != text {
		in.add(" ("+address+")", in.style|faint)
	}
	return 1 + end + 2 + stop + 1, true
}
