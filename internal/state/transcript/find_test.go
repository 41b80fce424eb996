package transcript_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/transcript"
)

// about begins a transcript about a directory that was changed so many hours after noon.
func about(t *testing.T, sessions, id, cwd string, hours int) transcript.Transcript {
	t.Helper()
	h := header(id)
	h.Cwd = cwd
	made, err := transcript.Dir(sessions).Create(h)
	if err != nil {
		t.Fatal(err)
	}
	touch(t, made.Path, hours)
	return made
}

func touch(t *testing.T, path string, hours int) {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, noon.Add(time.Duration(hours)*time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	sessions := t.TempDir()
	a := about(t, sessions, "n-abc", "/x", 0)
	about(t, sessions, "n-abd", "/y", 0)
	under := about(t, sessions, "b_n-abc", "/x", 0)
	for id, want := range map[string]string{"n-abc": a.Path, "b_n-abc": under.Path, "n-ab": "", "": "", "../x": "", "*": ""} {
		got, err := transcript.Dir(sessions).Find(id)
		if got.Path != want || (want == "") != errors.Is(err, transcript.ErrUnknown) {
			t.Errorf("%q: %q, %v", id, got.Path, err)
		}
	}
	for prefix, want := range map[string]string{"n-abc": a.Path, "b": under.Path, "b_n-abc": under.Path, "n-x": "", "": ""} {
		got, err := transcript.Dir(sessions).FindPrefix(prefix)
		if got.Path != want || (want == "") != errors.Is(err, transcript.ErrUnknown) {
			t.Errorf("prefix %q: %q, %v", prefix, got.Path, err)
		}
	}
	_, err := transcript.Dir(sessions).FindPrefix("n-a")
	if !errors.Is(err, transcript.ErrAmbiguous) || !strings.HasSuffix(err.Error(), "n-abc, n-abd") {
		t.Errorf("%v", err)
	}
	for i := range 20 {
		about(t, sessions, fmt.Sprintf("m-%02d", i), "/z", 0)
	}
	if _, err = transcript.Dir(sessions).FindPrefix("m"); !strings.HasSuffix(err.Error(), "m-08, m-09 and 10 more") {
		t.Errorf("%v", err)
	}
	if _, err := transcript.Dir(filepath.Join(sessions, "none")).Find("n-abc"); !errors.Is(err, transcript.ErrUnknown) {
		t.Errorf("no folder: %v", err)
	}
}

func TestLatestTellsCollidingFoldersApart(t *testing.T) {
	sessions := t.TempDir()
	a := about(t, sessions, "n-1", "/a/b", 1)
	about(t, sessions, "n-2", "/a/b", 0)
	about(t, sessions, "n-3", "/a-b", 3)
	odd := about(t, sessions, "n-4", "/odd\xff", 2)
	for cwd, want := range map[string]string{"/a/b": a.ID, "/a/b/": a.ID, "/a-b": "n-3", "/odd\xff": odd.ID, "": "n-3", "/a": ""} {
		got, err := transcript.Dir(sessions).Latest(cwd)
		if got.ID != want || (want == "") != errors.Is(err, transcript.ErrUnknown) {
			t.Errorf("%q: %q, %v", cwd, got.ID, err)
		}
	}
	list, skipped, err := transcript.Dir(sessions).List("/a/b", nil)
	if err != nil || skipped != 0 || len(list) != 2 || list[0].ID != "n-1" || list[1].ID != "n-2" {
		t.Errorf("%v, %d skipped, %v", list, skipped, err)
	}
	touch(t, a.Path, -1)
	if got, _ := transcript.Dir(sessions).Latest("/a/b"); got.ID != "n-2" {
		t.Errorf("%s", got.ID)
	}
}

func TestList(t *testing.T) {
	sessions := t.TempDir()
	long := strings.Repeat("very \"long\"\n", 100_000)
	first := begin(t, sessions, "n-1", user("Hello\n\tthere \x1b[31m"), agent("Hi", call("a")), user(result("a", long)), agent(thought("x", "y")))
	second := begin(t, sessions, "n-2", user(long), agent(long), user("and\nnow", result("b", "c")))
	about(t, sessions, "n-3", "/other", 5)
	dir := filepath.Dir(first.Path)
	write(t, filepath.Join(dir, "2026-02-24T14-30-00_broken.jsonl"), "{")
	write(t, filepath.Join(dir, "2026-02-24T14-30-00_empty.jsonl"), "")
	write(t, filepath.Join(dir, ".2026-02-24T14-30-00_n-9.jsonl.tmp-123"), read(t, first.Path))
	write(t, filepath.Join(dir, "notes.txt"), "mine")
	write(t, filepath.Join(sessions, "script", "s-12345678.jsonl"), `{"type":"session","id":"s-12345678"}`+"\n")
	if err := os.Symlink("nowhere", filepath.Join(dir, "2026-02-24T14-30-00_link.jsonl")); err != nil {
		t.Fatal(err)
	}
	touch(t, first.Path, 1)
	touch(t, second.Path, 2)
	list, skipped, err := transcript.Dir(sessions).List("", nil)
	if err != nil || len(list) != 3 || skipped != 2 {
		t.Fatalf("%+v, %d skipped, %v", list, skipped, err)
	}
	other, two, one := list[0], list[1], list[2]
	if other.ID != "n-3" || other.First != "" || other.Last != "" {
		t.Errorf("%+v", other)
	}
	if one.First != "Hello there [31m" || one.Last != "" { // the text is more than a megabyte of result away
		t.Errorf("%q, %q", one.First, one.Last)
	}
	if !strings.HasPrefix(two.First, `very "long" very`) || !strings.HasSuffix(two.First, "…") || len(two.First) > 210 || two.Last != "and now" {
		t.Errorf("%q, %q", two.First, two.Last)
	}
	if info, _ := os.Stat(second.Path); two.Size != info.Size() || !two.Modified.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("%d bytes, %v", two.Size, two.Modified)
	}
	if list, skipped, err := transcript.Dir(filepath.Join(sessions, "none")).List("", nil); len(list)+skipped != 0 || err != nil {
		t.Errorf("%v, %d, %v", list, skipped, err)
	}
}

func TestLineage(t *testing.T) {
	sessions := t.TempDir()
	made := map[string]transcript.Transcript{}
	for id, parent := range map[string]string{"a": "", "b": "a", "c": "b", "x": "y", "y": "x", "self": "self", "orphan": "gone"} {
		h := header(id)
		h.ParentID = parent
		var err error
		if made[id], err = transcript.Dir(sessions).Create(h); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{"c": "c b a", "a": "a", "x": "x y", "self": "self", "orphan": "orphan"} {
		line, err := transcript.Dir(sessions).Lineage(made[id])
		var ids []string
		for _, l := range line {
			ids = append(ids, l.ID)
		}
		if got := strings.Join(ids, " "); got != want || err != nil {
			t.Errorf("%s: %s, want %s, %v", id, got, want, err)
		}
	}
	if !slices.Contains(names(t, sessions), "--home-ada-project--") {
		t.Error("no folder")
	}
}
