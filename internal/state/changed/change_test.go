package changed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"pgregory.net/rapid"
)

const run = "20260224T143000.000Z-abcdef"

func newBook(t *testing.T) Book {
	t.Helper()
	return bookAt(t.TempDir())
}

func bookAt(dir string) Book {
	return Book{paths.Dir(dir), store.Disk{Now: func() time.Time { return time.Time{} }, Warn: func(string) {}}}
}

func (b Book) differs(t *testing.T, key, value, want string) {
	t.Helper()
	diff, changed, err := b.Compare(key, []byte(value))
	if !changed || diff != want || err != nil {
		t.Errorf("Compare(%s, %q) = %q, %v, %v, want %q", key, value, diff, changed, err, want)
	}
}

func (b Book) same(t *testing.T, key, value string) {
	t.Helper()
	if diff, changed, err := b.Compare(key, []byte(value)); changed || diff != "" || err != nil {
		t.Errorf("Compare(%s, %q) = %q, %v, %v, want no difference", key, value, diff, changed, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFirstSecondThird(t *testing.T) {
	b := newBook(t)
	b.differs(t, "releases", "v1\nv2", "+ v1\n+ v2\n")
	b.differs(t, "releases", "v1\nv2", "+ v1\n+ v2\n") // comparing commits nothing
	must(t, b.Commit(t.Context(), "releases", []byte("v1\nv2")))
	b.same(t, "releases", "v1\nv2\n")
	b.differs(t, "releases", "v2\nv3\n", "- v1\n+ v3\n")
	b.differs(t, "other", "v1\n", "+ v1\n")
	must(t, b.Commit(t.Context(), "releases", []byte("v2\nv3\n")))
	b.same(t, "releases", "v2\nv3")

	path := b.Home.Path("state", "changed", "releases")
	data, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if string(data) != "v2\nv3\n" || info.Mode() != 0o600 {
		t.Errorf("%q, %v", data, info.Mode())
	}
}

func TestDifference(t *testing.T) {
	var long string
	for i := range 100 {
		long += fmt.Sprintln("line", i)
	}
	for name, tc := range map[string]struct{ old, value, want string }{
		"one line":         {"v1\n", "v2\n", "- v1\n+ v2\n"},
		"a feed":           {"b\nc\nd\n", "a\nb\nc\n", "+ a\n- d\n"},
		"in the middle":    {"a\nb\nc", "a\nB\nc", "- b\n+ B\n"},
		"far apart":        {"1\n" + long + "2\n", "one\n" + long + "two\n", "- 1\n+ one\n- 2\n+ two\n"},
		"everything gone":  {"a\nb\n", "", "- a\n- b\n"},
		"the first lines":  {"", "a\n", "+ a\n"},
		"an empty line":    {"a", "a\n\n", "+ \n"},
		"only white space": {"a ", "a", "- a \n+ a\n"},
		"CRLF":             {"a\r\n", "a\n", "- a\r\n+ a\n"},
		"like a diff":      {"--- a\n+++ b\n@@ x\n", "--- a\n+++ c\n@@ x\n", "- +++ b\n+ +++ c\n"},
		"not text":         {"\x00\xff", "\x00\xfe", "- \x00\xff\n+ \x00\xfe\n"},
		"order":            {"a\nb\n", "b\na\n", "- a\n+ a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			must(t, b.Commit(t.Context(), "k", []byte(tc.old)))
			diff, changed, err := b.Compare("k", []byte(tc.value))
			if !changed || err != nil {
				t.Fatalf("%v, %v", changed, err)
			}
			if diff != tc.want {
				t.Errorf("got %q, want %q", diff, tc.want)
			}
		})
	}
}

func TestOneNewlineAtTheEndIsNoDifference(t *testing.T) {
	for _, tc := range []struct {
		old, value string
		same       bool
	}{
		{"a", "a\n", true}, {"a\n", "a", true}, {"", "\n", true}, {"\n", "", true}, {"", "", true},
		{"a\n", "a\n\n", false}, {"\n", "\n\n", false}, {"a\n", "\na\n", false},
	} {
		b := newBook(t)
		must(t, b.Commit(t.Context(), "k", []byte(tc.old)))
		if _, changed, err := b.Compare("k", []byte(tc.value)); changed == tc.same || err != nil {
			t.Errorf("%q, then %q: changed %v, %v", tc.old, tc.value, changed, err)
		}
	}
}

// The first value differs also when it has no lines, or it would never be committed.
func TestFirstEmptyValue(t *testing.T) {
	b := newBook(t)
	b.differs(t, "k", "", "")
	must(t, b.Commit(t.Context(), "k", nil))
	b.same(t, "k", "")
}

// Take away the lines that are gone, add those that are new: that is the new value, except for the order.
func TestDifferenceIsComplete(t *testing.T) {
	b := newBook(t)
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "-", "+ d", "", "@@", "\\ e"}), 0, 30).Draw(t, "lines"), "\n")
	})
	rapid.Check(t, func(t *rapid.T) {
		old, value := text.Draw(t, "old"), text.Draw(t, "value")
		if err := b.Commit(context.Background(), "k", []byte(old)); err != nil {
			t.Fatal(err)
		}
		diff, changed, err := b.Compare("k", []byte(value))
		if err != nil || changed != (strings.TrimSuffix(old, "\n") != strings.TrimSuffix(value, "\n")) {
			t.Fatalf("%v, %v", changed, err)
		}
		count := map[string]int{}
		for line := range strings.Lines(string(lines([]byte(old)))) {
			count[line]++
		}
		for line := range strings.Lines(diff) {
			count[line[2:]] += map[string]int{"- ": -1, "+ ": 1}[line[:2]]
		}
		for line := range strings.Lines(string(lines([]byte(value)))) {
			count[line]--
		}
		for line, n := range count {
			if n != 0 {
				t.Errorf("%q: %d too many in %q", line, n, diff)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	b := newBook(t)
	for key, good := range map[string]bool{
		"a": true, "A-b_c.9": true, "0": true, strings.Repeat("k", 64): true, "a..b": true,
		"": false, ".": false, "..": false, ".a": false, "-a": false, "_a": false, "a/b": false, "../a": false, "a b": false, "a\n": false,
		"ä": false, "a\x00": false, strings.Repeat("k", 65): false,
	} {
		_, _, err := b.Compare(key, nil)
		for _, err := range []error{err, b.Commit(t.Context(), key, nil), b.Propose(t.Context(), run, key, nil)} {
			if good && err != nil || !good && !errors.Is(err, ErrKey) {
				t.Errorf("%q: %v", key, err)
			}
		}
	}
}

func TestValueSize(t *testing.T) {
	b := newBook(t)
	most := bytes.Repeat([]byte("0123456\n"), MaxValue/8)
	must(t, b.Commit(t.Context(), "k", most))
	b.same(t, "k", string(most))
	more := append(bytes.Clone(most), 'x')
	_, _, err := b.Compare("k", more)
	for _, err := range []error{err, b.Commit(t.Context(), "k", more), b.Propose(t.Context(), run, "k", more)} {
		if !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
	}
	b.same(t, "k", string(most))
}

// routine is a job with keys of its own.
var routine = Job{"routine", "news-1"}

// kept checks the committed value of a key of the job; "" is none.
func (b Book) kept(t *testing.T, key, want string) {
	t.Helper()
	value, err := os.ReadFile(b.Home.State("changed", "@routine-news-1", key))
	if string(value) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %q, %v, want %q", key, value, err, want)
	}
}

func TestProposalsOfARun(t *testing.T) {
	b := newBook(t)
	must(t, b.CommitRun(t.Context(), run, routine)) // no record at all
	must(t, b.Commit(t.Context(), "a", []byte("1")))
	must(t, b.Propose(t.Context(), run, "a", []byte("2")))
	must(t, b.Propose(t.Context(), run, "a", []byte("3")))
	must(t, b.Propose(t.Context(), run, "b", []byte("x")))
	must(t, b.Propose(t.Context(), run+"0", "b", []byte("of another run")))
	b.kept(t, "a", "")
	must(t, os.WriteFile(b.Home.Run(run, "changed", ".a.tmp-1"), []byte("torn"), 0o600)) // of one that was killed

	must(t, b.CommitRun(t.Context(), run, routine))
	b.kept(t, "a", "3")
	b.kept(t, "b", "x")
	b.same(t, "a", "1")
	if names := entries(t, b.Home.State("changed")); names != "@routine-news-1 a" {
		t.Errorf("committed %s", names)
	}
	must(t, os.WriteFile(b.Home.State("changed", "@routine-news-1", "a"), []byte("4"), 0o600))
	must(t, b.CommitRun(t.Context(), run, routine))
	b.kept(t, "a", "4")
}

// A job compares with its own value. It takes the owner's where it has none and had that one before, and leaves it to the owner.
func TestKeysOfAJob(t *testing.T) {
	b := newBook(t)
	must(t, b.Commit(t.Context(), "tag", []byte("v1")))
	compare := func(j Job, value string, taken bool, want string) {
		t.Helper()
		diff, differs, err := b.CompareOf(j, "tag", []byte(value), taken)
		if diff != want || differs != (want != "") || err != nil {
			t.Errorf("%v: %q, %v, %v, want %q", j, diff, differs, err, want)
		}
	}
	other := Job{"reminder", "news-1"}
	compare(routine, "v1", true, "")
	compare(routine, "v2", true, "- v1\n+ v2\n")
	compare(other, "v1", false, "+ v1\n")
	must(t, b.Propose(t.Context(), run, "tag", []byte("v2")))
	must(t, b.CommitRun(t.Context(), run, routine))
	compare(routine, "v2", true, "")
	compare(routine, "v1", true, "- v2\n+ v1\n")
	compare(other, "v2", false, "+ v2\n")
	b.same(t, "tag", "v1")

	must(t, b.Hand(t.Context(), routine, other))
	must(t, b.Hand(t.Context(), routine, other)) // there is nothing left
	compare(other, "v2", false, "")
	compare(routine, "v2", false, "+ v2\n")
	if _, _, err := b.CompareOf(routine, "../x", nil, true); !errors.Is(err, ErrKey) {
		t.Errorf("%v", err)
	}
}

// The values of a job that is gone are removed when they are old.
func TestPrune(t *testing.T) {
	b := newBook(t)
	must(t, b.Commit(t.Context(), "news-1", []byte("1")))
	old := time.Now().Add(-time.Hour)
	for _, j := range []Job{routine, {"routine", "kept"}, {"reminder", "fresh"}} {
		must(t, b.Propose(t.Context(), run, "a", nil))
		must(t, b.CommitRun(t.Context(), run, j))
		if j.ID != "fresh" {
			must(t, os.Chtimes(b.of(j, ""), old, old))
		}
	}
	must(t, b.Prune(t.Context(), old.Add(time.Minute), func(id string) bool { return id == "kept" }))
	if names := entries(t, b.Home.State("changed")); names != "@reminder-fresh @routine-kept news-1" {
		t.Errorf("left %s", names)
	}
}

func TestNames(t *testing.T) {
	for line, want := range map[string]bool{
		"curl x | ollim changed tag": true, "ollim changed --allow-empty 'tag' && echo": true, `run(["ollim", "changed", "tag"])`: true, "Bash(ollim changed tag)": true,
		"x\nollim changed tag\ny": true, "ollim changed tags": false, "ollim changed my.tag": false, "ollim changed my-tag": false, "ollim changed \ntag": false,
		"echo tag": false, "unchanged tag": false, "ollim changed tag2; echo tag": true, "tag changed": false,
	} {
		if got := Names([]byte(line), "tag"); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// What could not be committed is committed by a second call.
func TestCommitRunAgain(t *testing.T) {
	b := newBook(t)
	must(t, b.Propose(t.Context(), run, "a", []byte("1")))
	must(t, b.Propose(t.Context(), run, "b", []byte("2")))
	must(t, os.MkdirAll(b.of(routine, "b"), 0o700))
	var failed *store.NotWritten
	if err := b.CommitRun(t.Context(), run, routine); !errors.As(err, &failed) {
		t.Errorf("%v, want *store.NotWritten", err)
	}
	var unreadable *fs.PathError
	if _, _, err := b.CompareOf(routine, "b", nil, true); !errors.As(err, &unreadable) {
		t.Errorf("%v, want *fs.PathError", err)
	}
	b.kept(t, "a", "1")
	must(t, os.Remove(b.of(routine, "b")))
	must(t, b.CommitRun(t.Context(), run, routine))
	b.kept(t, "b", "2")
}
