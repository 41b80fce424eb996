package transcript_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

// TestEachFault: whichever system call fails, an append has added all or nothing after an error, a new transcript is whole or is not there,
// and the transcript goes on.
func TestEachFault(t *testing.T) {
	t.Parallel()
	more := entries(agent("two", call("a")), user(result("a", "é")))
	type doing = func(dir string, f transcript.Transcript) (transcript.Transcript, error)
	adding := func(d store.Durability) doing {
		return func(_ string, f transcript.Transcript) (transcript.Transcript, error) { return f, f.Append(d, more...) }
	}
	for name, c := range map[string]struct {
		torn string
		do   doing
		want int // entries of its own, once it has succeeded
	}{
		"append":               {do: adding(store.Buffered), want: 3},
		"synced append":        {do: adding(store.Synced), want: 3},
		"append to a torn one": {`{"type":"mess`, adding(store.Synced), 3},
		"branch": {"", func(dir string, f transcript.Transcript) (transcript.Transcript, error) {
			return branch(dir, f, -1, header("n-2"))
		}, 0},
		"compaction": {"", func(dir string, f transcript.Transcript) (transcript.Transcript, error) {
			return compact(dir, f, "what was said", 0, header("n-3"))
		}, 1},
		"load": {"", func(_ string, f transcript.Transcript) (transcript.Transcript, error) {
			bad := 0
			list, err := f.Load(&bad)
			if err == nil && (bad != 0 || len(list) != 1) {
				t.Errorf("%d entries and %d bad ones, and no error", len(list), bad)
			}
			return f, err
		}, 1},
	} {
		for fault := range testkit.Faults(t, syscall.EIO) {
			dir := t.TempDir()
			f := begin(t, dir, "n-1", user("one"))
			write(t, f.Path, read(t, f.Path)+c.torn)
			var made transcript.Transcript
			var err error
			fault.In(dir, func() { made, err = c.do(dir, f) })
			if err != nil && (fault.Call == "" || !errors.Is(err, syscall.EIO)) {
				t.Errorf("%s, %q fails: %v", name, fault.Call, err)
			}
			for _, left := range testkit.OpenFiles(t, dir) {
				t.Errorf("%s, %q fails: %s is left open", name, fault.Call, left)
			}
			want := c.want
			if err != nil {
				made, want = f, 1
			}
			list, bad := load(t, made)
			if len(list) != want || bad != 0 {
				t.Errorf("%s, %q fails: %v, then %d entries and %d bad ones, want %d", name, fault.Call, err, len(list), bad, want)
			}
			if err := made.Append(store.Buffered, entries(user("last"))...); err != nil {
				t.Errorf("%s, %q fails, and so does the next append: %v", name, fault.Call, err)
			}
			if again, bad := load(t, made); len(again) != len(list)+1 || bad != 0 || !strings.Contains(read(t, f.Path), "one") {
				t.Errorf("%s, %q fails, then %d entries and %d bad ones after one more than %d", name, fault.Call, len(again), bad, len(list))
			}
		}
	}
}
