package runlog

import (
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Tallied is the activity of runs in a window.
type Tallied struct {
	Tallies []*Tally // sorted by their newest run, the latest first
	Running []Record // newest first

	Unreadable []error // of the records that are not in the sums because they cannot be read
}

// Tally sums up the runs that began since an instant. A window of more than two days is extended to the beginning of its first day, so
// that only the records that the caches of the days lack are read. Only is ignored.
func (b Book) Tally(from time.Time) (Tallied, error) {
	var w Tallied
	var seen []Record
	see := func(r Record) {
		r = b.CutOff(r)
		if seen = append(seen, r); r.Outcome == "" {
			w.Running = append(w.Running, r)
		}
	}
	midnight := b.Midnight(from)
	var err error
	if from.Equal(midnight) || b.Disk.Now().Sub(from) > exactly {
		w.Tallies, w.Unreadable, err = b.tallyDays(midnight, see)
	} else {
		w.Tallies, w.Unreadable, err = b.tallyExactly(from, see)
	}
	w.Tallies = newestFirst(append(w.Tallies, Sum(seen, b.Zone)...))
	return w, err
}

// tallyExactly is tallyDays for any instant. It calls see with every record of the day of UTC in which the instant lies, from the instant
// on, because the cache of that day cannot be divided.
func (b Book) tallyExactly(from time.Time, see func(Record)) (list []*Tally, unreadable []error, err error) {
	next := from.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	list, unreadable, err = b.tallyDays(next, see)
	ids, idsErr := b.Between(from, next)
	for _, id := range slices.Backward(ids) {
		switch r, err := b.Load(id); {
		case err == nil && !r.Started.Before(from):
			see(r)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			unreadable = append(unreadable, err)
		}
	}
	return list, unreadable, errors.Join(err, idsErr)
}

// exactly is the longest window that is not extended to the beginning of its first day.
const exactly = 48 * time.Hour

// Midnight returns the beginning of an instant's day in the Book's zone.
func (b Book) Midnight(at time.Time) time.Time {
	year, month, day := at.In(b.Zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, b.Zone)
}

// tallyDays returns the tallies of the days since a midnight and the errors of records that cannot be read, and calls see with the record of
// each run that has not ended.
func (b Book) tallyDays(from time.Time, see func(Record)) (list []*Tally, unreadable []error, err error) {
	date := from.In(b.Zone).Format(time.DateOnly)
	err = b.eachDay(from, func(d day, open []Record) {
		for _, t := range d.Tallies {
			if t.Date >= date {
				list = append(list, t)
			}
		}
		for _, r := range open {
			if !r.Started.Before(from) {
				see(r)
			}
		}
		unreadable = append(unreadable, d.since(from)...)
	})
	return list, unreadable, err
}

// Unreadable returns the errors of the records that cannot be read, of runs that began since an instant, newest first.
func (b Book) Unreadable(since time.Time) (unreadable []error, err error) {
	err = b.eachDay(since, func(d day, _ []Record) { unreadable = append(unreadable, d.since(since)...) })
	return unreadable, err
}

// eachDay calls see for each day since an instant, newest first, with the records of the runs that have not ended.
func (b Book) eachDay(since time.Time, see func(d day, open []Record)) error {
	for path, err := range b.days() {
		if err != nil {
			return err
		}
		if b.dayOf(path) < since.UTC().Format(time.DateOnly) {
			break
		}
		d, open, err := b.day(path)
		if err != nil {
			return err
		}
		see(d, open)
	}
	return nil
}

// Unfinished returns the unfinished records of runs that began at or after an instant, and those of runs that wait for an answer, newest
// first. Unreadable ones are omitted.
func (b Book) Unfinished(since time.Time) (list, waiting []Record, err error) {
	err = b.eachDay(since, func(_ day, open []Record) {
		for _, r := range open {
			switch {
			case r.Started.Before(since):
			case r.Done():
				waiting = append(waiting, r)
			default:
				list = append(list, r)
			}
		}
	})
	return list, waiting, err
}

// Size is the disk space that records use.
type Size struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// add adds the files of a directory. It returns when the last of them was written.
func (s *Size) add(dir string) (last time.Time) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			s.Files, s.Bytes = s.Files+1, s.Bytes+info.Size()
			if info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
	}
	return last
}

// Sizes returns the disk space of the records of all runs, and of those that began on the UTC day of an instant or later.
func (b Book) Sizes(since time.Time) (all, recent Size, err error) {
	first := since.UTC().Format("20060102")
	err = b.eachDay(time.Time{}, func(d day, _ []Record) {
		size := d.Size
		for _, id := range d.Open {
			size.add(b.Home.Run(id))
		}
		all.Files, all.Bytes = all.Files+size.Files, all.Bytes+size.Bytes
		if d.Until >= first {
			recent.Files, recent.Bytes = recent.Files+size.Files, recent.Bytes+size.Bytes
		}
	})
	return all, recent, err
}

// WithoutEnd returns the ids of the runs that began on the UTC day of an instant or later and have no end or no readable record.
func (b Book) WithoutEnd(since time.Time) (ids []string, err error) {
	err = b.eachDay(since, func(d day, _ []Record) { ids = append(ids, d.Open...) })
	return ids, err
}

// day is the cache of one UTC day, such as state/cache/runs/2026-11-23.json.
type day struct {
	Form    string    `json:"form"`           // format of the file
	Zone    string    `json:"zone"`           // zone of the dates in tallies
	Changed time.Time `json:"changed"`        // modification time of the directory when it was listed
	Until   string    `json:"until"`          // the newest run in the directory
	Sum     uint64    `json:"sum"`            // hash of the ids of the runs in the directory
	Open    []string  `json:"open,omitempty"` // runs that had not ended or were waiting for an answer, which are not in Tallies
	Tallies []*Tally  `json:"tallies"`
	Size    Size      `json:"size"` // disk space of the runs in Tallies

	// by the hour in which the runs in Tallies began, the first second that is later than all that was written of them
	Still [24]int64 `json:"still"`

	unreadable []unreadable // of Open, newest first
}

// unreadable is a run whose record cannot be read.
type unreadable struct {
	id  string
	err error
}

// since returns the errors of the records that cannot be read, of runs that began at or after an instant.
func (d *day) since(from time.Time) (list []error) {
	for _, u := range d.unreadable {
		if !Began(u.id).Before(from) {
			list = append(list, u.err)
		}
	}
	return list
}

// dayForm is the format of day. It changes whenever a field of day or Tally changes, or its meaning does.
const dayForm = "2"

func (b Book) dayPath(date string) string { return b.Home.State("cache", "runs", date+".json") }

// dayOf returns the date that a directory of runs stands for.
func (b Book) dayOf(path string) string {
	rel, _ := filepath.Rel(b.Home.Runs(), path)
	return strings.ReplaceAll(rel, string(filepath.Separator), "-")
}

// day returns the tallies of the ended runs in a directory, and the records of the others, newest first. It reads only records that the
// cache lacks.
func (b Book) day(path string) (d day, open []Record, err error) {
	date := b.dayOf(path)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil, nil
	}
	if err != nil {
		return d, nil, err
	}
	d = b.cached(date)
	pending, current := d.Open, d.Changed.Equal(info.ModTime())
	if !current {
		if pending, err = d.list(path); err != nil {
			return d, nil, err
		}
		d.Changed = info.ModTime()
	}
	open, ended := b.read(&d, pending)
	if ended >= worthwhile || date < b.Disk.Now().UTC().Format(time.DateOnly) && (ended > 0 || !current) {
		_ = store.WriteJSON(b.dayPath(date), d, store.Buffered) // an error does no harm to a cache
	}
	return d, open, nil
}

// worthwhile is how many records of the present day must have been read before its cache is written again.
const worthwhile = 8

// cached returns the cache of a day. It rejects a cache written just after the directory changed: the directory may have changed again
// within the same tick of the file system's clock.
func (b Book) cached(date string) day {
	none := day{Form: dayForm, Zone: b.Zone.String()}
	d, invalid, err := store.PeekJSON[day](b.dayPath(date))
	if err != nil || invalid != nil || d.Form != none.Form || d.Zone != none.Zone {
		return none
	}
	if info, err := os.Stat(b.dayPath(date)); err != nil || info.ModTime().Sub(d.Changed) < time.Second {
		d.Changed = time.Time{}
	}
	return d
}

// list returns the ids of the runs in the directory that the tallies lack. If runs other than the newest were added or removed, it
// returns all runs.
func (d *day) list(path string) (pending []string, err error) {
	ids, err := names(path)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(name string) bool { return !isID(name) })
	known := d.known(ids)
	if known == 0 {
		*d = day{Form: d.Form, Zone: d.Zone}
	}
	pending = slices.Concat(d.Open, ids[known:])
	if d.Sum = sumOf(ids); len(ids) > 0 {
		d.Until = ids[len(ids)-1]
	}
	return pending, nil
}

// known returns how many of the runs of the directory, from the oldest on, the cache was made from; 0 if others than newer ones were added
// or removed since.
func (d *day) known(ids []string) int {
	known, _ := slices.BinarySearch(ids, d.Until+"\x00")
	if sumOf(ids[:known]) != d.Sum {
		return 0
	}
	return known
}

// hour returns the entry of Still for a run.
func (d *day) hour(id string) *int64 { return &d.Still[Began(id).Hour()] }

func sumOf(ids []string) uint64 {
	h := fnv.New64a()
	for _, id := range ids {
		_, _ = io.WriteString(h, id)
	}
	return h.Sum64()
}

// read adds the ended runs to the tallies. It returns the records of the others, newest first, and the number of ended runs.
func (b Book) read(d *day, pending []string) (open []Record, ended int) {
	if len(pending) == 0 {
		return nil, 0
	}
	all := tallies{}
	for _, t := range d.Tallies {
		all[t.key()] = t
	}
	var left []string
	for _, id := range slices.Backward(pending) {
		r, err := b.Load(id)
		switch {
		case err != nil: // the run has no record yet, or it cannot be read
			if left = append(left, id); !errors.Is(err, fs.ErrNotExist) {
				d.unreadable = append(d.unreadable, unreadable{id, err})
			}
		case !r.Done() || r.Outcome == Waiting:
			left, open = append(left, id), append(open, r)
		default:
			all.add(r, b.Zone)
			still := d.hour(id)
			*still = max(*still, d.Size.add(b.Home.Run(id)).Unix()+1)
			ended++
		}
	}
	slices.Sort(left)
	d.Open, d.Tallies = left, slices.Collect(maps.Values(all))
	return open, ended
}
