package runlog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// totals are tallies as text, a line for each day, kind and job.
func totals(all []*Tally) string {
	sums := map[[3]string]*Tally{}
	for _, t := range all {
		s := sums[t.key()]
		if s == nil {
			s = &Tally{First: t.First, Outcomes: map[Outcome]int{}, Models: map[string]Use{}, Writes: map[string]time.Time{}, Times: map[int64]int{}}
			sums[t.key()] = s
		}
		s.Runs, s.Owner, s.Accounts, s.Cost = s.Runs+t.Runs, s.Owner+t.Owner, s.Accounts+t.Accounts, s.Cost+t.Cost
		s.Refused, s.Failed = s.Refused.Extend(t.Refused), s.Failed.Extend(t.Failed)
		s.Interrupted, s.Faulted = append(s.Interrupted, t.Interrupted...), append(s.Faulted, t.Faulted...)
		for outcome, n := range t.Outcomes {
			s.Outcomes[outcome] += n
		}
		for took, n := range t.Times {
			s.Times[took] += n
		}
		for model, use := range t.Models {
			s.Models[model] = s.Models[model].Add(use)
		}
		for dir, at := range t.Writes {
			s.writes(dir, at)
		}
		if t.Problem != nil && (s.Problem == nil || t.Problem.Started.After(s.Problem.Started)) {
			s.Problem = t.Problem
		}
		if s.Newest.ID == "" || t.Runs > 0 && (s.Runs == t.Runs || t.Newest.Started.After(s.Newest.Started)) {
			s.Newest = t.Newest
		}
		if t.Sized.After(s.Sized) {
			s.Context, s.Window, s.Sized = t.Context, t.Window, t.Sized
		}
	}
	var lines []string
	for key, s := range sums {
		slices.Sort(s.Interrupted)
		slices.Sort(s.Faulted)
		newest := s.Newest.ID
		if s.Runs == 0 {
			newest = ""
		}
		problem := ""
		if s.Problem != nil {
			problem = s.Problem.ID
		}
		lines = append(lines, fmt.Sprint(key, s.Runs, s.Owner, s.Accounts, s.Outcomes, s.Refused.Count, s.Failed.Count, problem, newest, s.Interrupted,
			slices.Compact(s.Faulted), s.Times, s.Cost, s.Models, s.Context, s.Window, len(s.Writes)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// some returns a record with everything that a tally looks at.
func some(r *rand.Rand, id string, at time.Time) Record {
	outcomes := []Outcome{OK, OK, Failed, Skipped, Gated, Refused, Interrupted, Timeout, Paused}
	end := at.Add(time.Duration(r.IntN(7000)) * time.Second)
	one := Record{
		ID: id, Started: at, Finished: &end, Outcome: outcomes[r.IntN(len(outcomes))], Cost: float64(r.IntN(4)) / 4, Context: r.IntN(3), Window: 9, Owner: r.IntN(3) == 0,
		Subject: Subject{Kind: []string{"routine", "compact"}[r.IntN(2)], Job: []string{"a", "b"}[r.IntN(2)]}, Model: []string{"", "m"}[r.IntN(2)], Accounted: r.IntN(2) == 0,
		Engine: []string{"", "native"}[r.IntN(2)], Fault: []string{"", "service"}[r.IntN(2)], Sealed: &Sealed{Write: []string{"/w", "/x"}[:r.IntN(3)]}, Usage: Usage{In: r.IntN(5)},
	}
	one.Process.ID = process.ID{PID: 1 << 30, Start: 1}
	return one
}

func (d *desk) put(r Record) {
	d.t.Helper()
	text, err := json.Marshal(r)
	if err == nil {
		err = store.Replace(d.Home.Run(r.ID, "run.json"), text)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// TestTallyOfAnyHistory: whatever happens to the records, a tally that uses the cache is that of all records read anew.
func TestTallyOfAnyHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testkit.Full(2, 1)) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDesk(t)
		d.now = start.Add(9 * time.Hour)
		zones := []*time.Location{d.Zone, time.UTC, time.FixedZone("IST", 19800)}
		records := map[string]Record{}
		for step := range testkit.Full(120, 50) {
			d.change(r, records)
			d.age(step)
			if r.IntN(20) == 0 {
				d.Zone = zones[r.IntN(len(zones))]
			}
			from := d.Midnight(d.now.AddDate(0, 0, -r.IntN(6)))
			if r.IntN(3) == 0 {
				from = d.now.Add(-time.Duration(r.IntN(int(exactly/time.Second))) * time.Second)
			}
			got, err := d.Tally(from)
			if err != nil {
				t.Fatal(err)
			}
			var want []Record
			running := 0
			for _, one := range records {
				if one = d.CutOff(one); !one.Started.Before(from) {
					want = append(want, one)
				}
				if !one.Started.Before(from) && one.Outcome == "" {
					running++
				}
			}
			if got, want := totals(got.Tallies), totals(Sum(want, d.Zone)); got != want {
				t.Fatalf("seed %d, step %d, from %s:\n%s\nwant\n%s", seed, step, from, got, want)
			}
			if len(got.Running) != running {
				t.Fatalf("seed %d, step %d: %d runs in progress, want %d", seed, step, len(got.Running), running)
			}
		}
	}
}

// change changes a record, adds or removes some, or spoils the cache.
func (d *desk) change(r *rand.Rand, records map[string]Record) {
	d.t.Helper()
	ids := slices.Sorted(maps.Keys(records))
	switch n := r.IntN(12); {
	case n < 5 || len(ids) == 0: // several runs, anywhere in the last days
		for range 1 + r.IntN(12) {
			d.ids++
			at := d.now.Add(-time.Duration(r.IntN(5*24*3600)) * time.Second)
			one := some(r, newID(d.t, at, d.ids), at)
			if r.IntN(4) == 0 {
				one.Finished, one.Outcome = nil, ""
			}
			if r.IntN(8) == 0 {
				one.Outcome = Waiting
			}
			records[one.ID] = one
			d.put(one)
		}
	case n < 8: // one that has not ended goes on, and ends
		id := ids[r.IntN(len(ids))]
		if one := records[id]; one.Finished == nil || one.Outcome == Waiting {
			one = some(r, id, one.Started)
			records[id] = one
			d.put(one)
		}
	case n < 9:
		id := ids[r.IntN(len(ids))]
		delete(records, id)
		if err := os.RemoveAll(d.Home.Run(id)); err != nil {
			d.t.Fatal(err)
		}
	case n < 11:
		paths, _ := filepath.Glob(d.dayPath("*"))
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, text[:r.IntN(len(text)+1)], 0o600)
			}
			if err != nil {
				d.t.Fatal(err)
			}
		}
	default: // another process reads with another clock
		other := d.Book
		other.Disk.Now = func() time.Time { return d.now.Add(26 * time.Hour) }
		if _, err := other.Tally(d.Midnight(d.now.AddDate(0, 0, -3))); err != nil {
			d.t.Fatal(err)
		}
	}
}

// age makes the last change of each day's directory older than the cache, and another one at each step.
func (d *desk) age(step int) {
	d.t.Helper()
	for path, err := range d.days() {
		if err == nil {
			at := time.Now().Add(time.Duration(step-3600) * time.Second)
			err = os.Chtimes(path, at, at)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// TestTallyReadsOnce: a day that has ended costs one file, and not its records.
func TestTallyReadsOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		d.ids++
		at := d.now.Add(-50 * time.Hour)
		d.put(some(r, newID(t, at, d.ids), at))
	}
	d.age(0)
	from := d.Midnight(d.now.AddDate(0, 0, -4))
	first, err := d.Tally(from)
	if err != nil || len(first.Tallies) == 0 {
		t.Fatal(first, err)
	}
	ids, err := d.After(time.Time{})
	for _, id := range ids {
		if err == nil {
			err = os.WriteFile(d.Home.Run(id, "run.json"), nil, 0o600) // the directory of the day does not change
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.Tally(from)
	if err != nil || totals(first.Tallies) != totals(second.Tallies) {
		t.Errorf("%v\n%s\nwant\n%s", err, totals(second.Tallies), totals(first.Tallies))
	}
}

// TestTallyWithoutCache: where the cache cannot be written the answers are the same.
func TestTallyWithoutCache(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(some(rand.New(rand.NewPCG(1, 2)), newID(t, d.now, 1), d.now))
	if err := store.Replace(d.Home.State("cache"), []byte("no directory")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if all, err := d.Tally(d.Midnight(d.now)); err != nil || len(all.Tallies) != 1 {
			t.Errorf("%+v, %v", all, err)
		}
	}
}

// TestTallyWindow: up to two days a window begins at its instant, a longer one with its day.
func TestTallyWindow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Zone = time.UTC
	r := rand.New(rand.NewPCG(3, 3))
	for hours := range 100 {
		at := d.now.Add(-time.Duration(hours) * time.Hour)
		one := some(r, newID(t, at, byte(hours)), at)
		one.Outcome = OK
		d.put(one)
	}
	for hours, want := range map[int]int{1: 2, 30: 31, 48: 49, 49: 58, 80: 82} { // it is nine o'clock
		all, err := d.Tally(d.now.Add(-time.Duration(hours) * time.Hour))
		n := 0
		for _, t := range all.Tallies {
			n += t.Runs
		}
		if err != nil || n != want {
			t.Errorf("%d hours: %d runs, %v; want %d", hours, n, err, want)
		}
	}
}

// TestSizes: the files of all runs count, also of one without a record.
func TestSizes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	old := d.now.AddDate(0, 0, -9)
	d.put(Record{ID: newID(t, old, 1), Started: old, Finished: &old, Outcome: OK})
	d.write(newID(t, d.now, 2), "answer", strings.Repeat("x", 1000))
	all, recent, err := d.Sizes(d.now.AddDate(0, 0, -7))
	if err != nil || all.Files != 2 || recent.Files != 1 || recent.Bytes != 1000 || all.Bytes < 1100 {
		t.Errorf("%+v, %+v, %v", all, recent, err)
	}
}

// TestUnfinished: runs that have no end are found by day, however many ended.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var want, asked []string
	for day := range 4 {
		at := d.now.AddDate(0, 0, -day)
		d.put(Record{ID: newID(t, at, 1), Started: at, Finished: &at, Outcome: OK})
		d.put(Record{ID: newID(t, at, 2), Started: at, Finished: &at, Outcome: Waiting})
		d.put(Record{ID: newID(t, at, 3), Started: at})
		if day < 3 {
			want, asked = append(want, newID(t, at, 3)), append(asked, newID(t, at, 2))
		}
	}
	ids := func(list []Record) (ids []string) {
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	for range 2 {
		list, waiting, err := d.Unfinished(d.now.AddDate(0, 0, -2))
		if got := ids(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		if got := ids(waiting); !slices.Equal(got, asked) {
			t.Errorf("waiting %q, want %q", got, asked)
		}
	}
}

// TestTidyRemovesTheSums: the sums of a day go with its last run.
func TestTidyRemovesTheSums(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	old := d.now.AddDate(0, 0, -3)
	ids := []string{newID(t, old, 1), newID(t, old, 2)}
	for _, id := range ids {
		d.put(Record{ID: id, Started: old, Finished: &old, Outcome: OK})
	}
	if _, err := d.Tally(d.Midnight(old)); err != nil {
		t.Fatal(err)
	}
	for left, id := range ids {
		if err := os.RemoveAll(d.Home.Run(id)); err != nil {
			t.Fatal(err)
		}
		d.Tidy(id)
		if files, _ := filepath.Glob(d.dayPath("*")); len(files) != 1-left {
			t.Errorf("%d runs are left: %q", 1-left, files)
		}
	}
}

// TestWritten: only records of runs that began late enough, and that were written late enough, are read.
func TestWritten(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	d := newDesk(t)
	written := map[string]time.Time{}
	for range 60 {
		d.ids++
		began := d.now.Add(-time.Duration(r.IntN(7200)) * time.Second).Truncate(time.Millisecond)
		one := some(r, newID(t, began, d.ids), began)
		d.put(one)
		written[one.ID] = began.Add(time.Duration(r.IntN(3600)) * time.Second)
		if err := os.Chtimes(d.Home.Run(one.ID, "run.json"), written[one.ID], written[one.ID]); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		from, since := d.now.Add(-time.Duration(r.IntN(7200))*time.Second), d.now.Add(-time.Duration(r.IntN(7200))*time.Second)
		var got, want []string
		for one, err := range d.Written(from, since) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, one.ID)
		}
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(written))) {
			if !Began(id).Before(from) && !written[id].Before(since) {
				want = append(want, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// TestTimes: a tally keeps two digits of how long a run took, rounded down, for the runs that ended by themselves.
func TestTimes(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int64{
		0: 0, 999 * time.Microsecond: 0, 99 * time.Millisecond: 99, 109 * time.Millisecond: 100, time.Minute: 60000, 3599999 * time.Millisecond: 3500000,
	} {
		for outcome, counts := range map[Outcome]bool{OK: true, Timeout: true, Gated: false, Interrupted: false, "": false} {
			end := start.Add(took)
			got := Sum([]Record{{Started: start, Finished: &end, Outcome: outcome}}, time.UTC)[0].Times
			if counts && (len(got) != 1 || got[want] != 1) || !counts && len(got) != 0 {
				t.Errorf("%s, %q: %v", took, outcome, got)
			}
		}
	}
}

// TestTallyNamesUnreadable: the sums name the records that they lack because they cannot be read, in any window and from the caches too.
func TestTallyNamesUnreadable(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	old, late := newID(t, d.now.Add(-5*24*time.Hour), 1), newID(t, d.now.Add(-time.Hour), 2)
	d.write(old, "run.json", "")
	if err := os.MkdirAll(d.Home.Run(late, "run.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write(newID(t, d.now.Add(-time.Hour), 3), "prompt.txt", "") // it has no record yet
	for range 2 {
		for window, want := range map[time.Duration][]string{7 * 24 * time.Hour: {late, old}, 48 * time.Hour: {late}, 30 * time.Minute: nil} {
			w, err := d.Tally(d.now.Add(-window))
			more, moreErr := d.Unreadable(d.now.Add(-window))
			for _, got := range [][]error{w.Unreadable, more} {
				if !slices.EqualFunc(got, want, func(err error, id string) bool { return strings.Contains(err.Error(), id) }) || err != nil || moreErr != nil {
					t.Errorf("the last %s: %q, want %q; %v, %v", window, got, want, err, moreErr)
				}
			}
		}
	}
}
