package ui

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/store"
)

// newEditor returns an editor that remembers nothing.
func newEditor() *Editor { return NewEditor(&History{hides: func(string) bool { return true }}) }

// Type edits the text as the keys say, and returns what a program has to do, in the order of the keys.
func (e *Editor) Type(p []byte) (events []Event) {
	for _, t := range e.decoder.decode(p) {
		if kind, text, ok := e.press(t); ok {
			events = append(events, Event{kind, text})
		}
	}
	return events
}

// TestKeysArriveInPieces: a key or a character that arrives byte by byte is the same key; a pasted text is never an answer by itself.
func TestKeysArriveInPieces(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"日本\x7f!":                                   "日!",
		"ab\x1b[D\x1bOD\x1b[1;5Cc":                  "abc",
		"\x1b[200~y\r\nn\r\x1b[201~z":               "y\nn\nz",
		"\x1b[200~a\x1b[31mb\x1b[201~":              "a[31mb",
		"a\x1b[999;999;99zb\x1b\x1bbc":              "cab",
		"x\xffy\u202e\u009bz":                       "xyz",
		"one two\x1b\x7fx\x19\x1b<0\x1b>9":          "0one xtwo9",
		"long line\r":                               "",
		"\x1b[200~lost mark\x03new":                 "new",
		"first\nsecond":                             "second",
		"one\\\rtwo\x1b[A\x1b[H0\x1b[B\x1b[4~3":     "0one\ntwo3",
		"abc\x02\x02\x04\x06d\x01\x06\x0b\x15\x19q": "aq",
	} {
		for _, size := range []int{1, 2, 1000} {
			e := newEditor()
			for piece := range slices.Chunk([]byte(keys), size) {
				e.Type(piece)
			}
			if e.Text() != want {
				t.Errorf("%q in pieces of %d: %q, want %q", keys, size, e.Text(), want)
			}
		}
	}
}

// TestDiscard: what was typed before a question is gone, and a paste that goes on is no answer.
func TestDiscard(t *testing.T) {
	t.Parallel()
	e := newEditor()
	e.Type([]byte("y"))
	e.Discard()
	if events := e.Type([]byte("\r")); len(events) != 1 || events[0].Text != "" {
		t.Errorf("%v", events)
	}
	e.Type([]byte("\x1b[200~pasted"))
	e.Discard()
	if events := e.Type([]byte("y\r")); len(events) != 0 || e.Text() != "y\n" && e.Text() != "y" {
		t.Errorf("the rest of a paste is an answer: %v, %q", events, e.Text())
	}
}

// TestHistoryIsBounded: the file is shortened when a history is opened, and broken lines do no harm.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	var lines strings.Builder
	for i := range 2*mostRemembered + 5 {
		lines.WriteString(strconv.Quote(strconv.Itoa(i)) + "\n")
	}
	if err := os.WriteFile(path, []byte(lines.String()+"{broken\n\"new\\u001b[2J\""), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := open(t, path)
	if err != nil || len(h.texts) != mostRemembered || h.texts[mostRemembered-1] != "new[2J" {
		t.Fatalf("%d texts, %v", len(h.texts), err)
	}
	for _, text := range []string{"one", "one", "", strings.Repeat("x", longestRemembered+1), "two\nthree"} {
		if err := h.Add(t.Context(), text); err != nil {
			t.Error(err)
		}
	}
	again, err := open(t, path)
	if err != nil || !slices.Equal(again.texts, h.texts) || !slices.Equal(again.texts[mostRemembered-3:], []string{"new[2J", "one", "two\nthree"}) {
		t.Errorf("%q, %v", again.texts[mostRemembered-3:], err)
	}
	data, err := os.ReadFile(path)
	if n := strings.Count(string(data), "\n"); err != nil || n > mostRemembered+4 {
		t.Errorf("the file has %d lines, %v", n, err)
	}
}

func open(t *testing.T, path string) (*History, error) {
	t.Helper()
	return OpenHistory(t.Context(), store.Disk{Warn: func(string) {}}, path, path+".lock", func(string) bool { return false })
}

// TestHistoryOfTwoPrompts: a text is kept that one prompt adds while another shortens the file.
func TestHistoryOfTwoPrompts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	for range 20 {
		if err := os.WriteFile(path, []byte(strings.Repeat("\"old\"\n", 2*mostRemembered-1)), 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := open(t, path)
		if err == nil {
			err = first.Add(t.Context(), "long enough now")
		}
		opened := make(chan error)
		go func() {
			_, err := open(t, path)
			opened <- err
		}()
		if err := errors.Join(err, first.Add(t.Context(), "new"), <-opened); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(data), "\"new\"\n") || len(data) > 8*(mostRemembered+9) {
			t.Fatalf("%d bytes, which end with %q, %v", len(data), data[max(len(data)-20, 0):], err)
		}
	}
}

// TestUpAfterAnAnswer: the text that was kept after it was entered is the first that Up shows.
func TestUpAfterAnAnswer(t *testing.T) {
	t.Parallel()
	h, err := open(t, filepath.Join(t.TempDir(), "history"))
	if err != nil {
		t.Fatal(err)
	}
	e := NewEditor(h)
	for _, text := range []string{"five", "six"} {
		for _, event := range e.Type([]byte(text + "\r")) {
			if err := h.Add(t.Context(), event.Text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct{ key, want string }{
		{"d", "d"}, {"\x1b[A", "six"}, {"\x1b[A", "five"}, {"\x1b[A", "five"}, {"\x1b[B", "six"}, {"\x1b[B", "d"}, {"\x1b[B", "d"},
	} {
		e.Type([]byte(step.key))
		if e.Text() != step.want {
			t.Errorf("%q: %q, want %q", step.key, e.Text(), step.want)
		}
	}
}

// FuzzEditor: no keys, in whatever pieces, bring the editor or its rows out of order.
func FuzzEditor(f *testing.F) {
	f.Add([]byte("日本語\x7f\x01ab\x1b[200~x\r\n\x1b[201~\x1b[A\x12q\x12\x07"), 3, 10)
	f.Add([]byte("\x1b[200~0000000\t\t\x1b[201~\x1b[A"), 9, 10)
	f.Add([]byte("e\u0301👩‍👩‍👧\x1b[D\x1bd\x19\x0b\x17\\\r\x18\x05\x03"), 1, 4)
	f.Fuzz(func(t *testing.T, keys []byte, size, columns int) {
		if size < 1 || columns < 4 || columns > 1000 {
			return
		}
		e := NewEditor(&History{hides: func(string) bool { return false }, texts: []string{"older", "日本\nquery"}})
		for piece := range slices.Chunk(keys, size) {
			e.Type(piece)
			if e.at < 0 || e.at > len(e.text) || !utf8.ValidString(e.text) || strings.ContainsAny(e.text, "\x1b\x00\r\x7f") {
				t.Fatalf("%q: the cursor is at %d of %q", keys, e.at, e.text)
			}
			rows, row, column := e.view(columns)
			if row < 0 || row >= len(rows) || column < 0 || columns > 8 && column >= columns {
				t.Fatalf("%q: the cursor is in column %d of row %d of %q", keys, column, row, rows)
			}
		}
	})
}
