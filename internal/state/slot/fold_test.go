package slot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
)

func foldBook(t *testing.T) (Book, time.Time) {
	t.Helper()
	now := noon.Truncate(time.Hour)
	return newBook(paths.Dir(t.TempDir()), now), now
}

// Old claims with an outcome become lines of their month; everything else stays, and every claim is found as before.
func TestFold(t *testing.T) {
	t.Parallel()
	b, now := foldBook(t)
	outcomes := []string{"ok", "", "waiting", "gated", Missed}
	for day := range 40 {
		at := now.Add(-time.Duration(day) * 24 * time.Hour)
		c := Claim{Job: "watch", Slot: at, Run: fmt.Sprint("r", day), PID: 7, Outcome: outcomes[day%len(outcomes)]}
		if err := b.Claim(c); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second changes nothing
		if err := b.Fold(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	for day := range 40 {
		at, want := now.Add(-time.Duration(day)*24*time.Hour), outcomes[day%len(outcomes)]
		c, err := b.Load("watch", at)
		if err != nil || c.Outcome != want || c.Run != fmt.Sprint("r", day) || c.Job != "watch" || !c.Slot.Equal(at) {
			t.Errorf("day %d: %+v, %v", day, c, err)
		}
		_, err = os.Stat(b.Path("watch", at))
		if own, wantOwn := err == nil, day <= 2 || want == "" || want == "waiting"; own != wantOwn {
			t.Errorf("day %d, %q: a file of its own: %v", day, want, own)
		}
		if err := b.Claim(Claim{Job: "watch", Slot: at, Run: "other"}); !errors.Is(err, ErrClaimed) {
			t.Errorf("day %d was claimed twice: %v", day, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(b.folder("watch"), "*.jsonl"))
	if len(files) != 2 {
		t.Errorf("files of months: %q", files)
	}
}

// The newest claim of a job that fires once a week stays where earlier versions look for it.
func TestNewestClaimStays(t *testing.T) {
	t.Parallel()
	b, now := foldBook(t)
	for _, day := range []int{5, 12, 19} {
		if err := b.Claim(Claim{Job: "weekly", Slot: now.AddDate(0, 0, -day), Run: "r", Outcome: "ok"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Fold(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	for day, want := range map[int]bool{5: true, 12: false, 19: false} {
		if _, err := b.own("weekly", now.AddDate(0, 0, -day)); (err == nil) != want {
			t.Errorf("day %d: a file of its own: %v", day, err)
		}
	}
}

// A folded claim that gets another outcome has a file of its own until it is folded anew.
func TestFoldedClaimChanges(t *testing.T) {
	t.Parallel()
	b, now := foldBook(t)
	at := now.Add(-72 * time.Hour)
	if err := errors.Join(b.Claim(Claim{Job: "watch", Slot: now, Run: "newer"}), b.Claim(Claim{Job: "watch", Slot: at, Run: "r", Outcome: "timeout"}), b.Fold(t.Context(), now)); err != nil {
		t.Fatal(err)
	}
	if err := b.Settle("watch", at, "r", "ok"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if c, err := b.Load("watch", at); err != nil || c.Outcome != "ok" {
			t.Errorf("%+v, %v", c, err)
		}
		if err := b.Fold(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
}

// Prune removes lines that are too old, and a month's file with its last line.
func TestPruneFolds(t *testing.T) {
	t.Parallel()
	b, now := foldBook(t)
	at := func(day int) time.Time { return now.Add(-time.Duration(day) * 24 * time.Hour) }
	for _, day := range []int{1, 10, 12, 45} {
		if err := b.Claim(Claim{Job: "watch", Slot: at(day), Outcome: Missed}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(b.Fold(t.Context(), now), b.Prune(t.Context(), at(11))); err != nil {
		t.Fatal(err)
	}
	for day, want := range map[int]bool{1: true, 10: true, 12: false, 45: false} {
		if _, err := b.Load("watch", at(day)); (err == nil) != want {
			t.Errorf("day %d: %v", day, err)
		}
	}
	if files, _ := os.ReadDir(b.folder("watch")); len(files) != 2 {
		t.Errorf("files: %v", files)
	}
}
