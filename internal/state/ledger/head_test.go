package ledger

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// TestLost: whatever end of the ledger was removed, Verify finds it at once and after later changes, and in each of these only once.
func TestLost(t *testing.T) {
	t.Parallel()
	const past = "2026-11-22"
	remove := func(name string) func(*Ledger) error {
		return func(l *Ledger) error { return os.RemoveAll(l.home.State("ledger", name)) }
	}
	for name, c := range map[string]struct {
		harm func(*Ledger) error
		text string // part of what Verify says after the next change; "": nothing
	}{
		"nothing":       {func(*Ledger) error { return nil }, ""},
		"last fact":     {func(l *Ledger) error { return shorten(l, 1) }, "were removed"},
		"all of a day":  {func(l *Ledger) error { return shorten(l, 1000) }, "were removed"},
		"file":          {remove("2026-11-23.jsonl"), "of 2026-11-23.jsonl were removed"},
		"head":          {remove("head.json"), "head.json was missing"},
		"all":           {remove(""), "of 2026-11-23.jsonl were removed"},
		"fact and head": {func(l *Ledger) error { return errors.Join(shorten(l, 1), os.Remove(l.headPath())) }, "head.json was missing"},
		"junk in the head": {func(l *Ledger) error {
			return os.WriteFile(l.headPath(), bytes.Repeat([]byte("junk "), 50), 0o600)
		}, "head.json was missing or not valid"},
	} {
		for next, change := range map[string]func(*testing.T, *Ledger, ...Fact){"synced": addSynced, "buffered": add} {
			t.Run(name+", "+next, func(t *testing.T) {
				t.Parallel()
				dir, now := testkit.MemoryDir(t), newClock()
				now.now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
				l := open(dir, now.Now)
				addSynced(t, l, put{"a", 1})
				if l.view.at.Day != past {
					t.Fatal(l.view.at)
				}
				now.now = now.now.Add(24 * time.Hour)
				addSynced(t, l, put{"b", 2}, put{"c", 3})
				addSynced(t, l, put{"b", 4})
				l.save()
				want := 0
				if c.text != "" {
					want = 1
				}
				if err := c.harm(l); err != nil {
					t.Fatal(err)
				}
				if faults, _, err := open(dir, now.Now).Verify(); err != nil || len(faults) != want {
					t.Errorf("at once: %v, %v", faults, err)
				}
				change(t, open(dir, now.Now), put{"d", 5})
				for range 2 {
					addSynced(t, open(dir, now.Now), put{"e", 6})
					faults, _, err := open(dir, now.Now).Verify()
					if err != nil || len(faults) != want || want > 0 && (faults[0].Line == 0 || !strings.Contains(faults[0].Text, c.text)) {
						t.Errorf("after a change: %v, %v", faults, err)
					}
				}
			})
		}
	}
}

// shorten removes the last lines of the newest file.
func shorten(l *Ledger, lines int) error {
	text, err := os.ReadFile(l.path("2026-11-23"))
	if err != nil {
		return err
	}
	all := bytes.SplitAfter(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'})
	return os.WriteFile(l.path("2026-11-23"), bytes.Join(all[:max(0, len(all)-lines)], nil), 0o600)
}

// TestLostIsNotTrimmed: that Trim removes the day of the head is no loss.
func TestLostIsNotTrimmed(t *testing.T) {
	t.Parallel()
	dir, now := testkit.MemoryDir(t), newClock()
	l := open(dir, now.Now)
	addSynced(t, l, put{"a", 1})
	now.now = now.now.Add(48 * time.Hour)
	add(t, l, put{"b", 2})
	if err := l.Trim(t.Context(), now.now); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if faults, _, err := open(dir, now.Now).Verify(); err != nil || len(faults) > 0 {
			t.Errorf("%v, %v", faults, err)
		}
		addSynced(t, open(dir, now.Now), put{"c", 3})
	}
}
