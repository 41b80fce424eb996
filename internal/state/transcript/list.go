package transcript

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Summary is one transcript in a list.
type Summary struct {
	Transcript
	Modified time.Time `json:"modified"`
	Size     int64     `json:"size"`            // bytes
	First    string    `json:"first,omitempty"` // what the user said first, on one line, shortened
	Last     string    `json:"last,omitempty"`  // the last text of any role, likewise
}

const (
	tailBytes = 256 << 10 // bytes that are read from the end of a file
	longest   = 200       // bytes in First and Last
)

// ownWords returns what a person wrote of a user's message, without additions of a program such as the time at its beginning. nil returns
// the whole message.
type ownWords func(text string) string

// of returns the words of a message.
func (w ownWords) of(m Message) string {
	text := m.Text()
	if w != nil && m.Role == User {
		text = w(text)
	}
	return strings.TrimSpace(text)
}

// List summarizes the transcripts about the directory cwd, or all if cwd is "", the last modified first. It reads only the beginning and
// the end of each. skipped counts files that are unreadable or not transcripts.
func (d Dir) List(cwd string, said ownWords) (list []Summary, skipped int, err error) {
	all, err := d.newest(cwd)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range all {
		s, err := summary(f, said)
		if err != nil {
			skipped++
		} else if s.about(cwd) {
			list = append(list, s)
		}
	}
	return list, skipped, nil
}

func summary(of file, said ownWords) (Summary, error) {
	f, err := openFile(of.path)
	if err != nil {
		return Summary{}, err
	}
	defer func() { _ = f.Close() }()
	t, head, err := readHead(f)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Transcript: t, Modified: of.modified, Size: of.size, First: firstText(head, said)}
	s.Last, err = lastText(f, of.size, said)
	return s, err
}

// firstText returns the first text, even if head ends within its line.
func firstText(head []byte, said ownWords) string {
	head = bytes.ToValidUTF8(head, nil) // head may end within a character
	for line := range bytes.Lines(head) {
		if line[len(line)-1] != '\n' {
			return shorten(said.of(Said(User, beginning(line))))
		}
		if e, _, _ := decode(line); e.Message.Role == User && said.of(e.Message) != "" {
			return shorten(said.of(e.Message))
		}
	}
	return ""
}

// beginning returns the first text of a user's message from a line that was cut.
func beginning(line []byte) string {
	for _, key := range []string{`"role":"user","content":"`, `"role":"user","content":[{"type":"text","text":"`} {
		_, rest, found := bytes.Cut(line, []byte(key))
		for cut := 0; found && cut <= min(len(rest), len(`\u0000`)); cut++ { // the line may end within an escape sequence
			var text string
			if json.Unmarshal(slices.Concat([]byte(`"`), rest[:len(rest)-cut], []byte(`"`)), &text) == nil {
				return text
			}
		}
	}
	return ""
}

// lastText searches the last lines for a text.
func lastText(f *os.File, size int64, said ownWords) (string, error) {
	for line, err := range store.Backward(f, max(0, size-tailBytes), size) {
		if err != nil {
			return "", err
		}
		if e, _, _ := decode(line); said.of(e.Message) != "" {
			return shorten(said.of(e.Message)), nil
		}
	}
	return "", nil
}

// shorten returns a text as one line, with an ellipsis where it was cut.
func shorten(text string) string {
	head := text[:min(len(text), 4*longest)] // more than is needed, because white space and control characters are removed
	line := plaintext.Line(head)
	if len(line) <= longest && len(head) == len(text) {
		return line
	}
	return strings.ToValidUTF8(line[:min(longest, len(line))], "") + "…"
}
