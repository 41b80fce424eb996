package transcript_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

// A crash may have left any part of what one append wrote.
func TestTornAtEveryByte(t *testing.T) {
	f := begin(t, t.TempDir(), "n-1", user("one"))
	whole := read(t, f.Path)
	if err := f.Append(store.Buffered, entries(agent("two", call("a")), user(result("a", "é")))...); err != nil {
		t.Fatal(err)
	}
	all := read(t, f.Path)
	middle := len(whole) + strings.Index(all[len(whole):], "\n") + 1
	for cut := len(whole); cut <= len(all); cut++ {
		write(t, f.Path, all[:cut])
		want := 1
		kept := whole
		if cut >= middle-1 { // only its line break is missing
			want, kept = 2, all[:middle]
		}
		if cut >= len(all)-1 {
			want, kept = 3, all
		}
		if list, bad := load(t, f); len(list) != want || bad != 0 {
			t.Fatalf("cut at %d: %d messages, %d bad", cut, len(list), bad)
		}
		if err := f.Append(store.Buffered, entries(user("three"))...); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f.Path); !strings.HasPrefix(got, kept) || strings.Count(got[len(kept):], "\n") != 1 {
			t.Fatalf("cut at %d: %q", cut, got)
		}
		list, bad := load(t, f)
		if len(list) != want+1 || bad != 0 || list[want].Message.Text() != "three" {
			t.Fatalf("cut at %d: %v, %d bad", cut, reported(messages(list)), bad)
		}
	}
}

func TestLongTornLine(t *testing.T) {
	f := begin(t, t.TempDir(), "n-1", user("one"))
	whole := read(t, f.Path)
	for _, n := range []int{1, 4095, 4096, 4097, 100_000, 3 << 20} {
		write(t, f.Path, whole+strings.Repeat("x", n))
		if err := f.Append(store.Synced, entries(user("two"))...); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f.Path); !strings.HasPrefix(got, whole+`{"type"`) {
			t.Errorf("%d: %.100q", n, got[len(whole):])
		}
	}
}

func TestAppendFails(t *testing.T) {
	f := begin(t, t.TempDir(), "n-1", user("one"))
	if err := f.Append(store.Synced); err != nil {
		t.Errorf("nothing: %v", err)
	}
	gone := transcript.Transcript{Path: filepath.Join(t.TempDir(), "gone.jsonl")}
	if err := gone.Append(store.Buffered, entries(user("x"))...); !errors.As(err, new(*store.NotWritten)) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	write(t, gone.Path, "torn header")
	if err := gone.Append(store.Buffered, entries(user("x"))...); !errors.Is(err, transcript.ErrForeign) || read(t, gone.Path) != "torn header" {
		t.Errorf("no header: %v, %q", err, read(t, gone.Path))
	}
}

func TestAppendReadOnly(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	f := begin(t, t.TempDir(), "n-1", user("one"))
	if err := os.Chmod(f.Path, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(store.Buffered, entries(user("x"))...); !errors.Is(err, os.ErrPermission) {
		t.Errorf("read-only: %v", err)
	}
}

// Readers take no lock: they see a prefix of the conversation at any time.
func TestReadWhileWriting(t *testing.T) {
	sessions := t.TempDir()
	f := begin(t, sessions, "n-1")
	const n = 200
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < n && err == nil; i++ {
			err = f.Append(store.Buffered, entries(user(strings.Repeat("x", i*50)), agent("y"))...)
		}
		done <- err
	}()
	for last, working := 0, true; working; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			working = false
		default:
		}
		list, bad := load(t, f)
		if bad != 0 || len(list) < last || !working && len(list) != 2*n {
			t.Fatalf("%d messages after %d, %d bad", len(list), last, bad)
		}
		last = len(list)
		h := header("b-" + strings.Repeat("x", last%150))
		h.Timestamp = noon.AddDate(0, 0, last)
		b, err := branch(sessions, f, -1, h)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if list, bad := load(t, b); bad != 0 || len(list) < last {
			t.Fatalf("a branch of %d messages after %d, %d bad", len(list), last, bad)
		}
	}
}

func TestSyncedAndBuffered(t *testing.T) {
	f := begin(t, t.TempDir(), "n-1")
	for i, d := range slices.Repeat([]store.Durability{store.Synced, store.Buffered}, 3) {
		if err := f.Append(d, entries(user("x"))...); err != nil {
			t.Fatal(err)
		}
		if list, _ := load(t, f); len(list) != i+1 {
			t.Errorf("%d of %d", len(list), i+1)
		}
	}
}

// What an editor leaves without its last line break is whole for everybody.
func TestLineBreakMissing(t *testing.T) {
	dir := t.TempDir()
	f := begin(t, dir, "n-1", user("one"), agent("two"), user("three bats"))
	all := read(t, f.Path)
	write(t, f.Path, strings.TrimSuffix(all, "\n"))
	list, _, err := transcript.Dir(dir).List("", nil)
	if err != nil || len(list) != 1 || list[0].Last != "three bats" {
		t.Errorf("%+v, %v", list, err)
	}
	found := 0
	for m, err := range transcript.Search(t.Context(), files(t, dir), []string{"bats"}, nil, nil) {
		if found++; err != nil || m.Index() != 2 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if found != 1 {
		t.Errorf("found %d times", found)
	}
	for after, want := range map[int]int{-1: 2, 3: 3, 2: 2, 4: 3} {
		b, err := branch(dir, f, after, header(fmt.Sprintf("n-b%d", after+1)))
		if err != nil {
			t.Fatal(err)
		}
		if list, bad := load(t, b); len(list) != want || bad != 0 || !strings.HasSuffix(read(t, b.Path), "\n") {
			t.Errorf("a branch after %d: %d messages, %d bad: %q", after, len(list), bad, read(t, b.Path))
		}
	}
}
