package request

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
)

// A request pays again for what an earlier one has put into the service's cache if it begins with it and did not read it.
func TestPaidAgain(t *testing.T) {
	const life, far = 4 * time.Minute, 5 * time.Minute
	long := strings.Repeat("word ", 8000)
	var many []string
	for n := range 71 { // messages in lists
		many = append(many, fmt.Sprintf("message %d %s", n, long[:2000]))
	}
	more := func(texts []string, added ...string) []string { return append(append([]string{}, texts...), added...) }
	for name, c := range map[string]struct {
		before, after []string // texts of the messages
		cached        int      // tokens
		read          int      // tokens of the later request
		gap           time.Duration
		want          int
	}{
		"read":             {[]string{long}, []string{long, "a", "b"}, 10_000, 10_000, time.Minute, 0},
		"not read":         {[]string{long}, []string{long, "a", "b"}, 10_000, 0, time.Minute, 10_000},
		"in lists":         {many, more(many, "a", "b"), 40_000, 1000, time.Minute, 39_000},
		"the same again":   {[]string{long}, []string{long}, 10_000, 0, time.Minute, 10_000},
		"half":             {[]string{long}, []string{long, "a", "b"}, 10_000, 5000, time.Minute, 0},
		"a third":          {[]string{long}, []string{long, "a", "b"}, 10_000, 3000, time.Minute, 7000},
		"too late":         {[]string{long}, []string{long, "a", "b"}, 10_000, 0, far, 0},
		"at the same time": {[]string{long}, []string{long, "a", "b"}, 10_000, 0, time.Millisecond, 0},
		"few":              {[]string{"hi"}, []string{"hi", "a", "b"}, 4000, 0, time.Minute, 0},
		"not cached":       {[]string{long}, []string{long, "a", "b"}, 0, 0, time.Minute, 0},
		"another message":  {[]string{long}, []string{long + "x", "a", "b"}, 10_000, 0, time.Minute, 0},
		"another branch":   {[]string{long, "a", "b"}, []string{long, "a", "c"}, 10_000, 0, time.Minute, 9975},
		"two branches":     {[]string{long, "a", "b"}, []string{long, "c", "b"}, 10_000, 0, time.Minute, 0},
	} {
		b := newBook(t)
		now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		b.Disk.Now = func() time.Time { return now }
		log := b.Log(run)
		send := func(texts []string, read, written int) {
			add(t, log, conversation(texts...))
			answer := Answer{First: 500, Usage: &runlog.Usage{CacheRead: read, CacheWrite: written}}
			exchanges, err := b.Exchanges(run)
			if err != nil {
				t.Fatal(err)
			}
			answer.To = len(exchanges)
			if err := log.AddAnswer(t.Context(), answer); err != nil {
				t.Fatal(err)
			}
		}
		send(c.before, c.cached/2, c.cached-c.cached/2)
		now = now.Add(c.gap)
		send(c.after, c.read, 1)
		list, err := b.Sent(run)
		if err != nil || len(list) != 2 || list[0].Model != "tiny" {
			t.Fatalf("%s: %+v, %v", name, list, err)
		}
		if got := list[1].PaidAgain(list[0], life, 4); got != c.want {
			t.Errorf("%s: %d tokens were paid again, want %d", name, got, c.want)
		}
	}
}
