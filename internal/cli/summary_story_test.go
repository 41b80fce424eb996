package cli

import (
	"strings"
	"testing"
	"time"
)

// weekly makes a world that asks for summaries and adds what it is sent to a file, with a routine that has fired. The clock stands
// at Monday 2026-03-02 10:00.
func weekly(t *testing.T) (w *world, until func(time.Time), sent func() []string) {
	t.Helper()
	w = sound(t)
	w.writeProgram("deliver.sh", "#!/bin/sh\n{ cat; echo ==; } >>sent\n")
	w.must("config", "set", "delivery.command", "sh", "deliver.sh")
	w.must("config", "set", "summary", "weekly")
	w.must("tick")
	until = func(at time.Time) { w.pass(at.Sub(w.clock())) }
	sent = func() []string {
		w.must("tick")
		w.pass(time.Minute)
		w.must("tick")
		text := w.read("sent")
		w.remove("sent")
		var summaries []string
		for _, message := range strings.Split(text, "==\n") {
			if strings.Contains(message, "The week from ") {
				summaries = append(summaries, message)
			}
		}
		return summaries
	}
	return w, until, sent
}

func march(day, hour, minute int) time.Time {
	return time.Date(2026, 3, day, hour, minute, 0, 0, time.UTC)
}

// TestWeeklySummary: the owner gets one message in a week, from Monday 08:00 on, in the words of status --week.
func TestWeeklySummary(t *testing.T) {
	t.Parallel()
	w, until, sent := weekly(t)
	if got := sent(); len(got) != 0 {
		t.Errorf("in the week in which it was switched on: %q", got)
	}
	until(march(3, 9, 0))
	w.must("fire", "--scheduled", "daily")
	until(march(9, 7, 58))
	if got := sent(); len(got) != 0 {
		t.Errorf("before the hour: %q", got)
	}
	until(march(9, 8, 0))
	want := w.must("status", "--week")
	until(march(9, 8, 0))
	got := sent()
	if len(got) != 1 || got[0] != want {
		t.Fatalf("%q, want %q", got, want)
	}
	w.wants(got[0], "The week from Mon 2 Mar 00:00 to Mon 9 Mar 00:00\n", "ran: 1 fire (1 ok), 0 turns of conversations\n", "missed: daily 5 (Wed 09:00 to Sun 09:00)\n", "cost: $0.00, $0.00 of $100.00 this month\n")
	for range 7 {
		w.pass(24*time.Hour - 2*time.Minute)
		if got := sent(); len(got) != 0 && !w.clock().After(march(16, 8, 0)) {
			t.Errorf("%s: %q", w.clock(), got)
		}
	}
	if r := w.run("status", "--week", "--short"); r.status != 64 {
		t.Errorf("both: %+v", r)
	}
	w.wants(w.must("status", "--week", "--json"), `"fires":0`, `"missed":[{`, `"per_month":100`)
}

// TestSummaryAfterAPause: what could not be sent on Monday is sent once, when the machine is on again and nothing is paused.
func TestSummaryAfterAPause(t *testing.T) {
	t.Parallel()
	w, until, sent := weekly(t)
	w.must("pause")
	until(march(10, 12, 0))
	if got := sent(); len(got) != 0 {
		t.Errorf("during a pause: %q", got)
	}
	w.must("resume")
	if got := sent(); len(got) != 1 {
		t.Errorf("after the pause: %q", got)
	}
	until(march(24, 23, 0)) // two Mondays without power
	if got := sent(); len(got) != 0 {
		t.Errorf("in quiet hours: %q", got)
	}
	until(march(25, 12, 0))
	if got := sent(); len(got) != 1 {
		t.Errorf("after the power cut: %q", got)
	}
	until(march(29, 12, 0))
	if got := sent(); len(got) != 0 {
		t.Errorf("later in that week: %q", got)
	}
	w.must("config", "set", "summary", "off")
	until(march(30, 9, 0))
	if got := sent(); len(got) != 0 {
		t.Errorf("switched off: %q", got)
	}
	w.must("config", "set", "summary", "weekly")
	if got := sent(); len(got) != 0 {
		t.Errorf("switched on again: %q", got)
	}
}

// TestSummaryAfterACrash: wherever the process is killed that makes the summary, there is one, also if another process delivers it at
// once; nor does a clock that is set back cause another one.
func TestSummaryAfterACrash(t *testing.T) {
	t.Parallel()
	w, until, sent := weekly(t)
	w.must("config", "set", "delivery.command", "false")
	until(march(9, 8, 0))
	before := w.read("state/tick.json")
	w.must("tick")
	const entry, held, week = "state/outbox/summary-2026-03-09.1.jsonl", "state/outbox/.summary-2026-03-09.1.held", `"summary": "2026-03-09"`
	message, noted := w.read(entry), w.read("state/tick.json")
	if message == "" || !strings.Contains(noted, week) {
		t.Fatalf("not queued, or not noted: %s", noted)
	}
	message, _, _ = strings.Cut(message, "\n")
	w.remove(entry) // killed before the week was noted: no process has sent it, and it is made again
	w.write(held, message+"\n")
	w.write("state/tick.json", before)
	w.pass(time.Minute)
	w.must("tick")
	if w.read(entry) == "" || w.read(held) != "" {
		t.Error("before the week was noted: it is not made again")
	}
	w.remove(entry) // killed after that
	w.write(held, message+"\n")
	w.write("state/tick.json", strings.Replace(noted, week, week+`, "release": "summary-2026-03-09.1"`, 1))
	w.pass(2 * time.Hour)
	w.must("config", "set", "delivery.command", "sh", "deliver.sh")
	if got := sent(); len(got) != 1 {
		t.Errorf("after the week was noted: %q", got)
	}
	w.write("state/tick.json", strings.Replace(noted, week, week+`, "release": "summary-2026-03-09.1"`, 1)) // and after it was released
	if got := sent(); len(got) != 0 {
		t.Errorf("after it was delivered: %q", got)
	}
	until(march(9, 7, 0)) // set back
	got := sent()
	until(march(9, 8, 30))
	if got = append(got, sent()...); len(got) != 0 {
		t.Errorf("after the clock was set back: %q", got)
	}
}

// TestSummaryWithoutDelivery: it waits for the next conversation.
func TestSummaryWithoutDelivery(t *testing.T) {
	t.Parallel()
	w, until, _ := weekly(t)
	w.write("config.yaml", "timezone: UTC\nengine: script:script.yaml\nsummary: weekly\n")
	until(march(9, 8, 0))
	w.must("tick")
	w.must("tick")
	if list := w.must("update", "list"); strings.Count(list, "The week from ") != 1 {
		t.Errorf("%s", list)
	}
}
