// Package slot is the ledger of scheduled instants: one file for each that was answered, state/slots/<job>/<instant>, made by
// exclusive creation before anything else is done. So two schedulers, a line written by hand and a repeated catch-up make exactly
// one run of an instant, and what became of each can be told for as long as the files stay.
//
// A claim says which run answers it, and later how that ended. One whose run never got a record, because its process died
// between the two, is void: whoever holds the job's lock may take it over.
package slot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/home"
	"github.com/ollim/ollim/internal/store"
)

// ErrClaimed says that the instant has been answered by another run.
var ErrClaimed = errors.New("already claimed")

// Missed is the outcome of an instant that nobody answered in time; the others are those of runs.
const Missed = "missed"

// Claim is one file.
type Claim struct {
	Job     string    `json:"-"`
	Slot    time.Time `json:"slot"`
	Claimed time.Time `json:"claimed"`
	Run     string    `json:"run,omitempty"`     // its id; "" when missed
	Outcome string    `json:"outcome,omitempty"` // "" while the run is under way
}

// Book is the ledger of one data directory.
type Book struct {
	Home home.Dir
	Disk store.Disk
	Zone *time.Location
}

// Claim takes an instant for a run, or, with the outcome Missed, notes that nobody did. ErrClaimed when it is taken.
func (b Book) Claim(job string, at time.Time, run, outcome string) error {
	data, err := json.Marshal(Claim{Slot: at.In(b.Zone), Claimed: b.Disk.Now().In(b.Zone), Run: run, Outcome: outcome})
	if err != nil {
		return err
	}
	path := b.path(job, at)
	if err := store.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	err = store.Create(path, append(data, '\n'))
	if errors.Is(err, fs.ErrExist) {
		return ErrClaimed
	}
	return err
}

// Rewrite changes a claim: it is taken over by another run, or has ended. The caller is the run that has it, or holds the job's
// lock.
func (b Book) Rewrite(c Claim) error {
	c.Slot = c.Slot.In(b.Zone)
	return store.WriteJSONAs(b.path(c.Job, c.Slot), c, store.Buffered)
}

// Settle notes how the run that has a claim ended. A claim that another run has by now stays as it is.
func (b Book) Settle(job string, at time.Time, run, outcome string) error {
	c, err := b.Load(job, at)
	if err != nil || c.Run != run {
		return err
	}
	c.Outcome = outcome
	return b.Rewrite(c)
}

// Load reads one claim; fs.ErrNotExist when nobody has claimed the instant. A file that cannot be read as a claim is one
// without a run: it was claimed.
func (b Book) Load(job string, at time.Time) (Claim, error) {
	c := Claim{Job: job, Slot: at}
	data, err := os.ReadFile(b.path(job, at))
	if err != nil {
		return c, err
	}
	if json.Unmarshal(data, &c) != nil {
		return Claim{Job: job, Slot: at}, nil
	}
	return c, nil
}

// List is the claims of a job for instants from since on, oldest first.
func (b Book) List(job string, since time.Time) ([]Claim, error) {
	entries, err := os.ReadDir(b.folder(job))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var claims []Claim
	for _, e := range entries {
		at, err := time.Parse(form, e.Name())
		if err != nil || at.Before(since) {
			continue
		}
		c, err := b.Load(job, at)
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned this moment
		}
		if err != nil {
			return claims, err
		}
		claims = append(claims, c)
	}
	return claims, nil
}

// Jobs names the jobs that have claims, sorted.
func (b Book) Jobs() ([]string, error) {
	entries, err := os.ReadDir(b.Home.Slots())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Prune removes the claims of instants before a time.
func (b Book) Prune(before time.Time) error {
	jobs, err := b.Jobs()
	for _, id := range jobs {
		entries, readErr := os.ReadDir(b.folder(id))
		err = errors.Join(err, readErr)
		for _, e := range entries {
			if at, parseErr := time.Parse(form, e.Name()); parseErr == nil && at.Before(before) {
				err = errors.Join(err, os.Remove(filepath.Join(b.folder(id), e.Name())))
			}
		}
		_ = os.Remove(b.folder(id)) // if it is empty now
	}
	return err
}

// form is the name of a claim: its instant in UTC, which sorts by time.
const form = "20060102T150405Z"

func (b Book) path(job string, at time.Time) string {
	return filepath.Join(b.folder(job), at.UTC().Format(form))
}

func (b Book) folder(job string) string { return filepath.Join(b.Home.Slots(), job) }

// String is the instant as OLLIM_SLOT has it.
func (c Claim) String() string { return fmt.Sprintf("%s@%s", c.Job, c.Slot.UTC().Format(time.RFC3339)) }
