package update

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// array is what another program writes: updates of one day, a message each, the second of its ts first.
func array(omitted int, messages ...string) string {
	var entries []string
	if omitted > 0 {
		entries = append(entries, fmt.Sprintf(`{"ts":"2026-11-21T12:30:00Z","message":%q}`, sentinel(omitted)))
	}
	for _, m := range messages {
		second, text, _ := strings.Cut(m, " ")
		entries = append(entries, fmt.Sprintf(`{"ts":"2026-11-21T12:%sZ","message":%q}`, second, text))
	}
	return "[" + strings.Join(entries, ",") + "]"
}

// What another program does with the file counts: it takes updates out of the queue, drops the oldest, and adds its own.
func TestOtherProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string // "": it removes the file
		want  string
		fates []string
	}{
		"takes all":           {"", "", []string{"1 popped another program", "2 popped another program", "3 popped another program"}},
		"leaves an array":     {"[]", "", []string{"1 popped another program", "2 popped another program", "3 popped another program"}},
		"adds":                {array(0, "00:01 1", "00:02 2", "00:03 3", "30:00 x"), "1 2 3 x", nil},
		"takes all, and adds": {array(0, "30:00 x"), "x", []string{"1 popped another program", "2 popped another program", "3 popped another program"}},
		"adds and drops":      {array(2, "00:03 3", "30:00 x"), "(2) 3 x", []string{"1 dropped", "2 dropped"}},
		"adds to a former":    {array(0, "00:01 1", "00:02 2", "30:00 x"), "1 2 3 x", nil},
		"only drops":          {array(7), "(7)", []string{"1 popped another program", "2 popped another program", "3 popped another program"}},
		"an older queue":      {array(0, "00:01 1", "00:02 2"), "1 2 3", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addN(1, 3)
			w.put(w.Home.PendingUpdates(), tc.file)
			if tc.file == "" {
				if err := os.Remove(w.Home.PendingUpdates()); err != nil {
					t.Fatal(err)
				}
			}
			before := w.snapshot()
			w.expect(tc.want)
			if fmt.Sprint(w.snapshot()) != fmt.Sprint(before) {
				t.Error("Peek has written")
			}
			w.add("next")
			w.expect(strings.TrimSpace(tc.want + " next"))
			w.expectFates(tc.fates...)
			w.Ledger = ledgerOf(w.Box)
			w.expect(strings.TrimSpace(tc.want + " next"))
			if len(w.warned) > 0 {
				t.Errorf("warned %q", w.warned)
			}
		})
	}
}

// What a claim holds is not taken over from a file that still has it, and what another program adds then is.
func TestOtherProgramBesideAClaim(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 12)
	former := w.read(w.Home.PendingUpdates())
	c := w.pop(Owner{Run: "r", Lock: w.guard().File().Name()})
	added := strings.TrimSuffix(strings.TrimSpace(former), "]") + `,{"ts":"2026-11-21T13:00:00Z","message":"x"}]`
	w.put(w.Home.PendingUpdates(), added)
	w.expect("x")
	w.deliver(c)
	w.expect("x")
	w.put(w.Home.PendingUpdates(), former)
	w.expect("x")
	w.account("at the end", append(numbers(1, 12), "x"))
}
