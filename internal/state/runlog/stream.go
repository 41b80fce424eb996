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

// Types of the lines of a stream that are no events.
const (
	runStarted eventType = "run_started"
	runEnded   eventType = "run_ended" // also when it waits; then it may go on, and end again
)

// line is one line of the stream of all runs: an event of a run, its start or its end.
type line struct {
	Run  string `json:"run"`
	Kind string `json:"kind"`
	Job  string `json:"job"`
	Name string `json:"name"`
	Event

	Record *Record `json:"record,omitempty"` // of runEnded
}

// stream is a reader's position in what all runs have done since an instant. It is not for several goroutines.
type stream struct {
	book   Book
	since  time.Time
	trails map[string]*trail // of the runs on disk; nil: nothing more is expected of that run
	listed newestDay         // when the runs were listed
	stable bool              // it had not changed since the time before
	Bad    int               // lines of events that were skipped because they cannot be read
}

// trail is a reader's position in one run.
type trail struct {
	id     string
	begun  bool      // its start was yielded
	offset int64     // in events.jsonl
	ended  time.Time // of the end that was yielded
}

// late is how long after its end events of a run are expected, such as the delivery of a message about it.
const late = 2 * time.Minute

// Stream returns the position before everything that happened at or after an instant.
func (b Book) Stream(since time.Time) *stream {
	return &stream{book: b, since: since, trails: map[string]*trail{}}
}

// Next yields what happened since the last call, in the order of time; within a run, in the order of its record. Runs that are
// removed meanwhile are left out. An error of one run is yielded with its id, and the others go on; an error of the directory is
// yielded alone and ends the sequence.
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
			if len(closed) > 0 && (first < 0 || !closed[0].made().After(heads[first].line.At)) { // it may have begun before
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

// update lists the runs anew if there may be others, and returns those of which more is expected, by the time of their ids.
func (s *stream) update() (open []*trail, err error) {
	day, err := s.book.newestDay()
	if err != nil {
		return nil, err
	}
	if !s.stable || day != s.listed {
		s.stable, s.listed = day == s.listed, day // a change in the same tick of the file system's clock shows at the next call
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

// list adds trails for the runs that are not known.
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
		for _, id := range ids {
			if _, known := s.trails[id]; known || !isID(id) {
				continue
			}
			if s.trails[id] = nil; !s.past(id) {
				s.trails[id] = &trail{id: id}
			}
		}
	}
	return nil
}

// quiet reports whether it is known that nothing has happened since the stream's instant in the runs that began on a day: all had ended, and
// the directory did not change.
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

// newestDay is the directory of the last day with runs, and when its list of runs changed.
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

// past reports whether nothing of a run has happened or can happen at or after the stream's instant.
func (s *stream) past(id string) bool {
	if s.since.IsZero() || !(&trail{id: id}).made().Before(s.since) {
		return false
	}
	for _, file := range []string{"run.json", "events.jsonl"} {
		if info, err := os.Stat(s.book.Home.Run(id, file)); err == nil && !info.ModTime().Before(s.since) {
			return false
		}
	}
	for _, file := range []string{s.book.Home.Question(id), s.book.Home.RunLock(id)} { // it may wait and go on, or be in progress
		if _, err := os.Lstat(file); err == nil {
			return false
		}
	}
	return true
}

// made is the time in a run's id. No event of the run is older.
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

// advance goes on to the next line and reports whether there is one.
func (h *head) advance() (some bool) {
	h.line, h.err, some = h.next()
	if !some {
		h.stop()
	}
	return some
}

// earliest returns the index of the oldest line; -1 if there is none.
func earliest(heads []head) int {
	first := -1
	for i := range heads {
		if first < 0 || heads[i].line.At.Before(heads[first].line.At) {
			first = i
		}
	}
	return first
}

// lines yields what is new of a run. The record is read first, so that all events before an end which it states are there.
func (s *stream) lines(t *trail) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		r, err := s.book.Load(t.id)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(s.book.Home.Run(t.id)); err != nil {
				s.trails[t.id] = nil // it was removed
			}
			return // or it has just been created
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
		end := func() bool { // once, and before what happened after it
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

// events yields the events of a run from the trail's offset on, and moves that. A line that is being written is left to the next
// call.
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
				e, _ = s.book.unfold(t.id, e) // without the file, whose run may just be removed, it counts without its text
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// chunk is how many bytes of events are read at once, unless a line is longer.
const chunk = 8 << 10

// read returns the next whole lines of a run's events; none at their end. It leaves no file open, because thousands of runs may have events of
// the same time.
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
