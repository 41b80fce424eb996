package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Types of lines in a stream that are not events.
const (
	runStarted eventType = "run_started"
	runEnded   eventType = "run_ended" // a run that waits has ended too; it may continue and end again
)

// line is a line in the stream of all runs: an event of a run, its start or its end.
type line struct {
	Run  string `json:"run"`
	Kind string `json:"kind"`
	Job  string `json:"job"`
	Name string `json:"name"`
	Event

	Record *Record `json:"record,omitempty"` // set in a line of type runEnded
}

// stream is a reader's position in the events of all runs since an instant. It must not be used by several goroutines at once.
type stream struct {
	book   Book
	since  time.Time
	trails map[string]*trail // by run id, for the runs on disk; nil: nothing more is expected of the run
	listed newestDay         // the directory as it was when the runs were last listed
	stable bool              // the directory was the same at the two latest looks
	Bad    int               // how many unreadable lines of events were skipped
}

// trail is a reader's position in one run.
type trail struct {
	id     string
	begun  bool      // the start was yielded
	offset int64     // offset in events.jsonl
	ended  time.Time // time of the end that was yielded
}

// late is how long after a run's end events are still expected, such as the delivery of a message about it.
const late = 2 * time.Minute

// Stream returns a position in front of everything that happened at or after an instant.
func (b Book) Stream(since time.Time) *stream {
	return &stream{book: b, since: since, trails: map[string]*trail{}}
}

// Next yields what happened since the last call: in the order of time, and for each run in the order of its record. It skips runs that
// were removed meanwhile. An error of one run is yielded with its id, and the others continue; an error of the directory is yielded alone
// and ends the sequence.
func (s *stream) Next() iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		closed, err := s.update()
		if err != nil {
			yield(line{}, err)
			return
		}
		var heads []head
		defer func() {
			for _, h := range heads {
				h.stop()
			}
		}()
		for len(heads)+len(closed) > 0 {
			first := earliest(heads)
			// this run may have begun before the earliest line
			if len(closed) > 0 && (first < 0 || !closed[0].made().After(heads[first].line.At)) {
				if h, ok := s.open(closed[0]); ok {
					heads = append(heads, h)
				}
				closed = closed[1:]
				continue
			}
			h := &heads[first]
			if (h.err != nil || !h.line.At.Before(s.since)) && !yield(h.line, h.err) {
				return
			}
			if !h.advance() {
				heads = slices.Delete(heads, first, first+1)
			}
		}
	}
}

// update lists the runs again if there may be new ones. It returns the runs of which more is expected, in the order of their ids.
func (s *stream) update() (open []*trail, err error) {
	day, err := s.book.newestDay()
	if err != nil {
		return nil, err
	}
	if !s.stable || day != s.listed {
		s.stable, s.listed = day == s.listed, day // a second change within one tick of the file system's clock is found by the next call
		if err := s.list(); err != nil {
			return nil, err
		}
	}
	for _, t := range s.trails {
		if t != nil {
			open = append(open, t)
		}
	}
	slices.SortFunc(open, func(a, b *trail) int { return strings.Compare(a.id, b.id) })
	return open, nil
}

// list adds a trail for each run that has none.
func (s *stream) list() error {
	for path, err := range s.book.days() {
		if err == nil && s.quiet(path) {
			continue
		}
		var ids []string
		if err == nil {
			ids, err = names(path)
		}
		if err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(name string) bool { return !isID(name) })
		still := s.still(path, ids)
		for _, id := range ids {
			if _, known := s.trails[id]; known {
				continue
			}
			if s.trails[id] = nil; !still(id) && !s.past(id) {
				s.trails[id] = &trail{id: id}
			}
		}
	}
	return nil
}

// still returns a function that reports whether nothing can have happened in a run of a day since the stream's instant, by what is kept of
// that day: the run had ended and its files had been written before. Only if an event was added since to any run that had ended, the
// function looks at the events of the run.
func (s *stream) still(path string, ids []string) func(id string) bool {
	d := s.book.cached(s.book.dayOf(path))
	known := d.known(ids)
	if s.since.IsZero() || known == 0 {
		return func(string) bool { return false }
	}
	last, late := ids[known-1], s.wrote(s.book.Home.Runs())
	return func(id string) bool {
		_, open := slices.BinarySearch(d.Open, id)
		ended := id <= last && !open && *d.hour(id) <= s.since.Unix()
		return ended && (!late || !s.wrote(s.book.Home.Run(id, "events.jsonl")))
	}
}

// wrote reports whether a file exists and was written at or after the stream's instant.
func (s *stream) wrote(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.ModTime().Before(s.since)
}

// quiet reports whether nothing can have happened, since the stream's instant, in the runs of one day: all of them had ended and the
// directory has not changed.
func (s *stream) quiet(path string) bool {
	if s.since.IsZero() || s.book.dayOf(path) >= s.since.UTC().Format(time.DateOnly) {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !info.ModTime().Before(s.since) {
		return false
	}
	d := s.book.cached(s.book.dayOf(path))
	return d.Changed.Equal(info.ModTime()) && len(d.Open) == 0
}

// newestDay is the directory of the latest day with runs, and the time when its list of runs changed.
type newestDay struct {
	path    string
	changed time.Time
}

func (b Book) newestDay() (d newestDay, err error) {
	for path, err := range b.days() {
		if err != nil {
			return d, err
		}
		info, err := os.Stat(path)
		if err == nil {
			d = newestDay{path, info.ModTime()}
		}
		break
	}
	return d, nil
}

// past reports whether nothing of a run happened at or after the stream's instant, and nothing more can happen.
func (s *stream) past(id string) bool {
	if s.since.IsZero() || !(&trail{id: id}).made().Before(s.since) {
		return false
	}
	for _, file := range []string{"run.json", "events.jsonl"} {
		if s.wrote(s.book.Home.Run(id, file)) {
			return false
		}
	}
	for _, file := range []string{s.book.Home.Question(id), s.book.Home.RunLock(id)} { // the run may be in progress, or wait and continue
		if _, err := os.Lstat(file); err == nil {
			return false
		}
	}
	return true
}

// made returns the time in the run's id. No event of the run is older.
func (t *trail) made() time.Time { return Began(t.id) }

type head struct {
	line line
	err  error
	next func() (line, error, bool)
	stop func()
}

func (s *stream) open(t *trail) (h head, some bool) {
	h.next, h.stop = iter.Pull2(s.lines(t))
	return h, h.advance()
}

// advance moves to the next line and reports whether there is one.
func (h *head) advance() (some bool) {
	h.line, h.err, some = h.next()
	if !some {
		h.stop()
	}
	return some
}

// earliest returns the index of the oldest line; -1 if there are no lines.
func earliest(heads []head) int {
	first := -1
	for i := range heads {
		if first < 0 || heads[i].line.At.Before(heads[first].line.At) {
			first = i
		}
	}
	return first
}

// lines yields the new lines of a run. It reads the record before the events, so that all events before a recorded end are there.
func (s *stream) lines(t *trail) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		r, err := s.book.Load(t.id)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(s.book.Home.Run(t.id)); err != nil {
				s.trails[t.id] = nil // the run was removed
			}
			return // the run is just being created, or was removed
		}
		if !s.book.shows(r, err) {
			s.trails[t.id] = nil
			return
		}
		if err != nil {
			s.trails[t.id] = nil
			yield(line{Run: t.id}, err)
			return
		}
		line := func(e Event, record *Record) line { return line{r.ID, r.Kind, r.Job, r.Name, e, record} }
		if !t.begun {
			if t.begun = true; !yield(line(Event{At: r.Started, Type: runStarted}, nil), nil) {
				return
			}
		}
		end := func() bool { // the end is yielded once, and before later events
			if !r.Done() || r.Finished.Equal(t.ended) {
				return true
			}
			t.ended = *r.Finished
			return yield(line(Event{At: t.ended, Type: runEnded}, &r), nil)
		}
		for e, err := range s.events(t) {
			if r.Done() && e.At.After(*r.Finished) && !end() || !yield(line(e, nil), err) {
				return
			}
		}
		if !end() || !r.Done() {
			return
		}
		if r.Outcome != Waiting && s.book.Disk.Now().Sub(t.ended) > late {
			s.trails[t.id] = nil
		}
	}
}

// events yields the events of a run after the trail's offset, and advances the offset. A line that is still being written is left for the
// next call.
func (s *stream) events(t *trail) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			text, err := s.read(t)
			if err != nil {
				yield(Event{At: s.book.Disk.Now()}, err)
			}
			if len(text) == 0 {
				return
			}
			for raw := range bytes.Lines(text) {
				var e Event
				t.offset += int64(len(raw))
				if json.Unmarshal(raw, &e) != nil {
					if len(bytes.TrimSpace(raw)) > 0 {
						s.Bad++
					}
					continue
				}
				// if the file is missing, because the run is being removed, the event is yielded without its text
				e, _ = s.book.unfold(t.id, e)
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// chunk is the number of bytes of events that are read at once, unless a line is longer.
const chunk = 8 << 10

// read returns the next complete lines of a run's events; nothing at their end. It closes the file each time, because thousands of runs
// may have events of the same time.
func (s *stream) read(t *trail) ([]byte, error) {
	f, err := store.Open(s.book.Home.Run(t.id, "events.jsonl"), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for size := chunk; ; size *= 2 {
		text := make([]byte, size)
		n, err := f.ReadAt(text, t.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if end := bytes.LastIndexByte(text[:n], '\n'); end >= 0 || n < size {
			return text[:end+1], nil
		}
	}
}
