package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
)

func TestAppendAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "f.jsonl")
	for i, d := range []store.Durability{store.Synced, store.Buffered, store.Synced} {
		if err := store.AppendJSON(path, d, entry{i, "a\nb <&> ☃ \u2028"}); err != nil {
			t.Fatal(err)
		}
	}
	permissions(t, path, 0o600)
	permissions(t, filepath.Dir(path), 0o700)
	const line = `{"n":0,"text":"a\nb <&> ☃ \u2028"}` + "\n"
	if got := read(t, path); got != line+strings.Replace(line, "0", "1", 1)+strings.Replace(line, "0", "2", 1) {
		t.Errorf("%s", got)
	}
	if got, bad := numbers(t, path); !slices.Equal(got, []int{0, 1, 2}) || bad != 0 {
		t.Errorf("%v, %d bad", got, bad)
	}
	if err := store.AppendJSON(path, store.Synced, func() {}); !errors.As(err, new(*store.NotWritten)) {
		t.Errorf("what is no JSON: %v", err)
	}
	if err := store.AppendJSON(filepath.Dir(path), store.Synced, entry{}); !errors.As(err, new(*store.NotWritten)) {
		t.Errorf("to a folder: %v", err)
	}
}

func TestTornAndMalformedLines(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		want  []int // and a new one, 9
		bad   int
		after string // what the append makes of the text
	}{
		"empty":            {"", []int{9}, 0, ""},
		"whole":            {"{\"n\":1}\n", []int{1, 9}, 0, "{\"n\":1}\n"},
		"unended, whole":   {"{\"n\":1}", []int{1, 9}, 0, "{\"n\":1}\n"},
		"torn":             {"{\"n\":1}\n{\"n\":2", []int{1, 9}, 1, "{\"n\":1}\n{\"n\":2\n"},
		"torn in a rune":   {"{\"n\":1,\"text\":\"\xe2\x98", []int{9}, 1, "{\"n\":1,\"text\":\"\xe2\x98\n"},
		"malformed":        {"{\"n\":1}\nnonsense\n{\"n\":3}\n", []int{1, 3, 9}, 1, "{\"n\":1}\nnonsense\n{\"n\":3}\n"},
		"of another shape": {"[1]\n{\"n\":\"2\"}\n5\n{\"n\":3}\n", []int{3, 9}, 3, "[1]\n{\"n\":\"2\"}\n5\n{\"n\":3}\n"},
		"two in a line":    {"{\"n\":1}{\"n\":2}\n", []int{9}, 1, "{\"n\":1}{\"n\":2}\n"},
		"zeros":            {"{\"n\":1}\n\x00\x00\x00\n", []int{1, 9}, 1, "{\"n\":1}\n\x00\x00\x00\n"},
		"blank, crlf":      {"\n  \n{\"n\":1}\r\n\r\n", []int{1, 9}, 0, "\n  \n{\"n\":1}\r\n\r\n"},
		"long":             {"{\"text\":\"" + strings.Repeat("x", 1<<20) + "\",\"n\":1}\n", []int{1, 9}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.jsonl")
			write(t, path, tc.text)
			before := tc.want[:len(tc.want)-1]
			if got, bad := numbers(t, path); !slices.Equal(got, before) || bad != tc.bad {
				t.Errorf("%v and %d bad, want %v and %d", got, bad, before, tc.bad)
			}
			if err := store.AppendJSON(path, store.Synced, entry{N: 9}); err != nil {
				t.Fatal(err)
			}
			if got, bad := numbers(t, path); !slices.Equal(got, tc.want) || bad != tc.bad {
				t.Errorf("after an append %v and %d bad, want %v and %d", got, bad, tc.want, tc.bad)
			}
			if got := read(t, path); tc.after != "" && got != tc.after+"{\"n\":9}\n" {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestLines(t *testing.T) {
	dir := t.TempDir()
	for range store.Lines[entry](filepath.Join(dir, "none"), nil) {
		t.Error("a file that is not there has a line")
	}
	var errs []error
	for e, err := range store.Lines[entry](dir, nil) {
		errs = append(errs, err)
		if e != (entry{}) {
			t.Errorf("%v beside an error", e)
		}
	}
	if len(errs) != 1 || errs[0] == nil || errors.Is(errs[0], fs.ErrNotExist) {
		t.Errorf("of a folder: %v", errs)
	}
	path := filepath.Join(dir, "f.jsonl")
	write(t, path, "{\"n\":1}\nx\n{\"n\":2}\n{\"n\":3}\n")
	for e, err := range store.Lines[entry](path, nil) { // without counting, stopping early
		if err != nil || e.N > 2 {
			t.Errorf("%v, %v", e, err)
		}
		if e.N == 2 {
			break
		}
	}
}

// FuzzLines cuts a file of lines at any point, reads it, appends to it and reads again.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"n\":1}\n{\"n\":2,\"text\":\"a\\nb\"}\n\nnull\n"), uint16(12))
	f.Add([]byte("{\"n\":1}\r\n[]\n\x00\n{\"n\":3}"), uint16(30))
	f.Add([]byte("\xff\n{}\n\"\u2028\"\n"), uint16(0))
	path := filepath.Join(f.TempDir(), "f.jsonl")
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		data = data[:min(int(cut), len(data))]
		write(t, path, string(data))
		want, wantBad := oracle(data)
		check := func() {
			t.Helper()
			got, bad := []entry(nil), 0
			for e, err := range store.Lines[entry](path, &bad) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if !reflect.DeepEqual(got, want) || bad != wantBad {
				t.Fatalf("%q: %v and %d bad, want %v and %d", data, got, bad, want, wantBad)
			}
		}
		check()
		last := entry{N: 7, Text: string(data)}
		if err := store.AppendJSON(path, store.Buffered, last); err != nil {
			t.Fatal(err)
		}
		last.Text = strings.ToValidUTF8(last.Text, "\ufffd")
		if last.Text != string(data) { // a run of bytes that are not UTF-8 becomes as many marks
			return
		}
		want = append(want, last)
		check()
	})
}

// oracle reads lines in the plainest way.
func oracle(data []byte) (list []entry, bad int) {
	for _, line := range bytes.Split(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var e entry
		if json.Unmarshal(line, &e) != nil {
			bad++
			continue
		}
		list = append(list, e)
	}
	return list, bad
}

// Every prefix of a real file gives the whole lines in it, and at most one bad.
func TestEveryPrefix(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.jsonl")
	for i := range 5 {
		if err := store.AppendJSON(path, store.Buffered, entry{i, fmt.Sprint("text ", i, " ☃")}); err != nil {
			t.Fatal(err)
		}
	}
	text := read(t, path)
	for cut := range len(text) + 1 {
		if err := os.WriteFile(path, []byte(text[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		ended := strings.Count(text[:cut], "\n")
		got, bad := numbers(t, path)
		whole := len(got) == ended || len(got) == ended+1 && text[cut] == '\n'
		if !whole || len(got)+bad > ended+1 || !slices.IsSorted(got) {
			t.Fatalf("cut at %d: %v and %d bad of %d whole lines", cut, got, bad, ended)
		}
	}
}
