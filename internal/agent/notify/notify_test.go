package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/update"
)

// owner is what a phone shows: the messages that reached the outbox.
type owner struct {
	on   bool
	got  []outbox.Message
	seen int
	fail error
}

func (o *owner) Configured() bool { return o.on }

func (o *owner) Send(_ context.Context, m outbox.Message) (outbox.Receipt, error) {
	if o.fail != nil {
		return outbox.Receipt{}, o.fail
	}
	o.got = append(o.got, m)
	return outbox.Receipt{Fate: outbox.Queued}, nil
}

type story struct {
	*testing.T
	Book
	owner *owner
	clock time.Time
}

func newStory(t *testing.T, at string) *story {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	s := &story{T: t, owner: &owner{on: true}}
	s.clock, err = time.ParseInLocation("2006-01-02 15:04", at, zone)
	if err != nil {
		t.Fatal(err)
	}
	home := paths.Dir(t.TempDir())
	if err := store.MkdirAll(home.State()); err != nil {
		t.Fatal(err)
	}
	disk := store.Disk{Now: func() time.Time { return s.clock }, Warn: func(text string) { t.Error(text) }}
	facts := ledger.New(home, disk, notice.Facts(), update.Facts())
	s.Book = Book{
		Notices: notice.Book{Ledger: facts}, Updates: update.Box{Ledger: facts, Home: home, Disk: disk, Zone: zone},
		Sender: s.owner, Zone: zone, Quiet: timeparse.Span{From: 22 * 60, To: 7 * 60}, Random: rand.Reader, Now: disk.Now,
	}
	return s
}

func (s *story) open(c Cause) {
	s.Helper()
	if _, err := s.Open(context.Background(), c); err != nil {
		s.Error(err)
	}
}

func (s *story) closes(key, how string) {
	s.Helper()
	if err := s.Close(context.Background(), key, how); err != nil {
		s.Error(err)
	}
}

// pass lets time pass, with a tick each minute, and while names what happens at each.
func (s *story) pass(d time.Duration, while func()) {
	s.Helper()
	for end := s.clock.Add(d); s.clock.Before(end); {
		s.clock = s.clock.Add(time.Minute)
		if while != nil {
			while()
		}
		if err := s.Sweep(context.Background()); err != nil {
			s.Fatal(err)
		}
	}
}

// hears compares the new messages, one line each, with what is wanted; %s of the clock is not in them.
func (s *story) hears(want ...string) {
	s.Helper()
	fresh := s.owner.got[s.owner.seen:]
	s.owner.seen = len(s.owner.got)
	for i, m := range fresh {
		if i >= len(want) {
			s.Errorf("%s: one more message: %q", s.clock.Format("Mon 15:04"), m.Text)
		} else if text := strings.ReplaceAll(m.Text, "\n", " | "); !strings.Contains(text, want[i]) {
			s.Errorf("%s: message %q, want %q", s.clock.Format("Mon 15:04"), text, want[i])
		}
	}
	if len(fresh) < len(want) {
		s.Errorf("%s: %d messages, want %q", s.clock.Format("Mon 15:04"), len(fresh), want)
	}
}

func (s *story) updates(want int) {
	s.Helper()
	list, err := s.Updates.Peek(context.Background())
	if err != nil || len(list) != want {
		s.Errorf("updates: %v, %v, want %d", list, err, want)
	}
}

func revoked(jobs ...int) Cause {
	c := Cause{
		Kind: Key, Subject: "native", Name: "The key of native", Text: "The service refuses the key: 401",
		Remedy: "`ollim secret set engine.ANTHROPIC_API_KEY`",
	}
	for _, n := range jobs {
		c.Jobs = append(c.Jobs, Affected{ID: fmt.Sprint("job", n), Name: fmt.Sprint("Job ", n), Count: notice.Count{Failed: 1}})
	}
	return c
}

// One revoked key is one cause, whatever number of jobs fail by it, for three days.
func TestKeyRevokedForDays(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	for n := range 18 {
		s.open(revoked(n))
	}
	s.hears("The service refuses the key: 401 | It concerns: Job 0 | To do: `ollim secret set engine.ANTHROPIC_API_KEY`")
	hourly := func() {
		if s.clock.Minute() == 0 && s.clock.Hour()%6 == 0 {
			for n := range 18 {
				s.open(revoked(n))
			}
		}
	}
	s.pass(24*time.Hour-time.Minute, hourly)
	s.hears()
	s.pass(time.Minute, hourly)
	s.hears("Since Mon 2 Mar 10:00: The service refuses the key: 401 | So far 90 fires did not do their work: Job 0 5, Job 1 5")
	s.pass(24*time.Hour, hourly)
	s.hears("Since Mon 2 Mar 10:00")
	s.clock = s.clock.Add(30 * time.Second)
	s.closes(revoked().Key(), "")
	s.hears("The key of native works again; 162 fires did not do their work: ")
	s.closes(revoked().Key(), "")
	s.pass(3*time.Hour, nil)
	s.hears()
	if !s.Notices.Empty() {
		t.Error("the cause is not forgotten")
	}
	s.updates(0)
}

// A cause that comes and goes is at most one message about its return in an hour, and none about ends of what was not said.
func TestFlapping(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	c := Cause{Kind: Service, Subject: "native", Name: "The service of native", Text: "The service is overloaded"}
	for i := range 12 * 60 {
		s.clock = s.clock.Add(time.Minute)
		if i%10 < 5 {
			s.open(c)
		} else {
			s.closes(c.Key(), "")
		}
		if err := s.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.owner.got); n < 2 || n > 24 {
		t.Errorf("%d messages in 12 hours: %v", n, s.owner.got)
	}
}

func TestQuietHours(t *testing.T) {
	s := newStory(t, "2026-03-02 23:00")
	s.open(Cause{Kind: File, Subject: "routines/a.md", Name: "routines/a.md", Text: "A job file is invalid: routines/a.md", Remedy: "`ollim check`"})
	s.open(Cause{Kind: Job, Subject: "b", Name: "Backup", Text: "Backup failed: boom", Remedy: "`ollim run log b`"})
	s.updates(1) // the file, for the conversation
	s.open(revoked(1))
	s.hears("The service refuses the key: 401")
	s.pass(2*time.Hour, nil)
	s.closes("job b", "")
	s.closes(revoked().Key(), "") // good news can wait
	s.pass(5*time.Hour+59*time.Minute, nil)
	s.hears()
	s.pass(time.Minute, nil)
	s.hears("4 notices: |  | Mon 23:00  A job file is invalid: routines/a.md | To do: `ollim check` |  | " +
		"Mon 23:00  Backup failed: boom | To do: `ollim run log b` |  | Tue 01:00  Backup works again |  | Tue 01:00  The key of native works again; 1 fire did not")
	s.pass(time.Hour, nil)
	s.hears()
}

// The limit of a day ends by itself.
func TestUntil(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	c := Cause{Kind: Limit, Subject: "per-day", Name: "The day's spending limit", Text: "The day's spending limit is reached", Until: s.clock.Add(14 * time.Hour)}
	s.open(c)
	s.hears("The day's spending limit is reached")
	s.pass(13*time.Hour, func() { s.open(c) })
	s.hears()
	s.pass(9*time.Hour, nil)
	s.hears("The day's spending limit no longer stops runs")
}

func TestNoDelivery(t *testing.T) {
	s := newStory(t, "2026-03-02 23:00")
	s.owner.on = false
	s.open(revoked(1))
	s.updates(1)
	s.pass(time.Hour, nil)
	s.open(revoked(1)) // it failed again
	s.pass(33*time.Hour, nil)
	s.updates(2) // the reminder
	s.closes(revoked().Key(), "")
	s.updates(3)
	s.hears()
}

// A message that could not be put into the outbox is sent by the next Sweep.
func TestOutboxFails(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	s.owner.fail = context.DeadlineExceeded
	if _, err := s.Open(context.Background(), revoked(1)); err == nil {
		t.Error("no error")
	}
	s.owner.fail = nil
	s.pass(2*time.Minute, nil)
	s.hears("The service refuses the key: 401")
}

// A message of a run has the same id at each attempt, so that the outbox does not take it twice.
func TestSameIDAgain(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	n := 0
	s.Number = func(_ context.Context, run, _ string) (string, error) {
		n++
		return fmt.Sprint(run, ".", n), nil
	}
	s.owner.fail = context.DeadlineExceeded
	c := revoked(1)
	c.Run = "r"
	if _, err := s.Open(context.Background(), c); err == nil {
		t.Error("no error")
	}
	s.owner.fail = nil
	s.pass(2*time.Minute, nil)
	s.hears("The service refuses the key: 401")
	if got := s.owner.got[0].ID; got != "r.1" || n != 1 {
		t.Errorf("message %s after %d numbers, want r.1", got, n)
	}
}

func TestDropAndTell(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	s.open(Cause{Kind: Job, Subject: "a", Name: "A", Text: "A failed"})
	s.hears("A failed")
	if err := s.Drop(context.Background(), "job a"); err != nil {
		t.Error(err)
	}
	s.pass(30*time.Hour, nil)
	s.hears()
	news := Cause{Kind: Slots, Subject: "off", Name: "Slots", Text: "3 slots were missed: ollim tick did not run", Remedy: "`ollim schedule audit`"}
	for range 3 {
		if err := s.Tell(context.Background(), news); err != nil {
			t.Error(err)
		}
	}
	s.hears("3 slots were missed")
	s.pass(30*time.Hour, nil)
	s.hears()
}

// TestClockSetBack: what was said by a clock that was years ahead keeps nothing from being said.
func TestClockSetBack(t *testing.T) {
	s := newStory(t, "2030-03-02 10:00")
	lost := Cause{Kind: Slots, Subject: "missed", Name: "Missed slots", Text: "3 slots were missed"}
	s.open(revoked(1))
	s.closes(revoked().Key(), "")
	if err := s.Tell(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	s.hears("refuses the key", "works again", "3 slots were missed")
	s.clock = s.clock.AddDate(-4, 0, 0)
	s.open(revoked(1))
	if err := s.Tell(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	s.hears("refuses the key", "3 slots were missed")
	s.clock = s.clock.AddDate(-1, 0, 0)
	s.open(revoked(1))
	s.pass(time.Hour, nil)
	s.hears("Since ")
}

// Keep opens what holds now, closes what does not any more, and leaves other kinds alone.
func TestKeep(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	s.open(Cause{Kind: Job, Subject: "a", Name: "A", Text: "A failed"})
	s.hears("A failed")
	monitor := Cause{Kind: Bill, Subject: "monitor", Name: "The cost of monitor", Text: "a day costs $0.40, a week before it was $0.20"}
	month := Cause{Kind: Bill, Subject: "the month", Name: "The month's spending", Text: "the limit will be reached"}
	keep := func(now ...Cause) {
		t.Helper()
		if err := s.Keep(context.Background(), Bill, now, "is within bounds again"); err != nil {
			t.Error(err)
		}
	}
	keep(monitor)
	s.hears("a day costs $0.40")
	monitor.Text = "a day costs $0.45, a week before it was $0.20"
	keep(monitor, month)
	s.hears("the limit will be reached")
	keep(month)
	s.hears("The cost of monitor is within bounds again")
	keep(month)
	keep()
	s.hears("The month's spending is within bounds again")
	if open, err := s.OpenCauses(); len(open) != 1 || !open["job a"].Open() || err != nil {
		t.Errorf("%v, %v", open, err)
	}
}

// Several invalid files that are found at one time are one message, and so are several that can be used again. A file that was removed is
// not reported.
func TestFilesTogether(t *testing.T) {
	s := newStory(t, "2026-03-02 10:00")
	home := s.Updates.Home
	finds := func(want int, names ...string) {
		t.Helper()
		still := map[string]bool{}
		var found []Cause
		for _, name := range names {
			c := BadFile(name, name+":1: no front matter")
			if err := store.MkdirAll(home.Path("routines")); err != nil {
				t.Fatal(err)
			}
			if err := store.Replace(home.Path(name), []byte("broken")); err != nil {
				t.Fatal(err)
			}
			c.Jobs = []Affected{{ID: name, Count: notice.Count{Missed: 2}}}
			still[c.Key()], found = true, append(found, c)
		}
		told, err := s.OpenFiles(context.Background(), found)
		if err = errors.Join(err, s.CloseFiles(context.Background(), func(key string) bool { return still[key] }, home)); len(told) != want || err != nil {
			t.Errorf("the owner is notified about %q, %v", told, err)
		}
	}
	finds(3, "routines/a.md", "routines/b.md", "routines/c.md")
	s.hears("3 job files are invalid and cannot run until they are corrected (see `ollim check`): routines/a.md, routines/b.md, routines/c.md | It concerns: ")
	finds(0, "routines/a.md", "routines/b.md", "routines/c.md")
	if err := os.Remove(home.Path("routines/c.md")); err != nil {
		t.Fatal(err)
	}
	finds(0)
	s.hears("2 job files can be used again: routines/a.md, routines/b.md; 8 slots were missed: ")
	s.updates(2)
	finds(2, "routines/a.md", "routines/b.md")
	s.hears()
	s.updates(3) // back within an hour
	finds(1, "routines/a.md", "routines/b.md", "routines/d.md")
	s.hears("A job file is invalid and cannot run until it is corrected (see `ollim check`): routines/d.md:1: no front matter")
	if err := os.Remove(home.Path("routines/d.md")); err != nil {
		t.Fatal(err)
	}
	finds(0, "routines/a.md", "routines/b.md")
	s.hears()
	s.owner.on = false
	s.pass(25*time.Hour, nil)
	s.updates(6) // that they are back, and the day's reminder, are one update each
}
