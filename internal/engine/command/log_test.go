package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log keeps the beginning and the end, and says how much is missing between them.
func TestLog(t *testing.T) {
	for name, c := range map[string]struct {
		before, write string
		want          string
		leftOut       int64
	}{
		"short":       {"", "abc", "abc", 0},
		"full":        {"", strings.Repeat("x", 10), strings.Repeat("x", 10), 0},
		"a little":    {"", strings.Repeat("x", 12), strings.Repeat("x", 12), 0},
		"far over":    {"", strings.Repeat("x", 5000) + "the end", strings.Repeat("x", 10) + "\n[2949 bytes omitted]\n" + strings.Repeat("x", tailBytes-7) + "the end", 2949},
		"second time": {"12345678", "abcd", "12345678abcd", 0},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		l := &Log{file: f, most: 10}
		for part := range strings.SplitSeq(c.write, "") {
			if n, err := l.Write([]byte(part)); n != 1 || err != nil {
				t.Fatalf("%s: %d, %v", name, n, err)
			}
		}
		if !strings.HasSuffix(c.write, l.Last()) || len(l.Last()) != min(len(c.write), tailBytes) {
			t.Errorf("%s: tail of %d bytes", name, len(l.Last()))
		}
		leftOut, err := l.Close()
		got, _ := os.ReadFile(path)
		if leftOut != c.leftOut || err != nil || string(got) != c.want {
			t.Errorf("%s: %d left out, %v:\n%s", name, leftOut, err, got)
		}
	}
}

// TestLogOfAFullDisk: what the file does not take is counted, and is no error, which would end the engine.
func TestLogOfAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // not for writing
	if err != nil {
		t.Fatal(err)
	}
	l := &Log{file: f, most: 100}
	for range 2 {
		if n, err := l.Write([]byte("abc")); n != 3 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if leftOut, err := l.Close(); leftOut != 6 || err != nil || l.Last() != "abcabc" {
		t.Errorf("%d left out, %v, %q", leftOut, err, l.Last())
	}
}
