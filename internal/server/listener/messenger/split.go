package messenger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes of messages, in UTF-16 units.
const (
	spare    = 10 // left free in each part of a text
	maxParts = 4  // then the text is attached as a file
	maxInfo  = 40 // of an info string that is repeated
	maxNonce = 24
)

// fence is the line that begins and ends a code block.
const fence = "```"

// Parts returns the messages that carry o, in order, each with a nonce that id determines. A text that would need more than four
// messages is in a file, after the first three parts of it, if the messenger carries files. Files and buttons are in the last message,
// the reply is in the first.
func Parts(id string, o Outgoing, able Able) []Outgoing {
	texts := Split(o.Text, able.Text)
	var files [][]byte
	if len(texts) > maxParts && able.File > 0 {
		texts, files = texts[:maxParts-1], bytesOf(o.Text, able.File)
	}
	var parts []Outgoing
	for _, text := range texts {
		parts = append(parts, Outgoing{Text: text})
	}
	for i, data := range files {
		name := "answer.md"
		if i > 0 {
			name = fmt.Sprintf("answer-%d.md", i+1)
		}
		parts = append(parts, Outgoing{
			Text: able.Style.Small + "The whole text is in " + name + ".", Files: []File{{name, "text/markdown; charset=utf-8", data}},
		})
	}
	if len(parts) == 0 {
		parts = []Outgoing{{}}
	}
	last := &parts[len(parts)-1]
	last.Embed, last.Buttons, last.Files = o.Embed, o.Buttons, append(last.Files, o.Files...)
	parts[0].ReplyTo = o.ReplyTo
	for i := range parts {
		parts[i].Silent, parts[i].Nonce = o.Silent, nonce(cmp.Or(o.Nonce, id), i)
	}
	return parts
}

// Answer returns the id for Parts, and so the nonces, of the answer to a message. Another process that sends a part again, because it does not
// know whether an earlier one has, gets the message that is there.
func Answer(to string) string { return "answer-" + to }

// AnswerNonce returns the nonce of the n-th message that shows the answer to a message.
func AnswerNonce(to string, n int) string { return nonce(Answer(to), n) }

// nonce returns the nonce of the n-th part of a message, the same one whenever it is asked.
func nonce(id string, n int) string {
	sum := sha256.Sum256([]byte(id + " " + strconv.Itoa(n)))
	return base32.StdEncoding.EncodeToString(sum[:])[:maxNonce]
}

// bytesOf returns a text in pieces of at most so many bytes.
func bytesOf(text string, most int) (pieces [][]byte) {
	data := []byte(text)
	for len(data) > most {
		n := most
		for n > most-utf8.UTFMax && !utf8.RuneStart(data[n]) {
			n--
		}
		pieces, data = append(pieces, bytes.Clone(data[:n])), data[n:]
	}
	return append(pieces, data)
}

// Split returns a text in parts that fit a message of so many units each: cut after a paragraph, a line, a sentence or a word if possible. A code
// block that is cut is closed, and opened again with its info string; its last part is closed even if the text leaves it open. Parts
// of white space alone, which messengers refuse, are left out.
func Split(text string, most int) []string {
	var parts []string
	for _, p := range split(text, most-spare) {
		if strings.TrimSpace(p.text) != "" {
			parts = append(parts, p.open+p.text+p.end)
		}
	}
	return parts
}

// part is a part of a text, with the lines that were added to it.
type part struct{ open, text, end string }

func split(text string, most int) (parts []part) {
	block := "" // the line that opened the code block which text begins in
	for text != "" {
		p := part{text: text}
		if block != "" {
			p.open = block + "\n"
		}
		space := most - Size(p.open)
		if left, _ := blockAfter(block, text); block != "" && left != "" {
			p.end = closing(text)
		}
		if Size(text)+Size(p.end) <= space {
			return append(parts, p)
		}
		n := cut(text, space-Size("\n"+fence))
		after, opened := blockAfter(block, text[:n])
		if after != "" && opened > 0 && strings.TrimSpace(text[opened:n]) == strings.TrimSpace(after) { // not a block without a line
			n = opened
			after, _ = blockAfter(block, text[:n])
		}
		p.text, text, p.end = text[:n], text[n:], ""
		if block = ""; after != "" {
			p.end, block = closing(p.text), reopening(after)
		}
		parts = append(parts, p)
	}
	return parts
}

// reopening returns the line that opens a code block again. What a messenger takes for text of the block is not repeated.
func reopening(opened string) string {
	info := strings.TrimSpace(strings.TrimPrefix(opened, fence))
	isText := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_+-.#", r)
	}
	if Size(info) > maxInfo || strings.ContainsFunc(info, isText) {
		return fence
	}
	return fence + info
}

// closing returns what closes the code block that text ends in.
func closing(text string) string {
	if strings.HasSuffix(text, "\n") {
		return fence
	}
	return "\n" + fence
}

// Closed returns a text in which no code block is left open.
func Closed(text string) string {
	if block, _ := blockAfter("", text); block == "" {
		return text
	}
	return text + closing(text)
}

// blockAfter returns the line that opened the code block which text ends in, "" for none, and where in text it begins. before is
// that of the block which text begins in.
func blockAfter(before, text string) (block string, at int) {
	block, at = before, -1
	pos := 0
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		if rest, isFence := strings.CutPrefix(trimmed, fence); isFence {
			switch {
			case block != "":
				block, at = "", -1
			case !strings.Contains(rest, fence): // else a block of one line
				block, at = trimmed, pos
			}
		}
		pos += len(line)
	}
	return block, at
}

// cut returns where to cut a text so that the first part has at most so many units.
func cut(text string, most int) int {
	n := prefix(text, most)
	window := text[:n]
	for _, ends := range [][]string{{"\n\n"}, {"\n"}, {". ", "! ", "? ", "。"}, {" ", "\t"}} {
		best := 0
		for _, end := range ends {
			if i := strings.LastIndex(window, end); i >= 0 {
				best = max(best, i+len(end))
			}
		}
		if best > n/3 {
			return best
		}
	}
	return whole(text, n)
}

// prefix returns the largest number of bytes, at the boundary of a character, that have at most so many units; at least one
// character.
func prefix(text string, most int) int {
	units := 0
	for i, r := range text {
		if units += unitsOf(r); units > most && i > 0 {
			return i
		}
	}
	return len(text)
}

// whole moves a cut to before the character that it would take apart, such as a letter with its accent.
func whole(text string, n int) int {
	joiner := func(r rune) bool { return r == '\u200d' || unicode.Is(unicode.M, r) }
	for i := n; i > n-64 && i > 0; {
		next, _ := utf8.DecodeRuneInString(text[i:])
		last, size := utf8.DecodeLastRuneInString(text[:i])
		if !joiner(next) && last != '\u200d' {
			return i
		}
		i -= size
	}
	return n
}

// Size returns how much of Able.Text a text takes: its UTF-16 units, of which there are never fewer than characters.
func Size(text string) (units int) {
	for _, r := range text {
		units += unitsOf(r)
	}
	return units
}

func unitsOf(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}
