package listener

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
)

// idAt returns an id of a message that is sent so long after the first one.
func idAt(d time.Duration) string {
	return strconv.FormatInt(1_300_000_000_000_000_000+d.Milliseconds()<<22, 10)
}

func newHandled(t *testing.T, dir paths.Dir) *handled {
	t.Helper()
	h, err := loadHandled(dir.State("discord.json"), store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}, (*api.Client)(nil).Able().Order)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHandled: what was handled is known after a restart, and nothing else is, in any order within a minute.
func TestHandled(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	h := newHandled(t, dir)
	if h.has("c", idAt(0)) || h.upTo("c") != "" {
		t.Error("a channel that is not known")
	}
	do(t, h.begin("c", idAt(0)))
	for _, s := range []time.Duration{50, 10, 30} {
		do(t, h.add("c", idAt(s*time.Second), false))
	}
	h = newHandled(t, dir)
	for s, want := range map[time.Duration]bool{-1: true, 0: true, 10: true, 20: false, 30: true, 40: false, 50: true, 60: false} {
		if got := h.has("c", idAt(s*time.Second)); got != want {
			t.Errorf("after %d s: %t", s, got)
		}
	}
	if h.upTo("c") != idAt(0) {
		t.Error("the history begins after a message that was not handled")
	}
	do(t, h.add("c", idAt(85*time.Second), false))
	if h.has("c", idAt(40*time.Second)) || !h.has("c", idAt(20*time.Second)) {
		t.Errorf("up to %s: a message is late for a minute, not longer", h.upTo("c"))
	}
	do(t, h.passed("c", idAt(time.Hour)))
	if h.upTo("c") != idAt(time.Hour-disorder) || !h.has("c", idAt(50*time.Second)) {
		t.Errorf("up to %s", h.upTo("c"))
	}
	do(t, h.add("new", idAt(disorder), false))
	if h.has("new", idAt(disorder/2)) || !h.has("new", idAt(0)) {
		t.Error("the first message of a channel: one shortly before it may come later")
	}
	if do(t, h.forget("c")); h.upTo("c") != "" {
		t.Error("it is not forgotten")
	}
}

// TestHandledIsBounded: a burst and many channels do not make the file grow for ever; the oldest go.
func TestHandledIsBounded(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	h := newHandled(t, dir)
	var burst seen
	for i := range mostAfter {
		burst.After = append(burst.After, idAt(time.Duration(i)*time.Millisecond))
	}
	h.state.Channels["burst"] = burst
	do(t, h.add("burst", idAt(disorder/2), false))
	if got := h.state.Channels["burst"]; len(got.After) != mostAfter || got.UpTo != idAt(0) || len(burst.After) != mostAfter {
		t.Errorf("%d after %s", len(got.After), got.UpTo)
	}
	for i := range mostChannels - 1 {
		h.state.Channels[fmt.Sprint("channel ", i)] = seen{UpTo: idAt(time.Hour + time.Duration(i)*time.Second)}
	}
	do(t, h.add("one more", idAt(time.Hour), false))
	if n := len(h.channels()); n != mostChannels || slices.Contains(h.channels(), "burst") {
		t.Errorf("%d channels", n)
	}
}

// TestHandledKeepsWhatIsOpen: a message is open, with the messages that show a part of its answer, until it is closed.
func TestHandledKeepsWhatIsOpen(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	h := newHandled(t, dir)
	first, second := idAt(0), idAt(time.Second)
	do(t, h.add("c", first, true))
	do(t, h.add("c", second, true))
	do(t, h.showing(first)([]string{"7", "8"}))
	do(t, h.showing(second)([]string{"9"}))
	do(t, h.showing(second)(nil))
	do(t, h.showing("")([]string{"10"}))
	do(t, h.close(second))
	h = newHandled(t, dir)
	if open := h.open(); len(open) != 1 || open[first] != "c" {
		t.Errorf("open: %v", open)
	}
	if got := h.unfinished(first); !slices.Equal(got, []string{"7", "8"}) || len(h.state.Unfinished) != 1 {
		t.Errorf("unfinished: %v", h.state.Unfinished)
	}
	do(t, h.close(first))
	if len(h.open())+len(h.state.Unfinished) > 0 {
		t.Errorf("%+v", h.state)
	}
}

// TestHandledIsBoundedWithoutOrder: where ids tell nothing, the channel that was silent for longest goes.
func TestHandledIsBoundedWithoutOrder(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	h, err := loadHandled(paths.Dir(t.TempDir()).State("door.json"), store.Disk{Now: func() time.Time { return now }}, nil)
	do(t, err)
	for i := range mostChannels - 2 {
		h.state.Channels[fmt.Sprint("channel ", i)] = seen{UpTo: "m", At: now.Add(time.Hour)}
	}
	do(t, h.add("busy", "a", false)) // ids that sort first and last
	do(t, h.add("silent", "zz", false))
	now = now.Add(2 * time.Hour)
	do(t, h.add("busy", "b", false))
	do(t, h.add("one more", "c", false))
	if list := h.channels(); len(list) != mostChannels || slices.Contains(list, "silent") || !slices.Contains(list, "busy") {
		t.Errorf("%d channels: %v", len(list), list)
	}
}
