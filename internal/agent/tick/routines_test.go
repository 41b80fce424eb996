package tick_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// routine writes a routine; more is further lines of its frontmatter.
func (c *clock) routine(id, cron, more string) {
	c.t.Helper()
	c.write(c.home.Path("routines", id+".md"), fmt.Sprintf("---\nid: %s\ncron: %q\nbackground: true\nisolated: true\n%s---\nDo %s.\n", id, cron, more, id))
}

// claimed returns the claims of a routine, oldest first.
func (c *clock) claimed(id string) (list []slot.Claim) {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.home.Slots(), id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".jsonl" { // the claims of a month that are no longer recent
			for claim, err := range store.Lines[slot.Claim](filepath.Join(c.home.Slots(), id, e.Name()), nil) {
				if err != nil {
					c.t.Fatal(e.Name(), err)
				}
				claim.Job = id
				list = append(list, claim)
			}
			continue
		}
		at, _ := time.Parse("20060102T150405Z", e.Name())
		claim, err := c.minute.Runner.Slots.Load(id, at)
		if err != nil {
			c.t.Fatal(e.Name(), err)
		}
		list = append(list, claim)
	}
	return list
}

// slots wants exactly these claims of a routine, as "15:04 outcome", with the day before the time where it is not the first.
func (c *clock) slots(id string, want ...string) {
	c.t.Helper()
	var got []string
	for _, s := range c.claimed(id) {
		day := ""
		if s.Slot.Day() != 2 {
			day = s.Slot.Format("2 ")
		}
		got = append(got, strings.TrimSpace(day+s.Slot.Format("15:04 ")+s.Outcome))
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("at %s: slots %q, want %q", c.now.Format("2 15:04:05"), got, want)
	}
}

// answers is the fire that a tick starts: late when at is not zero.
func (c *clock) answers(id string, at time.Time) (runlog.Record, error) {
	return fire.New(c.minute.Runner).Fire(c.t.Context(), id, fire.Options{Trigger: fire.Trigger{Scheduled: true, Slot: at}})
}

func (c *clock) answer(id string, at time.Time) runlog.Record {
	c.t.Helper()
	r, err := c.answers(id, at)
	if r.ID == "" {
		c.t.Fatal(err)
	}
	return r
}

// unaccounted is what an audit of all that lies behind knows nothing of.
func (c *clock) unaccounted() (list []string) {
	c.t.Helper()
	answers, err := forecast.Audit(c.minute.Runner.Slots, time.Time{}, c.now.Add(-slot.Grace-2*time.Minute), c.minute.Runner.Host.Name, func(slot.Claim) string { return forecast.Unaccounted })
	if err != nil {
		c.t.Fatal(err)
	}
	for _, a := range answers {
		if a.Outcome == forecast.Unaccounted {
			list = append(list, a.Job+a.Slot.Format(" 2 15:04"))
		}
	}
	return list
}

// TestRoutineFires: a file is enough, from the minute in which it is written, and each slot is started once.
func TestRoutineFires(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 9 * * *", "")
	c.wait(20 * time.Second)
	c.starts("a")
	c.wait(20 * time.Second)
	c.starts() // it has a minute to begin
	c.answer("a", time.Time{})
	for range 20 {
		c.wait(time.Minute)
		c.starts()
	}
	c.slots("a", "09:00 ok")
	c.now = c.now.Add(24 * time.Hour).Truncate(time.Hour)
	c.starts("a")
}

// TestRoutineOfEachMinute: a tick that comes a moment earlier in its minute than the last still starts the new slot.
func TestRoutineOfEachMinute(t *testing.T) {
	c := newClock(t)
	c.routine("a", "* * * * *", "")
	for _, late := range []time.Duration{900, 50, 700, 0} {
		c.now = c.now.Truncate(time.Minute).Add(late * time.Millisecond)
		c.starts("a")
		c.answer("a", time.Time{})
		c.wait(time.Minute)
	}
	c.slots("a", "09:00 ok", "09:01 ok", "09:02 ok", "09:03 ok")
}

// on lets the following ticks and fires be those of a machine.
func (c *clock) on(machine string) { c.minute.Runner.Host.Name = machine }

// TestOnlyOnItsHost: two machines share a directory. A routine that is bound to one is started, caught up and recorded as missed by that one,
// also for the time in which only the other one ran.
func TestOnlyOnItsHost(t *testing.T) {
	c := newClock(t)
	c.routine("all", "0 * * * *", "")
	c.routine("a", "0 * * * *", "host: A\n")
	c.routine("late", "30 9 * * *", "host: A\ncatch-up: 12h\n")
	c.remind("once", c.now.Add(time.Hour), "host: A\n")
	c.on("b.example.org")
	c.starts("all")
	c.answer("all", time.Time{})
	c.on("a.example.org")
	c.starts("a")
	c.answer("a", time.Time{})
	c.on("b.example.org")
	if r, err := c.answers("a", time.Time{}); r.ID != "" || !errors.Is(err, slot.ErrNone) {
		t.Errorf("a timer's fire elsewhere: %+v, %v", r, err)
	}
	if r, err := fire.New(c.minute.Runner).Fire(t.Context(), "a", fire.Options{}); r.ID != "" || !errors.Is(err, run.ErrRefused) {
		t.Errorf("a fire by hand elsewhere: %+v, %v", r, err)
	}
	for range 3 * 12 { // hours in which machine A is off
		c.wait(5 * time.Minute)
		for _, id := range c.tick() {
			if id != "all" {
				t.Errorf("at %s the other machine started %s", c.now.Format("15:04"), id)
			}
			c.answer(id, time.Time{})
		}
	}
	c.has("once.md")
	c.slots("a", "09:00 ok")
	c.slots("late")
	c.wait(5 * time.Minute)
	c.on("a.example.org")
	if got := c.tick(); !slices.Equal(got, []string{"once", "late for 09:30", "a"}) {
		t.Errorf("the machine of the routine is on again: %q", got)
	}
	c.answer("a", time.Time{})
	c.on("b.example.org")
	c.wait(10 * time.Minute)
	c.starts()
	c.on("a.example.org")
	c.answer("late", time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC))
	c.slots("a", "09:00 ok", "10:00 missed", "11:00 missed", "12:00 ok")
	c.slots("late", "09:30 ok")
	c.slots("all", "09:00 ok", "10:00 ok", "11:00 ok", "12:00 ok")
	if got := c.unaccounted(); got != nil {
		t.Errorf("unaccounted: %q", got)
	}
}

// TestElsewhereInTheAudit: of a slot that another machine with its own directory runs, the audit knows nothing, and says so.
func TestElsewhereInTheAudit(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "host: a\n")
	c.on("b")
	for range 3 * 12 {
		c.starts()
		c.wait(5 * time.Minute)
	}
	answers, err := forecast.Audit(c.minute.Runner.Slots, time.Time{}, c.now, "b", func(slot.Claim) string { return "" })
	if err != nil || len(answers) != 3 {
		t.Fatal(answers, err)
	}
	for _, a := range answers {
		if a.Outcome != forecast.Elsewhere || a.Problem() || a.Note() != "only a runs it, and no record of it is kept here" {
			t.Errorf("%+v: %s", a, a.Note())
		}
	}
	c.slots("a")
}

// TestNeverEarly: a tick in the second before a slot leaves it alone.
func TestNeverEarly(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 9 * * *", "")
	c.now = c.now.Add(-time.Nanosecond)
	c.starts()
	c.wait(time.Nanosecond)
	c.starts("a")
}

// TestSlotBeforeTheFile: a routine that is written, switched on or moved after a slot does not fire for it.
func TestSlotBeforeTheFile(t *testing.T) {
	c := newClock(t)
	c.routine("off", "0 9 * * *", "enabled: false\n")
	c.routine("moved", "0 8 * * *", "")
	c.starts()
	c.wait(5 * time.Minute)
	c.routine("new", "0 9 * * *", "catch-up: 12h\n")
	c.routine("off", "0 9 * * *", "catch-up: 12h\n")
	c.routine("moved", "0 9 * * *", "catch-up: 12h\n")
	for range 30 {
		c.starts()
		c.wait(time.Minute)
	}
	for _, id := range []string{"new", "off", "moved"} {
		c.slots(id)
	}
	c.now = time.Date(2026, 3, 3, 9, 0, 0, 0, time.UTC)
	c.starts("moved", "new", "off")
}

// TestTogether: two ticks and a timer's fire at once make one run.
func TestTogether(t *testing.T) {
	for range 10 {
		c := newClock(t)
		c.routine("a", "0 9 * * *", "")
		var all sync.WaitGroup
		c.minute.Start = func(j job.Job) error {
			all.Go(func() {
				if _, err := c.answers(j.ID, time.Time{}); err != nil && !errors.Is(err, slot.ErrClaimed) {
					t.Error(err)
				}
			})
			return nil
		}
		for range 2 {
			all.Go(func() {
				if err := c.minute.Pass(t.Context()); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() { _ = c.minute.Start(job.Job{ID: "a"}) })
		}
		all.Wait()
		records := 0
		for r, err := range c.minute.Runner.Runs.Since(time.Time{}) {
			if records++; err != nil || records > 1 || r.Outcome != runlog.OK {
				t.Fatalf("record %d: %+v, %v", records, r, err)
			}
		}
		if records != 1 {
			t.Fatalf("%d records", records)
		}
		c.slots("a", "09:00 ok")
	}
}

// TestMissed: what nobody answered is noted after fifteen minutes, when the machine was off as well, and so nothing is unaccounted
// for. Without catch-up nothing is run.
func TestMissed(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.wait(time.Second)
	c.starts("a")
	c.answer("a", time.Time{})
	c.now = time.Date(2026, 3, 2, 12, 20, 0, 0, time.UTC)
	if got := c.unaccounted(); !slices.Equal(got, []string{"a 2 10:00", "a 2 11:00", "a 2 12:00"}) {
		t.Errorf("%q", got)
	}
	c.starts()
	c.slots("a", "09:00 ok", "10:00 missed", "11:00 missed", "12:00 missed")
	if got := c.unaccounted(); got != nil {
		t.Errorf("%q", got)
	}
	c.fire("a") // by the owner, for no slot
	c.slots("a", "09:00 ok", "10:00 missed", "11:00 missed", "12:00 missed")
}

// TestStillInTime: a machine that comes back within fifteen minutes runs the slot.
func TestStillInTime(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.tick()
	c.now = time.Date(2026, 3, 2, 11, 15, 0, 0, time.UTC)
	c.starts("a")
	c.answer("a", time.Time{})
	c.slots("a", "09:00 missed", "10:00 missed", "11:00 ok")
}

// TestCatchUp: the newest slot that was missed is run once, late, and the agent is told so.
func TestCatchUp(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "catch-up: 3h\n")
	c.routine("b", "0 * * * *", "catch-up: 10m\n") // less than the grace that every slot has
	c.starts("a", "b")
	prompts := c.prompts()
	c.answer("a", time.Time{})
	c.answer("b", time.Time{})
	c.now = time.Date(2026, 3, 2, 13, 30, 0, 0, time.UTC)
	c.plans("start a")
	c.starts("a for 13:00")
	c.slots("a", "09:00 ok", "10:00 missed", "11:00 missed", "12:00 missed")
	c.starts() // it has a minute to begin
	r := c.answer("a", time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC))
	if text := (*prompts)[len(*prompts)-1]; !strings.Contains(text, "[late: was scheduled for 1:00 PM") || r.Outcome != runlog.OK {
		t.Errorf("%s %q", r.Outcome, text)
	}
	for range 3 {
		c.wait(time.Minute)
		c.starts()
	}
	c.slots("a", "09:00 ok", "10:00 missed", "11:00 missed", "12:00 missed", "13:00 ok")
	c.slots("b", "09:00 ok", "10:00 missed", "11:00 missed", "12:00 missed", "13:00 missed")
	if got := c.unaccounted(); got != nil {
		t.Errorf("%q", got)
	}
}

// prompts gathers what agents are told.
func (c *clock) prompts() *[]string {
	list := &[]string{}
	c.minute.Runner.Engines = func(string) (engine.Engine, error) {
		return listening{c.engine, list}, nil
	}
	return list
}

// listening is an engine that keeps what it is told.
type listening struct {
	engine.Engine
	heard *[]string
}

func (e listening) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	*e.heard = append(*e.heard, r.Input.Prompt)
	return e.Engine.Run(ctx, r, tools, sink)
}

// TestCatchUpAndDue: with a slot that is due anyway there is one run, for that one.
func TestCatchUpAndDue(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "catch-up: 3h\n")
	c.starts("a")
	c.answer("a", time.Time{})
	c.now = time.Date(2026, 3, 2, 11, 5, 0, 0, time.UTC)
	c.starts("a")
	c.slots("a", "09:00 ok", "10:00 missed")
}

// TestCatchUpTooLate: a slot older than catch-up is missed.
func TestCatchUpTooLate(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 9 * * *", "catch-up: 3h\n")
	c.now = c.now.Add(-time.Hour)
	c.starts()
	c.now = time.Date(2026, 3, 2, 12, 0, 1, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 missed")
}

// TestCatchUpThatDoesNotBegin is tried again, and missed in the end.
func TestCatchUpThatDoesNotBegin(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 9 * * *", "catch-up: 1h\n")
	c.routine("b", "30 9 * * *", "")
	c.now = c.now.Add(-time.Hour)
	c.starts()
	c.now = time.Date(2026, 3, 2, 9, 50, 0, 0, time.UTC)
	c.starts("a for 09:00")
	c.wait(time.Minute)
	c.starts("a for 09:00")
	c.slots("a")
	c.now = time.Date(2026, 3, 2, 10, 0, 1, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 missed")
	c.slots("b", "09:30 missed")
}

// TestCatchUpOfMany: no more late fires begin in one minute than reminders do.
func TestCatchUpOfMany(t *testing.T) {
	c := newClock(t)
	for i := range 25 {
		c.routine(fmt.Sprintf("r%02d", i), "0 9 * * *", "catch-up: 1d\n")
	}
	c.now = c.now.Add(-time.Hour)
	c.starts()
	c.now = c.now.Add(5 * time.Hour)
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, want := range []int{10, 10, 5, 0} {
		started := c.tick()
		if len(started) != want {
			t.Fatalf("%q started, want %d", started, want)
		}
		for _, s := range started {
			id, _, _ := strings.Cut(s, " ")
			c.answer(id, at)
		}
		c.wait(time.Minute)
	}
	if got := c.unaccounted(); got != nil {
		t.Errorf("%q", got)
	}
}

// TestVoidClaim: a claim whose process was killed before its run began is started again within fifteen minutes, caught up with
// later, or missed.
func TestVoidClaim(t *testing.T) {
	nine := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for name, s := range map[string]struct {
		more  string
		later time.Duration
		want  []string
		ends  string
	}{
		"at once":   {"", time.Minute, []string{"a"}, "09:00"},
		"caught up": {"catch-up: 1h\n", 20 * time.Minute, []string{"a for 09:00"}, "09:00"},
		"missed":    {"", 20 * time.Minute, nil, "09:00 missed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock(t)
			c.routine("a", "0 9 * * *", s.more)
			c.starts("a")
			if err := c.minute.Runner.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Run: "20260302T090000.000Z-abcdef", PID: 1 << 30}); err != nil {
				t.Fatal(err)
			}
			c.wait(s.later)
			c.starts(s.want...)
			c.slots("a", s.ends)
		})
	}
}

func TestPausedRoutine(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "catch-up: 3h\n")
	if err := c.minute.Runner.Spend.Pause(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	c.starts()
	c.slots("a", "09:00 paused")
	c.plans()
	if err := c.minute.Runner.Spend.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	c.starts() // it is not made up for
	c.now = c.now.Add(30 * time.Minute)
	c.starts()
	c.now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	c.plans("start a")
	c.starts("a")
}

func TestUnapprovedRoutine(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "allowed-tools: [WebFetch]\ncatch-up: 3h\n")
	c.starts()
	c.slots("a", "09:00 refused")
	c.now = time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 refused", "10:00 refused")
	if got := c.updates(); len(got) != 1 || !strings.Contains(got[0], "ollim approve a") {
		t.Errorf("updates %q, want one that says how to approve", got)
	}
	c.approve("a", "owner")
	c.now = time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)
	c.starts("a")
}

func TestRoutineSwitchedOff(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	c.answer("a", time.Time{})
	c.wait(10 * time.Minute)
	c.routine("a", "0 * * * *", "enabled: false\n")
	c.starts()
	c.now = c.now.Add(5 * time.Hour)
	c.starts()
	c.slots("a", "09:00 ok")
	if got := c.unaccounted(); got != nil {
		t.Errorf("%q", got)
	}
}

// TestRoutineGone: what a deleted routine missed before is noted, and nothing after.
func TestRoutineGone(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	c.answer("a", time.Time{})
	c.now = time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC)
	if err := os.Remove(c.home.Path("routines", "a.md")); err != nil {
		t.Fatal(err)
	}
	c.starts()
	c.now = time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 ok", "10:00 missed")
}

// TestRoutineUnreadable: a file that is spoilt for a while is not gone, and what it misses is told.
func TestRoutineUnreadable(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	c.answer("a", time.Time{})
	c.write(c.home.Path("routines", "a.md"), "---\nid: a\ncron: never\n---\nx\n")
	c.now = time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 ok", "10:00 missed")
}

// TestGoneBesideABadFile: one bad file never affects another.
func TestGoneBesideABadFile(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	c.answer("a", time.Time{})
	c.write(c.home.Path("reminders", "bad.md"), "x")
	if err := os.Remove(c.home.Path("routines", "a.md")); err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	c.starts()
	c.now = time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 ok")
}

// TestConfiguredZoneChanges: what was answered stays so, and the past is read as it was.
func TestConfiguredZoneChanges(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 9 * * *", "catch-up: 12h\n")
	c.starts("a")
	c.answer("a", time.Time{})
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	c.now = time.Date(2026, 3, 2, 16, 0, 0, 0, time.UTC) // nine there was at 14:00
	c.minute.Runner.Zone = newYork
	c.starts()
	if got := c.unaccounted(); got != nil {
		t.Errorf("%q", got)
	}
	c.now = time.Date(2026, 3, 3, 14, 0, 0, 0, time.UTC)
	c.starts("a")
}

// TestOneThatDoesNotBegin: a late slot that never begins keeps no other from being accounted for, and is missed in the end.
func TestOneThatDoesNotBegin(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 9 * * *", "catch-up: 2h\n")
	c.routine("b", "0 * * * *", "")
	c.starts("a", "b")
	c.now = c.now.Add(20 * time.Minute)
	c.starts("a for 09:00")
	for range 10 { // hours
		c.wait(time.Hour)
		c.tick()
	}
	c.slots("b", "09:00 missed", "10:00 missed", "11:00 missed", "12:00 missed", "13:00 missed", "14:00 missed", "15:00 missed", "16:00 missed", "17:00 missed", "18:00 missed", "19:00 missed")
	c.slots("a", "09:00 missed")
}

// TestScheduleNotNoted: the past cannot be told, and routines fire all the same.
func TestScheduleNotNoted(t *testing.T) {
	c := newClock(t)
	if err := os.MkdirAll(c.home.Schedules(), 0o700); err != nil {
		t.Fatal(err)
	}
	c.routine("a", "0 * * * *", "")
	if err := c.minute.Pass(t.Context()); err == nil || !slices.Equal(c.started, []string{"a"}) {
		t.Errorf("%v, started %q", err, c.started)
	}
}

// TestRoutineClockSetBack: slots that were answered are not answered again, those of the hour before are due as ever, and nothing is
// unaccounted for when the clock ran ahead for a while.
func TestRoutineClockSetBack(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	c.answer("a", time.Time{})
	c.now = c.now.Add(-30 * time.Minute)
	c.starts()
	c.now = time.Date(2026, 3, 2, 9, 0, 5, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 ok")

	c.now = c.now.AddDate(0, 1, 0)
	c.starts("a") // 09:00 of that day
	c.now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	c.starts("a")
	c.answer("a", time.Time{})
	c.now = time.Date(2026, 3, 2, 11, 30, 0, 0, time.UTC)
	c.starts()
	if got := c.unaccounted(); got != nil {
		t.Errorf("%q", got)
	}
	if c, err := c.minute.Runner.Slots.Load("a", time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)); err != nil || c.Outcome != slot.Missed {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestFortyDaysOff: one run, for the slot that is due, and the past is accounted for in bounded parts, a day in a minute.
func TestFortyDaysOff(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "catch-up: 2d\n")
	c.starts("a")
	c.answer("a", time.Time{})
	c.now = c.now.AddDate(0, 0, 40).Add(5 * time.Minute)
	c.starts("a")
	c.answer("a", time.Time{})
	if n := c.claims("a"); n > 3+24 {
		t.Fatalf("%d claims after the first minute", n)
	}
	for range 42 {
		c.wait(time.Minute)
		c.starts()
	}
	if n := c.claims("a"); n != 40*24+1 {
		t.Errorf("%d claims", n)
	}
	if got := c.unaccounted(); got != nil {
		t.Errorf("%d unaccounted for, the first %s", len(got), got[0])
	}
}

// TestMissesOfOneMinute: no more are noted than a minute can bear, and none is lost.
func TestMissesOfOneMinute(t *testing.T) {
	c := newClock(t)
	c.routine("a", "* * * * *", "")
	c.routine("b", "* * * * *", "")
	c.tick()
	c.now = c.now.Add(10 * time.Hour)
	c.tick()
	if n := c.claims("a", "b"); n != 1000 {
		t.Errorf("%d claims", n)
	}
	c.wait(time.Minute)
	c.tick()
	if got := c.unaccounted(); got != nil {
		t.Errorf("%d unaccounted for, the first %s", len(got), got[0])
	}
}

// claims counts what the ledger has of some routines.
func (c *clock) claims(ids ...string) (n int) {
	c.t.Helper()
	for _, id := range ids {
		n += len(c.claimed(id))
	}
	return n
}

// TestNotesAreMadeAgain: what a power cut took of the last minutes' notes.
func TestNotesAreMadeAgain(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	c.answer("a", time.Time{})
	c.now = time.Date(2026, 3, 2, 10, 15, 1, 0, time.UTC)
	c.starts()
	c.slots("a", "09:00 ok", "10:00 missed")
	claim := c.home.State("slots", "a", "20260302T100000Z")
	if err := os.Remove(claim); err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	c.starts()
	c.slots("a", "09:00 ok", "10:00 missed")
	if _, err := os.Stat(claim); errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestMissedTold: the owner hears of the slots that were missed while the machine was off, also with a clock that goes on during a tick.
func TestMissedTold(t *testing.T) {
	for _, step := range []time.Duration{0, time.Microsecond} {
		c := newClock(t)
		c.step = step
		c.routine("a", "0 * * * *", "")
		c.starts("a")
		c.wait(3*time.Hour + 20*time.Minute)
		c.tick()
		c.wait(time.Minute)
		c.tick()
		if got := c.updates(); len(got) != 1 || !strings.HasPrefix(got[0], "4 slots were missed from Mon 2 Mar 09:00 to Mon 2 Mar 12:00: ") {
			t.Errorf("with steps of %s the owner is told %q", step, got)
		}
	}
}

// TestMissedAtAWrongDate: slots that were counted as missed while the date was wrong are still to come, and nothing is said of them.
func TestMissedAtAWrongDate(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	truth := c.now.Add(time.Minute)
	c.now = truth.AddDate(5, 0, 0)
	c.tick()
	c.now = truth
	for range 3 {
		c.tick()
		c.wait(time.Minute)
	}
	c.tells()
}

// TestMissedOnceADay: a machine that sleeps many times a day sends one message a day about what it missed.
func TestMissedOnceADay(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 * * * *", "")
	c.starts("a")
	for range 13 { // to Tuesday, 12:00
		c.wait(2*time.Hour + 10*time.Minute)
		for range 3 {
			c.tick()
			c.wait(time.Minute)
		}
	}
	got := c.updates()
	if len(got) != 2 || !strings.HasPrefix(got[0], "2 slots were missed from Mon 2 Mar 09:00 to Mon 2 Mar 10:00") || !strings.HasPrefix(got[1], "25 slots were missed from Mon 2 Mar 11:00 to Tue 3 Mar 11:00") {
		t.Errorf("the owner is told %q", got)
	}
}

// TestSeen: each tick is seen at once, also one that notes nothing; without the lock file's time it is known to five minutes.
func TestSeen(t *testing.T) {
	c := newClock(t)
	seen := func() time.Time {
		t.Helper()
		at, err := tick.Seen(c.home)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if at := seen(); !at.IsZero() {
		t.Errorf("before the first tick: %v", at)
	}
	for range 7 {
		if c.tick(); !seen().Equal(c.now) {
			t.Errorf("at %v: %v", c.now, seen())
		}
		c.now = c.now.Add(time.Minute)
	}
	if err := os.Remove(c.home.Lock("tick")); err != nil {
		t.Fatal(err)
	}
	if ago := c.now.Sub(seen()); ago <= 0 || ago > tick.Quiet {
		t.Errorf("without the lock file: %v ago", ago)
	}
}

// TestTypedTickIsNotSeen: a tick that somebody typed does its work, and does not show that a scheduler runs ticks.
func TestTypedTickIsNotSeen(t *testing.T) {
	c := newClock(t)
	typed := func() time.Time {
		t.Helper()
		c.minute.Typed = true
		c.tick()
		c.minute.Typed = false
		at, err := tick.Seen(c.home)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for range 2 {
		if at := typed(); !at.IsZero() {
			t.Errorf("before the first tick of a scheduler: %v", at)
		}
		c.now = c.now.Add(10 * time.Minute)
	}
	c.tick()
	scheduled := c.now
	for range 3 {
		c.now = c.now.Add(10 * time.Minute)
		if at := typed(); !at.Equal(scheduled) {
			t.Errorf("after the scheduler's at %v: %v", scheduled, at)
		}
	}
}

// TestRecordsAreLookedAtOnce: the first tick after the end of a run sees that its slot has no outcome, however long no tick came. Later
// ticks do not read the record again.
func TestRecordsAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		off     time.Duration // from the last tick before the end of the run to the next
		written time.Duration // before that next tick
		outcome string
	}{
		"the next tick":  {time.Minute, 30 * time.Second, "ok"},
		"after a gap":    {40 * time.Minute, 39 * time.Minute, "ok"},
		"seen before":    {time.Minute, 10 * time.Minute, ""},
		"clock set back": {-time.Minute, 10 * time.Minute, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock(t)
			c.routine("r", "0 9 * * *", "")
			c.tick()
			r := c.answer("r", time.Time{})
			lost := c.claimed("r")[0]
			lost.Outcome = ""
			c.wait(time.Minute)
			c.tick()
			if err := c.minute.Runner.Slots.Rewrite(lost); err != nil {
				t.Fatal(err)
			}
			c.wait(tc.off)
			at := c.now.Add(-tc.written)
			if err := os.Chtimes(c.home.Run(r.ID, "run.json"), at, at); err != nil {
				t.Fatal(err)
			}
			c.tick()
			c.slots("r", strings.TrimSpace("09:00 "+tc.outcome))
		})
	}
}
