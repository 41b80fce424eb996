package slot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, map[string]func([]string) error{"claim": claim}) }

// claim claims one instant as soon as standard input ends, and prints whether it got it.
func claim(args []string) error {
	_, _ = io.Copy(io.Discard, os.Stdin)
	err := newBook(paths.Dir(args[0]), noon).Claim(Claim{Job: "a", Slot: noon, Run: args[1]})
	if errors.Is(err, ErrClaimed) {
		err = nil
	} else if err == nil {
		fmt.Print("won")
	}
	return err
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func newBook(dir paths.Dir, now time.Time) Book {
	return Book{Home: dir, Disk: store.Disk{Now: func() time.Time { return now }, Warn: func(string) {}}, Zone: time.UTC}
}

// TestOneOfManyProcesses: of sixteen that claim one instant at once exactly one gets it, and the claim is its.
func TestOneOfManyProcesses(t *testing.T) {
	dir := t.TempDir()
	begin, wait, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer begin.Close()
	var mu sync.Mutex
	var won []string
	var all sync.WaitGroup
	for i := range 16 {
		id := string(rune('a' + i))
		cmd := testkit.Child(t, "claim", dir, id)
		var said strings.Builder
		cmd.Stdin, cmd.Stdout = begin, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			if said.String() == "won" {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, id)
			}
		})
	}
	if err := wait.Close(); err != nil { // for all at once
		t.Fatal(err)
	}
	all.Wait()
	c, err := newBook(paths.Dir(dir), noon).Load("a", noon)
	if err != nil || len(won) != 1 || c.Run != won[0] {
		t.Errorf("%q won, the claim is of %q, %v", won, c.Run, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "state", "slots", "a"))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want the claim and no draft", entries, err)
	}
}

func TestClaim(t *testing.T) {
	b := newBook(paths.Dir(t.TempDir()), noon.Add(3*time.Second))
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	b.Zone = paris
	if _, err := b.Load("a", noon); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, c := range []Claim{
		{Job: "a", Slot: noon, Run: "r", PID: 7, PIDStart: 8},
		{Job: "b", Slot: noon, Outcome: Missed},
	} {
		if err := b.Claim(c); err != nil {
			t.Fatal(err)
		}
		for _, again := range []Claim{c, {Job: c.Job, Slot: c.Slot.In(paris), Outcome: Missed}, {Job: c.Job, Slot: c.Slot, Run: "s"}} {
			if err := b.Claim(again); !errors.Is(err, ErrClaimed) {
				t.Errorf("%s a second time: %v", c.Job, err)
			}
		}
		got, err := b.Load(c.Job, noon)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Slot.Equal(noon) || !got.Claimed.Equal(noon.Add(3*time.Second)) {
			t.Errorf("%+v", got)
		}
		if got.Slot, got.Claimed = noon, (time.Time{}); got != c {
			t.Errorf("%+v, want %+v", got, c)
		}
	}
	data, err := os.ReadFile(b.Home.State("slots", "a", "20260302T120000Z"))
	const want = `{"slot":"2026-03-02T13:00:00+01:00","claimed":"2026-03-02T13:00:03+01:00","run":"r","pid":7,"pid_start":8}` + "\n"
	if err != nil || string(data) != want {
		t.Errorf("%s %v", data, err)
	}
}

func TestNotWritten(t *testing.T) {
	b := newBook(paths.Dir(t.TempDir()), noon)
	if err := os.WriteFile(b.Home.Path("state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"r", ""} {
		if err := b.Claim(Claim{Job: "a", Slot: noon, Run: run}); err == nil || errors.Is(err, ErrClaimed) {
			t.Errorf("run %q: %v", run, err)
		}
	}
}

func TestAlive(t *testing.T) {
	self := process.Self()
	for _, c := range []struct {
		claim Claim
		alive bool
	}{
		{Claim{PID: self.PID, PIDStart: self.Start}, true},
		{Claim{PID: 1 << 30}, false},
		{Claim{}, false},
	} {
		if c.claim.Alive() != c.alive {
			t.Errorf("%+v", c)
		}
	}
}

// TestUnreadable: what cannot be read as a claim still is one, without a run.
func TestUnreadable(t *testing.T) {
	b := newBook(paths.Dir(t.TempDir()), noon)
	for i, text := range []string{"", "{", `{"run":"r"`, "[]", `{"run":7}`, strings.Repeat("x", 5000), "a named pipe"} {
		at := noon.Add(time.Duration(i) * time.Minute)
		path := b.Home.State("slots", "a", at.Format("20060102T150405Z"))
		err := store.Replace(path, []byte(text))
		if text == "a named pipe" { // nobody writes to it
			err = errors.Join(err, os.Remove(path), syscall.Mkfifo(path, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, err := b.Load("a", at); err != nil || c != (Claim{Job: "a", Slot: at}) {
			t.Errorf("%.10q: %+v, %v", text, c, err)
		}
		if err := b.Claim(Claim{Job: "a", Slot: at, Run: "r"}); !errors.Is(err, ErrClaimed) {
			t.Errorf("%.10q: %v", text, err)
		}
	}
}

func TestSettle(t *testing.T) {
	b := newBook(paths.Dir(t.TempDir()), noon)
	if err := b.Claim(Claim{Job: "a", Slot: noon, Run: "r"}); err != nil {
		t.Fatal(err)
	}
	outcome := func() string {
		c, err := b.Load("a", noon)
		if err != nil {
			t.Fatal(err)
		}
		return c.Run + " " + c.Outcome
	}
	for _, step := range []struct{ run, outcome, want string }{
		{"s", "ok", "r "}, // not its
		{"r", "failed", "r failed"},
	} {
		if err := b.Settle("a", noon, step.run, step.outcome); err != nil || outcome() != step.want {
			t.Errorf("%+v: %s, %v", step, outcome(), err)
		}
	}
	if err := b.Rewrite(Claim{Job: "a", Slot: noon, Run: "s"}); err != nil || outcome() != "s " {
		t.Errorf("%s, %v", outcome(), err)
	}
	if err := b.Settle("a", noon, "r", "ok"); err != nil || outcome() != "s " {
		t.Errorf("taken over by now: %s, %v", outcome(), err)
	}
	if err := b.Settle("a", noon.Add(time.Hour), "r", "ok"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("never claimed: %v", err)
	}
}

func TestPrune(t *testing.T) {
	b := newBook(paths.Dir(t.TempDir()), noon)
	if jobs, err := b.jobs(); err != nil || len(jobs) != 0 {
		t.Fatal(jobs, err)
	}
	if err := b.Prune(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	claim := func(job string, hours ...int) {
		for _, h := range hours {
			if err := b.Claim(Claim{Job: job, Slot: noon.Add(time.Duration(h) * time.Hour), Outcome: Missed}); err != nil {
				t.Fatal(err)
			}
		}
	}
	claim("a", 2, -1, 0, 13)
	claim("b", -3, -2)
	for _, foreign := range []string{"a/notes.txt", "a/.20260302T120000Z.tmp-1", ".git/x"} {
		if err := store.Replace(b.Home.State("slots", filepath.FromSlash(foreign)), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	hours := func(job string) (list []int) {
		for h := -24; h <= 24; h++ {
			c, err := b.Load(job, noon.Add(time.Duration(h)*time.Hour))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil || c.Job != job || c.Outcome != Missed {
				t.Errorf("%+v, %v", c, err)
			}
			list = append(list, h)
		}
		return list
	}
	if got := hours("a"); !slices.Equal(got, []int{-1, 0, 2, 13}) {
		t.Error(got)
	}
	if err := b.Prune(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if got := hours("a"); !slices.Equal(got, []int{0, 2, 13}) {
		t.Error(got)
	}
	jobs := func(want ...string) {
		t.Helper()
		if got, err := b.jobs(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	jobs("a", "b") // a process may be about to claim
	for _, job := range []string{"a", "b"} {
		if err := os.Chtimes(b.Home.State("slots", job), noon.AddDate(0, 0, -1), noon.AddDate(0, 0, -1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Prune(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	jobs("a")
	if _, err := os.Stat(b.Home.State("slots", "a", "notes.txt")); err != nil {
		t.Error(err)
	}
}

// note notes what files say now, and returns each schedule as "job: cron zone".
func note(t *testing.T, b Book, all bool, now ...Schedule) (lines []string) {
	t.Helper()
	var gone func(string) bool
	if all {
		gone = func(name string) bool { return name != "faulty" }
	}
	returned, err := b.Note(context.Background(), now, gone)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := b.History()
	if err != nil {
		t.Fatal(err)
	}
	for id, list := range kept {
		asked := all || slices.ContainsFunc(now, func(s Schedule) bool { return s.Job == id })
		for i, s := range list {
			lines = append(lines, strings.TrimSpace(s.Name+": "+s.Cron+" "+s.Zone))
			if !asked {
				continue
			}
			if r := returned[id][i]; r.Cron != s.Cron || !r.At.Equal(s.At) {
				t.Errorf("returned %+v, kept %+v", r, s)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func routine(job, cron string) Schedule {
	return Schedule{Job: job, Name: job, Cron: cron, Enabled: true}
}

func TestNote(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	b := newBook(dir, noon.Add(42*time.Second))
	zoned, off := routine("a", "@hourly"), routine("a", "@daily")
	zoned.Zone, off.Enabled = "Asia/Tokyo", false
	renamed := routine("a", "@daily")
	renamed.Name = "other"
	for _, step := range []struct {
		now  []Schedule
		all  bool
		want []string
	}{
		{nil, true, nil},
		{[]Schedule{routine("a", "@daily")}, false, []string{"a: @daily"}},
		{[]Schedule{renamed}, true, []string{"a: @daily", "other: @daily"}},
		{[]Schedule{routine("a", "@daily")}, false, []string{"a: @daily", "a: @daily", "other: @daily"}},
		{[]Schedule{routine("faulty", "@daily")}, false, []string{"a: @daily", "a: @daily", "faulty: @daily", "other: @daily"}},
		{[]Schedule{off}, true, []string{"a: @daily", "a: @daily", "a: @daily", "faulty: @daily", "other: @daily"}}, // faulty may be there still
		{[]Schedule{zoned}, true, []string{"a: @daily", "a: @daily", "a: @daily", "a: @hourly Asia/Tokyo", "faulty: @daily", "other: @daily"}},
		{[]Schedule{routine("b", "@daily")}, true, []string{"a:", "a: @daily", "a: @daily", "a: @daily", "a: @hourly Asia/Tokyo", "b: @daily", "faulty: @daily", "other: @daily"}},
		{[]Schedule{routine("b", "@daily")}, true, []string{"a:", "a: @daily", "a: @daily", "a: @daily", "a: @hourly Asia/Tokyo", "b: @daily", "faulty: @daily", "other: @daily"}}, // gone once
		{[]Schedule{zoned, routine("b", "@daily")}, true, []string{"a:", "a: @daily", "a: @daily", "a: @daily", "a: @hourly Asia/Tokyo", "a: @hourly Asia/Tokyo", "b: @daily", "faulty: @daily", "other: @daily"}},
	} {
		if got := note(t, b, step.all, step.now...); !slices.Equal(got, step.want) {
			t.Errorf("%+v: %q, want %q", step.now, got, step.want)
		}
	}
	history, err := b.History()
	if err != nil {
		t.Fatal(err)
	}
	last := history["a"][len(history["a"])-1]
	if !last.At.Equal(noon) {
		t.Errorf("noted at %s: want the beginning of the minute", last.At)
	}
	if zone := last.In(time.UTC); zone.String() != "Asia/Tokyo" {
		t.Error(zone)
	}
	if zone := history["a"][0].In(time.Local); zone != time.Local {
		t.Error(zone)
	}
}

// TestNoteTornLines: a line that was torn or spoilt costs only itself.
func TestNoteTornLines(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	b := newBook(dir, noon)
	note(t, b, true, routine("a", "@daily"), routine("b", "@daily"))
	f, err := os.OpenFile(dir.Schedules(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", ".", "..", "../a", "/", "a/b", ".git"} { // no id of a job: it would name a file elsewhere
		if err := json.NewEncoder(f).Encode(routine(id, "@daily")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("no line\n{\"job\":\"a\",\"cron\":\"@hou"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := note(t, b, true, routine("a", "@daily"), routine("b", "@weekly")); !slices.Equal(got, []string{"a: @daily", "b: @daily", "b: @weekly"}) {
		t.Errorf("%q", got)
	}
}

// TestNoteTogether: many at once keep each difference once.
func TestNoteTogether(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := newBook(dir, noon).Note(context.Background(), []Schedule{routine("a", "@daily"), routine("b", "@daily")}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	data, err := os.ReadFile(dir.Schedules())
	if err != nil || strings.Count(string(data), "\n") != 2 {
		t.Errorf("%v\n%s", err, data)
	}
}

// TestClockSetBack: what was noted under a clock that ran ahead is noted again, and no longer holds.
func TestClockSetBack(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	note(t, newBook(dir, noon), true, routine("a", "@daily"))
	note(t, newBook(dir, noon.AddDate(4, 0, 0)), true, routine("a", "@hourly"))
	back := newBook(dir, noon.Add(time.Hour))
	for range 2 {
		if got := note(t, back, true, routine("a", "@hourly")); !slices.Equal(got, []string{"a: @daily", "a: @hourly"}) {
			t.Errorf("%q", got)
		}
	}
	history, err := back.History()
	if err != nil || !history["a"][1].At.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v, %v", history, err)
	}
}

func TestExtend(t *testing.T) {
	first := routine("a", "@daily")
	first.At = noon
	at := noon.Add(90 * time.Second)
	if got := Extend([]Schedule{first}, routine("a", "@daily"), at); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	got := Extend([]Schedule{first}, routine("a", "@hourly"), at)
	if len(got) != 2 || !got[1].At.Equal(noon.Add(time.Minute)) {
		t.Errorf("%+v", got)
	}
	if got := Extend(nil, routine("a", "@hourly"), at); len(got) != 1 || !got[0].At.Equal(noon.Add(time.Minute)) {
		t.Errorf("%+v", got)
	}
}

// TestClockNotSet: a machine without a clock of its own begins in 1970, and must not forget what was.
func TestClockNotSet(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	note(t, newBook(dir, noon), true, routine("a", "@daily"))
	unset := newBook(dir, time.Unix(60, 0))
	if got := note(t, unset, true, routine("a", "@hourly"), routine("b", "@hourly")); !slices.Equal(got, []string{"a: @daily"}) {
		t.Errorf("%q", got)
	}
	history, err := unset.History()
	if err != nil || len(history["a"]) != 1 || !history["a"][0].At.Equal(noon) {
		t.Errorf("%+v, %v", history, err)
	}
}

// TestHistoryOfSome: the schedules of some jobs are the same, and the clock is judged the same, as with those of all jobs, also after the
// clock was set, and with ids that contain one another or are written with escapes.
func TestHistoryOfSome(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	ids := []string{"a", "ab", "b", "c<", "\u00e4", `d\"`}
	for range 200 {
		b := newBook(paths.Dir(t.TempDir()), noon)
		var text []byte
		for range r.IntN(12) {
			s := routine(ids[r.IntN(len(ids))], []string{"@daily", "@hourly", ""}[r.IntN(3)])
			s.At = noon.Add(time.Duration(r.IntN(7)-2) * time.Hour)
			line, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, line...)
			text = append(text, "\n"...)
		}
		if err := store.Replace(b.Home.Schedules(), text); err != nil {
			t.Fatal(err)
		}
		all, err := b.History()
		only := []Schedule{routine(ids[r.IntN(len(ids))], "@daily")}
		some, someErr := b.history(only)
		if id := only[0].Job; err != nil || someErr != nil || !slices.Equal(some[id], all[id]) || b.tooEarly(some) != b.tooEarly(all) {
			t.Fatalf("%v, %v: %q: %v\nof\n%s", err, someErr, id, some, text)
		}
	}
}

// TestRestore: a claim that is lost or empty is made again, and one that says anything stays.
func TestRestore(t *testing.T) {
	mine := Claim{Job: "a", Slot: noon, Claimed: noon, Run: "run", Outcome: "ok"}
	for name, test := range map[string]struct {
		before *Claim // nil: no file
		empty  bool
		want   Claim
	}{
		"lost":     {nil, false, mine},
		"empty":    {&Claim{Job: "a", Slot: noon, Run: "run"}, true, mine},
		"there":    {&Claim{Job: "a", Slot: noon, Run: "run"}, false, Claim{Run: "run"}},
		"another":  {&Claim{Job: "a", Slot: noon, Run: "other"}, false, Claim{Run: "other"}},
		"missed":   {&Claim{Job: "a", Slot: noon, Outcome: Missed}, false, Claim{Outcome: Missed}},
		"released": {&Claim{Job: "a", Slot: noon, Held: "a limit"}, false, Claim{Held: "a limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(paths.Dir(t.TempDir()), noon)
			if test.before != nil {
				if err := b.Rewrite(*test.before); err != nil {
					t.Fatal(err)
				}
			}
			if test.empty {
				if err := os.Truncate(b.Path("a", noon), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Restore(mine); err != nil {
				t.Fatal(err)
			}
			if got, err := b.Load("a", noon); err != nil || got.Run != test.want.Run || got.Outcome != test.want.Outcome || got.Held != test.want.Held {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
