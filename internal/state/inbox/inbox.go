// Package inbox keeps the events of webhooks from the moment they are accepted until a run has them. An accepted event is on disk
// before Add returns; it is neither lost nor run twice when a process is killed at any moment.
//
// On disk: state/inbox/<hook>/<number>-<run>.json is one entry that waits. Numbers sort by arrival; an entry has the id of its run
// from the start. state/inbox/<hook>.json notes which entry was started last, and when runs of the hook were started. An entry is
// renamed into the directory of its run, as webhook.json, before the run has any effect. So an entry in the inbox has not run, even
// if there is a record of its run (the process died before it began), and a run that has its entry is never started again.
//
// One process, the server, adds entries. For a day it recognises an event that was sent again, by its delivery id or by its body, from
// the entries that wait and from those in the directories of their runs; so this survives a restart.
package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/order"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/payload"
)

// Entry is an accepted event. Its sender sets the fields up to Data; Add sets the others.
type Entry struct {
	Hook     string          `json:"hook"`               // the id of the webhook
	Delivery string          `json:"delivery,omitempty"` // the id that the sender gave the event; "" if none
	Signed   bool            `json:"signed,omitempty"`   // the signature covers Delivery: another id is another event, even with the same body
	Hash     string          `json:"hash"`               // of the body
	Data     []payload.Datum `json:"data"`

	Run     string    `json:"run"`
	Number  int64     `json:"number"` // in the order of arrival
	Arrived time.Time `json:"arrived"`
}

// Limits bound the inbox.
type Limits struct {
	All  int // entries that wait
	Hook int // entries of one hook that wait
	Jobs int // runs at once
}

// LimitsOf returns the limits of an inbox of so many entries in all, of which one hook can have half, and so many runs at once.
func LimitsOf(all, jobs int) Limits { return Limits{All: all, Hook: max(all/2, 1), Jobs: jobs} }

// Book is the inbox of one data directory.
type Book struct {
	Home   paths.Dir
	Disk   store.Disk
	Zone   *time.Location
	Limits Limits
	NewRun func() (string, error)                  // makes the id of a run
	Runs   func(since time.Time) ([]string, error) // lists the ids of the runs that were made since an instant
}

// ErrGone is the error of an entry that is not in the inbox.
var ErrGone = errors.New("it is not in the inbox")

// Hooks returns the ids of the hooks whose directory exists.
func (b Book) Hooks() (ids []string, err error) {
	files, err := os.ReadDir(b.Home.Inbox())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if f.IsDir() {
			ids = append(ids, f.Name())
		}
	}
	return ids, err
}

// name identifies an entry by the name of its file.
type name struct {
	number int64
	run    string
}

func (n name) file() string { return fmt.Sprintf("%013d-%s.json", n.number, n.run) }

// names lists the entries of a hook, in the order of arrival.
func (b Book) names(hook string) (list []name, err error) {
	dir, err := os.Open(b.folder(hook))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	files, err := dir.Readdirnames(-1)
	for _, f := range files {
		if n, ok := parse(f); ok {
			list = append(list, n)
		}
	}
	order.Sort(list, func(a, b name) int { return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.run, b.run)) })
	return list, err
}

func parse(file string) (n name, ok bool) {
	id, isJSON := strings.CutSuffix(file, ".json")
	_, run, _ := strings.Cut(id, "-")
	if _, err := fmt.Sscanf(id, "%d-", &n.number); err != nil || !isJSON {
		return n, false
	}
	n.run = run
	return n, n.file() == file
}

// First returns the oldest entry of a hook and how many of its entries wait. The error is ErrGone if there is none.
func (b Book) First(hook string) (e Entry, waiting int, err error) {
	list, err := b.names(hook)
	for i, n := range list {
		e, err = b.load(hook, n)
		if !errors.Is(err, ErrGone) { // it was taken just now, or set aside
			return e, len(list) - i, err
		}
	}
	if err == nil {
		err = ErrGone
	}
	return e, 0, err
}

// Contents returns all entries that wait, by hook in the order of arrival.
func (b Book) Contents() (all []Entry, err error) {
	hooks, err := b.Hooks()
	for _, hook := range hooks {
		list, listErr := b.names(hook)
		err = errors.Join(err, listErr)
		for _, n := range list {
			e, loadErr := b.load(hook, n)
			switch {
			case loadErr == nil:
				all = append(all, e)
			case !errors.Is(loadErr, ErrGone):
				err = errors.Join(err, loadErr)
			}
		}
	}
	return all, err
}

// Find returns the entry of a run. The error is ErrGone if it does not wait.
func (b Book) Find(run string) (Entry, error) {
	hooks, err := b.Hooks()
	if err != nil {
		return Entry{}, err
	}
	for _, hook := range hooks {
		list, err := b.names(hook)
		if err != nil {
			return Entry{}, err
		}
		if i := slices.IndexFunc(list, func(n name) bool { return n.run == run }); i >= 0 {
			return b.load(hook, list[i])
		}
	}
	return Entry{}, fmt.Errorf("%s: %w", run, ErrGone)
}

// Waits reports whether the run of an entry has not begun.
func (b Book) Waits(run string) bool {
	_, err := b.Find(run)
	return !errors.Is(err, ErrGone)
}

func (b Book) load(hook string, n name) (Entry, error) {
	e, err := store.ReadJSON[Entry](b.Disk, b.path(hook, n))
	if err == nil && (e.Run != n.run || e.Number != n.number || e.Hook != hook) {
		err = fmt.Errorf("%s: %w", n.run, ErrGone)
	}
	return e, err
}

// Claim gives an entry to its run, whose directory exists. The error is ErrGone if another process has taken it.
func (b Book) Claim(e Entry) error { return move(b.pathOf(e), b.Home.RunEntry(e.Run)) }

// GiveBack undoes Claim.
func (b Book) GiveBack(e Entry) error {
	if err := store.MkdirOwn(b.folder(e.Hook)); err != nil {
		return err
	}
	return move(b.Home.RunEntry(e.Run), b.pathOf(e))
}

// Prune removes the entries of a hook that arrived before an instant, and what was noted of the hook if none is left.
func (b Book) Prune(hook string, before time.Time) error {
	list, err := b.names(hook)
	for _, n := range list {
		e, loadErr := b.load(hook, n)
		if errors.Is(loadErr, ErrGone) {
			continue
		}
		if loadErr != nil || !e.Arrived.Before(before) {
			return errors.Join(err, loadErr)
		}
		err = errors.Join(err, store.Remove(b.path(hook, n)))
	}
	if err == nil && os.Remove(b.folder(hook)) == nil { // it is empty
		err = store.Remove(b.startsPath(hook))
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

func (b Book) folder(hook string) string       { return filepath.Join(b.Home.Inbox(), hook) }
func (b Book) path(hook string, n name) string { return filepath.Join(b.folder(hook), n.file()) }
func (b Book) pathOf(e Entry) string           { return b.path(e.Hook, name{e.Number, e.Run}) }
