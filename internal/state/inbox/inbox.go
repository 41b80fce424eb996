// Package inbox keeps the events of webhooks from the moment they are accepted until a run has them. An accepted event is on disk
// before Add returns; it is neither lost nor run twice when a process is killed at any moment.
//
// On disk: state/inbox/<hook>/<number>-<run>.json is one entry that waits. Numbers sort by arrival; an entry has the id of its run
// from the start. state/inbox/<hook>/starts.json notes which entry was started last, and when runs of the hook were started. An entry is
// renamed into the directory of its run, as webhook.json, before the run has any effect. So an entry in the inbox has not run, even
// if there is a record of its run (the process died before it began), and a run that has its entry is never started again.
//
// One process, the server, adds entries. For a day it recognises an event that was sent again, by its delivery id or by its body, from
// the entries that wait and from those in the directories of their runs; so this survives a restart. For Brief
// events a minute takes the place of the day.
package inbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/payload"
)

// Entry is an accepted event. Its sender sets the fields up to Data; Add sets the others.
type Entry struct {
	Hook     string          `json:"hook"`               // the id of the webhook
	Delivery string          `json:"delivery,omitempty"` // the id that the sender gave the event; "" if none
	Signed   bool            `json:"signed,omitempty"`   // nobody else can send a copy under another id: the same body is another event
	Hash     string          `json:"hash"`               // of the body
	Data     []payload.Datum `json:"data"`

	Run     string    `json:"run"`
	Number  int64     `json:"number"` // in the order of arrival
	Arrived time.Time `json:"arrived"`
}

// Brief reports whether the event is recognised within a minute only, by its body: its sender gives no id, and nobody else can send a
// copy, so the same body a while later is another event.
func (e Entry) Brief() bool { return e.Delivery == "" && e.Signed }

// limits bound the inbox.
type limits struct {
	All  int // entries that wait
	Hook int // entries of one hook that wait
	Jobs int // runs at once
}

// LimitsOf returns the limits of an inbox of so many entries in all, of which one hook can have half, and so many runs at once.
func LimitsOf(all, jobs int) limits { return limits{All: all, Hook: max(all/2, 1), Jobs: jobs} }

// Book is the inbox of one data directory.
type Book struct {
	Home   paths.Dir
	Disk   store.Disk
	Zone   *time.Location
	Limits limits
	NewRun func() (string, error)                  // makes the id of a run
	Runs   func(since time.Time) ([]string, error) // lists the ids of the runs that were made since an instant
}

// ErrGone is the error of an entry that is not in the inbox.
var ErrGone = errors.New("it is not in the inbox")

// Hooks returns the ids of the hooks whose directory exists.
func (b Book) Hooks() (ids []string, err error) {
	files, err := store.List(b.Home.Inbox())
	for _, f := range files {
		if f.IsDir() {
			ids = append(ids, f.Name())
		}
	}
	return ids, err
}

// digits is the length of the number in a name: milliseconds, until the year 2286.
const digits = 13

// runOf returns the run in the name of an entry's file, <number>-<run>.json, "" if it is another file.
func runOf(name string) (run string) {
	run, isJSON := strings.CutSuffix(name, ".json")
	if !isJSON || len(run) < digits+2 || run[digits] != '-' || strings.Trim(run[:digits], "0123456789") != "" {
		return ""
	}
	return run[digits+1:]
}

// names lists the files of the entries of a hook, in no order; sorted they are in the order of arrival.
func (b Book) names(hook string) ([]string, error) {
	dir, err := os.Open(b.folder(hook))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	return slices.DeleteFunc(names, func(name string) bool { return runOf(name) == "" }), err
}

// First returns the oldest entry of a hook and how many of its entries wait. The error is ErrGone if there is none.
func (b Book) First(hook string) (e Entry, waiting int, err error) {
	names, err := b.names(hook)
	for err == nil && len(names) > 0 {
		first := slices.Min(names)
		e, err = b.load(hook, first)
		if !errors.Is(err, ErrGone) { // it was taken just now, or set aside
			return e, len(names), err
		}
		names, err = slices.DeleteFunc(names, func(name string) bool { return name == first }), nil
	}
	if err == nil {
		err = ErrGone
	}
	return e, 0, err
}

// Contents returns all entries that wait, by hook in the order of arrival.
func (b Book) Contents() (all []Entry, err error) {
	err = b.each(func(e Entry) { all = append(all, e) })
	return all, err
}

// each calls do with each entry that waits, by hook in the order of arrival. All of them may be more than fit into memory.
func (b Book) each(do func(Entry)) error {
	hooks, err := b.Hooks()
	for _, hook := range hooks {
		names, listErr := b.names(hook)
		err = errors.Join(err, listErr)
		slices.Sort(names)
		for _, name := range names {
			e, loadErr := b.load(hook, name)
			switch {
			case loadErr == nil:
				do(e)
			case !errors.Is(loadErr, ErrGone):
				err = errors.Join(err, loadErr)
			}
		}
	}
	return err
}

// Find returns the entry of a run. The error is ErrGone if it does not wait.
func (b Book) Find(run string) (Entry, error) {
	hooks, err := b.Hooks()
	if err != nil {
		return Entry{}, err
	}
	for _, hook := range hooks {
		names, err := b.names(hook)
		if err != nil {
			return Entry{}, err
		}
		if i := slices.IndexFunc(names, func(name string) bool { return runOf(name) == run }); i >= 0 {
			return b.load(hook, names[i])
		}
	}
	return Entry{}, fmt.Errorf("%s: %w", run, ErrGone)
}

// Waits reports whether the run of an entry has not begun.
func (b Book) Waits(run string) bool {
	_, err := b.Find(run)
	return !errors.Is(err, ErrGone)
}

func (b Book) load(hook, name string) (Entry, error) {
	path := filepath.Join(b.folder(hook), name)
	e, err := store.ReadJSON[Entry](b.Disk, path)
	if err == nil && (e.Hook != hook || b.path(e) != path) { // it is gone, or was set aside
		err = fmt.Errorf("%s: %w", runOf(name), ErrGone)
	}
	return e, err
}

// Claim gives an entry to its run, whose directory exists. The error is ErrGone if another process has taken it.
func (b Book) Claim(e Entry) error {
	to := b.Home.RunEntry(e.Run)
	if err := store.SyncDir(filepath.Dir(to)); err != nil { // the directory may be new
		return err
	}
	return move(b.path(e), to)
}

// GiveBack undoes Claim.
func (b Book) GiveBack(e Entry) error {
	if err := store.MkdirOwn(b.folder(e.Hook)); err != nil {
		return err
	}
	return move(b.Home.RunEntry(e.Run), b.path(e))
}

// Prune removes the entries of a hook that arrived before an instant, and what was noted of the hook if none is left.
func (b Book) Prune(hook string, before time.Time) error {
	names, err := b.names(hook)
	slices.Sort(names)
	for _, name := range names {
		e, loadErr := b.load(hook, name)
		if errors.Is(loadErr, ErrGone) {
			continue
		}
		if loadErr != nil || !e.Arrived.Before(before) {
			return errors.Join(err, loadErr)
		}
		err = errors.Join(err, store.Remove(b.path(e)))
	}
	if err == nil {
		err = store.Remove(b.startsPath(hook))
		_ = os.Remove(b.folder(hook)) // unless something else is in it
	}
	return err
}

func move(from, to string) error {
	err := os.Rename(from, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", from, ErrGone)
	case err != nil:
		return &store.NotWritten{Path: to, Err: err}
	}
	return errors.Join(store.SyncDir(to), store.SyncDir(from))
}

func (b Book) folder(hook string) string { return filepath.Join(b.Home.Inbox(), hook) }

func (b Book) path(e Entry) string {
	return filepath.Join(b.folder(e.Hook), fmt.Sprintf("%0*d-%s.json", digits, e.Number, e.Run))
}
