package runlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// Book is the run records of one data directory.
type Book struct {
	Ledger *ledger.Ledger // may be nil for a Book that is only read
	Home   paths.Dir
	Disk   store.Disk
	Zone   *time.Location

	// Only selects the records that Find, List and Stream return; nil selects all.
	Only func(Record) bool

	// Secrets returns the values that are replaced in everything that is recorded; nil replaces none.
	Secrets func() plaintext.Secrets
}

func (b Book) secrets() plaintext.Secrets {
	if b.Secrets == nil {
		return plaintext.Secrets{}
	}
	return b.Secrets()
}

// Open creates the record of a run: its directory and run.json exist when it returns. It does not wait for the disk; see Run.Begin.
func (b Book) Open(r Record) (*Run, error) {
	r.Started = r.Started.In(b.Zone)
	if err := store.MkdirAs(b.Home.Run(r.ID), store.Buffered); err != nil {
		return nil, err
	}
	opened := b.run(r)
	return opened, opened.Save()
}

// At returns a run that another process opened, so that this one can add events to it. The error is fs.ErrNotExist if there is none.
func (b Book) At(id string) (*Run, error) {
	r, err := b.Load(id)
	if err != nil {
		return nil, err
	}
	return b.run(r), nil
}

// run returns a run with its record, and nothing known of its events.
func (b Book) run(r Record) *Run { return &Run{Record: r, book: b, known: &known{}} }

// Load reads one record. The error is fs.ErrNotExist if there is none with that id.
func (b Book) Load(id string) (Record, error) {
	if !isID(id) {
		return Record{}, fmt.Errorf("run %q: %w", id, fs.ErrNotExist)
	}
	data, err := store.Read(b.Home.Run(id, "run.json"))
	if errors.Is(err, fs.ErrNotExist) && b.moveIn(id) == nil {
		data, err = store.Read(b.Home.Run(id, "run.json"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("run %q: %w", id, fs.ErrNotExist)
	}
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, &Damaged{b.Home.Run(id, "run.json"), err}
	}
	r.ID = id // the directory may be a copy of another run's; its name is the id
	return r, nil
}

// Damaged is the error of a record that cannot be parsed, as a power failure may leave one.
type Damaged struct {
	Path string
	Err  error
}

func (e *Damaged) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *Damaged) Unwrap() error { return e.Err }

// List yields every record, newest first. An unreadable record is yielded with its error and only the id. If the
// directory cannot be read, its error is yielded alone and ends the sequence.
func (b Book) List() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for id, err := range b.newest() {
			if err != nil {
				yield(Record{}, err)
				return
			}
			r, err := b.Load(id)
			if errors.Is(err, fs.ErrNotExist) {
				continue // just created, or killed before run.json was written
			}
			r.ID = id
			if !b.shows(r, err) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// shows reports whether Only selects a record. A record that could not be read is always shown, because Only cannot judge it.
func (b Book) shows(r Record, err error) bool { return b.Only == nil || err == nil && b.Only(r) }

// isID reports whether a name has the form that NewID gives. Other files in the directory are not runs.
func isID(name string) bool {
	stamp, digits, found := strings.Cut(name, "-")
	if !found || len(digits) != 6 || strings.Trim(digits, "0123456789abcdef") != "" {
		return false
	}
	_, err := time.Parse(idTime, stamp)
	return err == nil
}

// longestTurn is the age at which a run that no job's lock protects (a turn of a conversation, a question at a shell) is taken to have
// ended. A later run of the same name may end while an earlier one is in progress, so Find looks back this far.
const longestTurn = 24 * time.Hour

// Find returns the run that name means: an id or its beginning, "last" for the newest record, or a job's id or file name, with or without
// .md. A job means its run in progress, or else its latest run. A fire that was skipped or paused is returned only if the job has no
// other record. JOB~N is the N-th run before the latest.
func (b Book) Find(name string) (Record, error) {
	if isID(name) {
		if r, err := b.Load(name); !errors.Is(err, fs.ErrNotExist) && b.shows(r, err) {
			return r, err
		}
	}
	job, back, counted := name, 0, false
	if i := strings.LastIndexByte(name, '~'); i >= 0 {
		if k, err := strconv.Atoi(name[i+1:]); err == nil && k >= 0 {
			job, back, counted = name[:i], k, true
		}
	}
	var known []string
	var latest, idle *Record
	newest := back == 0
	for r, err := range b.List() {
		if err != nil && r.ID == "" {
			return Record{}, err
		}
		if err != nil {
			continue
		}
		if latest != nil && latest.Started.Sub(r.Started) > longestTurn {
			break
		}
		if !slices.Contains(known, r.Name) {
			known = append(known, r.Name)
		}
		switch {
		case !r.is(job):
		case latest != nil:
			if b.Alive(r) {
				return r, nil
			}
		case job != "last" && (r.Outcome == Skipped || r.Outcome == Paused):
			idle = cmp.Or(idle, &r)
		case back > 0:
			back--
		case counted || job == "last" || b.Alive(r):
			return r, nil
		default:
			latest = &r
		}
	}
	if latest == nil && newest {
		latest = idle
	}
	if latest == nil {
		return Record{}, &plaintext.Unknown{What: "run", Name: name, Near: plaintext.Similar(job, known)}
	}
	return *latest, nil
}

// is reports whether name, in a form that Find accepts, matches the run.
func (r Record) is(name string) bool {
	switch name {
	case "":
		return false
	case "last", r.Job, r.Name, r.Name + ".md":
		return true
	}
	return len(name) > 8 && strings.HasPrefix(r.ID, name) // the beginning of an id must have at least the whole date
}

// Events reads the events of a run, oldest first. A torn line is skipped and counted in *bad.
func (b Book) Events(id string, bad *int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range store.Lines[Event](b.Home.Run(id, "events.jsonl"), bad) {
			if err == nil {
				e, err = b.unfold(id, e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// unfold reads back what fold moved from an event into a file.
func (b Book) unfold(id string, e Event) (Event, error) {
	if e.File == "" {
		return e, nil
	}
	data, err := store.Read(b.Home.Run(id, filepath.Base(e.File)))
	switch {
	case err != nil:
		return e, err
	case e.Type == ToolUse:
		e.Input = data
	default:
		e.Text = string(data)
	}
	return e, nil
}

// Standing returns the current state of a run.
func (b Book) Standing(id string) (Standing, error) { return b.run(Record{ID: id}).Standing() }

// cutOff returns the outcome and the reason of a run whose process died. A run with an open question becomes waiting, unless a stop was
// requested.
func (b Book) cutOff(r Record) (Outcome, string) {
	if r.Outcome != "" {
		return r.Outcome, r.Error
	}
	if s, err := b.Standing(r.ID); err == nil && s.Question != "" && b.StopReason(r.ID) == "" {
		return Waiting, ""
	}
	return Interrupted, "the process ended before the run did"
}

// Close finishes the record of a run whose process died. It keeps an outcome that the record already has (see Conclude and Update); else
// the run is waiting if it has an open question, or interrupted. It kills the processes that the run left and removes its sockets and
// unfinished files. It does not change a finished record. It reports whether it changed anything.
func (b Book) Close(id string) (changed bool, err error) {
	return b.close(id, func(Record) bool { return true })
}

// CloseOf is Close for a record that was read earlier. It does not change a run that another process has continued since.
func (b Book) CloseOf(r Record) (changed bool, err error) {
	return b.close(r.ID, func(now Record) bool { return now.Process.ID == r.Process.ID })
}

func (b Book) close(id string, still func(Record) bool) (changed bool, err error) {
	err = b.locked(context.Background(), id, func() error {
		r, err := b.At(id)
		if err != nil || r.Done() || !still(r.Record) {
			return err
		}
		if err := b.take(id); err != nil {
			return err
		}
		killEngine(id)
		at := r.Started // the time of the last known activity is closer to the end of the run than now is
		_ = r.each(func(e Event) { at = e.At })
		outcome, reason := b.cutOff(r.Record)
		b.removeSockets(id)
		err = errors.Join(r.finishAt(at, outcome, reason), b.removeDrafts(id))
		changed = err == nil
		return err
	})
	return changed, err
}

// Reopen makes the record of a waiting run one of a run in progress, and applies change to it. It fails if the run is not waiting.
func (b Book) Reopen(ctx context.Context, id string, change func(*Record)) (r *Run, err error) {
	err = b.locked(ctx, id, func() error {
		if r, err = b.At(id); err != nil {
			return err
		}
		if r.Outcome != Waiting {
			return errNotWaiting
		}
		change(&r.Record)
		r.Finished, r.Outcome, r.Error, r.Question = nil, "", "", ""
		if err := r.Begin(ctx); err != nil { // before the record, whose present form is on disk
			return err
		}
		return r.Save()
	})
	return r, err
}

var errNotWaiting = errors.New("the run does not wait for an answer")

// removeDrafts removes the temporary files that a killed process left.
func (b Book) removeDrafts(id string) error {
	entries, err := os.ReadDir(b.Home.Run(id))
	for _, e := range entries {
		if store.IsDraft(e.Name()) {
			err = errors.Join(err, os.Remove(b.Home.Run(id, e.Name())))
		}
	}
	return err
}

// locked calls do under the run's own lock, which lies in its directory and is removed with the record.
func (b Book) locked(ctx context.Context, id string, do func() error) error {
	return b.Disk.Locked(ctx, b.Home.Run(id, "lock"), do)
}
