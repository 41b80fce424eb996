package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestReminderOfLater: a reminder whose first request has to wait for what another run has reserved was not tried: it waits as
// before, and can still be cancelled.
func TestReminderOfLater(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.slots(1)
	w.must("config", "set", "spend.per-day", "0.08")
	id, _, _ := strings.Cut(w.must("reminder", "add", "--in", "1m", "--background", "--isolated", "Look again. "+strings.Repeat("x ", 14_000)), "\t")
	hold, asked := make(chan struct{}), make(chan struct{}, 10)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		asked <- struct{}{}
		return anthropicapi.Reply{Text: "ok", Hold: hold}
	})
	ended := make(chan result)
	go func() { ended <- w.run("fire", "r1") }()
	defer func() { close(hold); <-ended }()
	<-asked
	before := w.must("reminder", "list", "--json")
	for range 3 {
		if r := w.run("fire", id); r.status != 75 || !strings.Contains(r.errOut, "reserved of 0.08 USD") {
			t.Fatalf("exit status %d, %s", r.status, r.errOut)
		}
		if n := len(w.runs()); n != 1 {
			t.Errorf("%d records, want that of r1", n)
		}
		if now := w.must("reminder", "list", "--json"); now != before {
			t.Errorf("the reminder was\n%s\nand is\n%s", before, now)
		}
	}
	w.must("reminder", "cancel", id)
}
