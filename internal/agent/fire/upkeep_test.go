package fire

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestHoldsReminders: only a pause of everything that is not over holds plain reminders.
func TestHoldsReminders(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), 0)
	holds := func(want bool) {
		t.Helper()
		if got := (Pauses{d.Runner}).HoldsReminders(); got != want {
			t.Errorf("holds %v", got)
		}
	}
	holds(false)
	must(t, d.Spend.Pause(t.Context(), nine.Add(time.Hour)))
	holds(false)
	must(t, d.Spend.PauseAll(t.Context(), nine.Add(time.Hour)))
	holds(true)
	d.now = nine.Add(2 * time.Hour)
	holds(false)
}

// holdsUp makes a fixture with a pause since eight o'clock: the slot of a was paused, that of b was run, and there are reminders.
func holdsUp(t *testing.T, all bool, until time.Time) *fixture {
	t.Helper()
	d := newFixture(t, runtest.Turn(nothing), -2*time.Hour)
	text := "---\nid: %s\nrun-at: %s\nenabled: %v\nplain: %v\n---\nx\n"
	for id, lines := range map[string][]any{
		"agent": {"2026-03-02T08:30:00Z", true, false}, "plain": {"2026-03-02T08:30:00Z", true, true},
		"off": {"2026-03-02T08:30:00Z", false, false}, "later": {"2026-03-02T09:30:00Z", true, false}, "now": {"2026-03-02T09:01:00Z", true, false},
	} {
		must(t, store.Replace(d.Home.Path("reminders", id+".md"), []byte(fmt.Sprintf(text, append([]any{id}, lines...)...))))
	}
	schedules := []slot.Schedule{{Job: "a", Name: "a", Cron: "0 9 * * *", Zone: "UTC", Enabled: true}, {Job: "b", Name: "b", Cron: "0 9 * * *", Zone: "UTC", Enabled: true}}
	_, err := d.Slots.Note(t.Context(), schedules, nil)
	must(t, err)
	if d.now = nine.Add(-time.Hour); all {
		must(t, d.Spend.PauseAll(t.Context(), until))
	} else {
		must(t, d.Spend.Pause(t.Context(), until))
	}
	d.now = nine.Add(time.Minute)
	must(t, d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Outcome: "paused"}))
	must(t, d.Slots.Claim(slot.Claim{Job: "b", Slot: nine, Outcome: "ok", Run: "x"}))
	return d
}

// TestHeld: a pause holds slots of that outcome, and the enabled reminders that are due, plain ones only if everything is paused.
func TestHeld(t *testing.T) {
	t.Parallel()
	for all, want := range map[bool]string{
		false: "1 slot (a 1), 2 reminders (agent, now)", true: "1 slot (a 1), 3 reminders (agent, now, plain)",
	} {
		if got, err := (Pauses{holdsUp(t, all, time.Time{}).Runner}).Held(); got != want || err != nil {
			t.Errorf("%q, %v: want %q", got, err, want)
		}
	}
	d := newFixture(t, runtest.Turn(nothing), 0)
	if got, err := (Pauses{d.Runner}).Held(); got != "" || err != nil {
		t.Errorf("without a pause: %q, %v", got, err)
	}
}

// TestEndOfAPause: the owner is told what a pause held when its time is over, and nothing if it held nothing.
func TestEndOfAPause(t *testing.T) {
	t.Parallel()
	slots, reminders := ". Not run: 1 slot (a 1)", ". Due now: 2 reminders (agent, now)"
	for name, c := range map[string]struct {
		until  time.Time
		remove []string
		want   string
		stays  bool
	}{
		"not over":       {until: nine.Add(time.Hour), stays: true},
		"until resume":   {stays: true},
		"both":           {until: nine, want: "The pause is over" + slots + reminders},
		"no slots":       {until: nine, remove: []string{"state/slots"}, want: "The pause is over" + reminders},
		"no reminders":   {until: nine, remove: []string{"reminders"}, want: "The pause is over" + slots},
		"nothing at all": {until: nine, remove: []string{"state/slots", "reminders"}},
	} {
		d := holdsUp(t, false, c.until)
		for _, dir := range c.remove {
			must(t, os.RemoveAll(d.Home.Path(dir)))
		}
		must(t, Pauses{d.Runner}.End(t.Context()))
		page, err := d.Notices.Read()
		must(t, err)
		if said := page.Causes["news pause"]; said.Text != c.want || strings.Contains(said.Remedy, "schedule audit") != strings.Contains(c.want, slots) {
			t.Errorf("%s: %+v", name, said)
		}
		if _, known := d.Spend.LastPause(); known != c.stays {
			t.Errorf("%s: paused %v", name, known)
		}
	}
}

// TestOwedCalls: a monitor is called once for the run that owes it a call and ended well, not too late, and again until it answers.
func TestOwedCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome runlog.Outcome // "": the run has not ended
		ago     time.Duration  // since it ended
		status  int
		called  bool
		stays   bool
	}{
		"due":              {runlog.OK, time.Minute, 200, true, false},
		"no answer":        {runlog.OK, time.Minute, 500, true, true},
		"its own process":  {runlog.OK, 5 * time.Second, 200, false, true},
		"failed":           {runlog.Failed, time.Minute, 200, false, false},
		"failed just now":  {runlog.Failed, time.Second, 200, false, false},
		"in progress":      {"", time.Minute, 200, false, true},
		"too late":         {runlog.OK, time.Hour + time.Second, 200, false, false},
		"late":             {runlog.OK, time.Hour, 200, true, false},
		"no record":        {"none", time.Minute, 200, false, false},
		"begins long late": {"", 2 * time.Hour, 200, false, false},
	} {
		calls := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { calls++; w.WriteHeader(c.status) }))
		d := newFixture(t, runtest.Turn(nothing), 0)
		r := d.began(d.job("a"), nil)
		must(t, store.WriteJSON(d.Home.State("heartbeats.json"), heartbeat.Calls{"a": {URL: s.URL, Run: r.ID, At: nine}}, store.Buffered))
		switch c.outcome {
		case "":
		case "none":
			must(t, r.Remove())
		default:
			must(t, r.Finish(c.outcome, ""))
		}
		d.now = nine.Add(c.ago)
		must(t, Monitors{d.Runner}.CallOwed(t.Context()))
		owed, err := d.Heartbeats.List()
		if must(t, err); (calls == 1) != c.called || (len(owed) == 1) != c.stays {
			t.Errorf("%s: %d calls, owed %+v", name, calls, owed)
		}
		if got := d.causes(); (len(got) == 1) != (c.status != 200) {
			t.Errorf("%s: %q", name, got)
		}
		s.Close()
	}
}

// TestMonitorIsReported: a monitor that does not answer is reported once, and so is that it answers again.
func TestMonitorIsReported(t *testing.T) {
	t.Parallel()
	status := 500
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer s.Close()
	d := newFixture(t, runtest.Turn(nothing), 0)
	var warned []string
	d.Disk.Warn = func(message string) { warned = append(warned, message) }
	m := Monitors{d.Runner}
	for range 2 {
		if m.Call(t.Context(), "a", s.URL) {
			t.Error("it answered")
		}
	}
	if len(warned) != 1 || !strings.HasPrefix(warned[0], "heartbeat of a: ") || len(d.causes()) != 1 {
		t.Errorf("warned %q, causes %q", warned, d.causes())
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if m.Call(stopped, "b", s.URL) || len(d.causes()) != 1 {
		t.Errorf("a call that was stopped: %q", d.causes())
	}
	if status = 204; !m.Call(t.Context(), "a", s.URL) || len(d.causes()) != 0 {
		t.Errorf("it answers: %q", d.causes())
	}
}
