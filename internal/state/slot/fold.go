package slot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Recent is how long the claim of a slot has a file of its own. Claims that are older and have their outcome are lines of one file for each
// job and month, state/slots/<job>/2026-02.jsonl, where they take some hundred bytes rather than a block of the disk. A file of its own
// counts before a line. The newest claim of a job keeps its own file, because earlier versions read only such files. Without it an earlier
// version could take the slot of a week for missed and run it again.
const Recent = 48 * time.Hour

// foldForm is the layout of the name of such a file: the month of its instants in UTC.
const foldForm = "2006-01" + foldExt

const foldExt = ".jsonl"

func (b Book) foldPath(job string, at time.Time) string {
	return filepath.Join(b.folder(job), at.UTC().Format(foldForm))
}

// change changes the claim of an instant: under the lock of the files of months if it is old enough to be there, or to be moved there.
func (b Book) change(at time.Time, do func(old bool) error) error {
	if at.After(b.Disk.Now().Add(-Recent / 2)) {
		return do(false)
	}
	return b.Disk.Locked(context.Background(), b.foldLock(), func() error { return do(true) })
}

func (b Book) foldLock() string { return b.Home.Lock("slots") }

// foldable reports whether a claim is not expected to change: a run that waits for its owner's answer, or is in progress, still gets an
// outcome. A folded claim that does change gets a file of its own again.
func foldable(c Claim) bool { return c.Outcome != "" && c.Outcome != "waiting" }

// Fold moves the claims that are no longer recent at an instant into the files of their months, until ctx ends. If the process is killed,
// a claim may be in both places.
func (b Book) Fold(ctx context.Context, now time.Time) error {
	jobs, err := b.jobs()
	for _, id := range jobs {
		if ctx.Err() != nil {
			return err
		}
		err = errors.Join(err, b.foldJob(ctx, id, now.Add(-Recent)))
	}
	return err
}

func (b Book) foldJob(ctx context.Context, id string, before time.Time) error {
	entries, err := os.ReadDir(b.folder(id))
	if err != nil {
		return err
	}
	months := map[string][]Claim{}
	newest := true
	for _, e := range slices.Backward(entries) { // os.ReadDir sorts them
		at, parseErr := time.Parse(form, e.Name())
		if parseErr != nil {
			continue
		}
		if newest || !at.Before(before) {
			newest = false
			continue
		}
		data, readErr := read(b.Path(id, at))
		c := Claim{Job: id}
		if readErr == nil && json.Unmarshal(data, &c) == nil && foldable(c) && c.Slot.Equal(at) {
			path := b.foldPath(id, at)
			months[path] = append(months[path], c)
		}
	}
	if len(months) == 0 {
		return nil
	}
	return b.Disk.Locked(ctx, b.foldLock(), func() error {
		for _, path := range slices.Sorted(maps.Keys(months)) {
			if err := b.foldMonth(id, path, months[path]); err != nil {
				return err
			}
		}
		return nil
	})
}

// foldMonth adds claims to the file of a month and then removes their own files. The caller holds the lock.
func (b Book) foldMonth(id, path string, claims []Claim) error {
	known, err := folded(path)
	if err != nil {
		return err
	}
	for _, c := range claims {
		now, err := b.Load(id, c.Slot)
		if err == nil && now.Outcome == c.Outcome && now.Run == c.Run {
			c.PID, c.PIDStart, c.Held = 0, 0, ""
			known[c.Slot.Unix()] = c
		}
	}
	if err := writeFold(path, known); err != nil {
		return err
	}
	for _, c := range claims {
		if _, in := known[c.Slot.Unix()]; in {
			err = errors.Join(err, os.Remove(b.Path(id, c.Slot)))
		}
	}
	return err
}

// writeFold writes the claims of a month, oldest first. It waits for the disk, because the files that it replaces are removed next.
func writeFold(path string, claims map[int64]Claim) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, at := range slices.Sorted(maps.Keys(claims)) {
		if err := encoder.Encode(claims[at]); err != nil {
			return err
		}
	}
	return store.Write(path, text.Bytes(), store.Synced)
}

// folded returns the claims in the file of a month, by instant. A missing file has none; lines that cannot be parsed are omitted.
func folded(path string) (map[int64]Claim, error) {
	claims := map[int64]Claim{}
	for c, err := range store.Lines[Claim](path, nil) {
		if err != nil {
			return claims, err
		}
		claims[c.Slot.Unix()] = c
	}
	return claims, nil
}

// Reader reads the claims of one job, and the file of each month once.
type Reader struct {
	book   Book
	job    string
	months map[string]map[int64]Claim
}

// Reader returns a reader of a job's claims, for an audit of many.
func (b Book) Reader(job string) *Reader {
	return &Reader{book: b, job: job, months: map[string]map[int64]Claim{}}
}

// Load loads the claim of an instant, as Book.Load does.
func (r *Reader) Load(at time.Time) (Claim, error) {
	c, err := r.book.own(r.job, at)
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	path := r.book.foldPath(r.job, at)
	month, known := r.months[path]
	if !known {
		var foldErr error
		if month, foldErr = folded(path); foldErr != nil {
			return c, foldErr
		}
		r.months[path] = month
	}
	if old, in := month[at.Unix()]; in {
		old.Job = r.job
		return old, nil
	}
	return c, err
}

// pruneFolds removes the claims of instants before a time from the files of a job's months.
func (b Book) pruneFolds(ctx context.Context, id string, before time.Time) error {
	entries, err := os.ReadDir(b.folder(id))
	for _, e := range entries {
		name, isFold := strings.CutSuffix(e.Name(), foldExt)
		month, parseErr := time.Parse(strings.TrimSuffix(foldForm, foldExt), name)
		if !isFold || parseErr != nil || !month.Before(before) {
			continue
		}
		path := filepath.Join(b.folder(id), e.Name())
		err = errors.Join(err, b.Disk.Locked(ctx, b.foldLock(), func() error {
			claims, err := folded(path)
			if err != nil {
				return err
			}
			had := len(claims)
			maps.DeleteFunc(claims, func(_ int64, c Claim) bool { return c.Slot.Before(before) })
			switch len(claims) {
			case had:
				return nil
			case 0:
				return os.Remove(path)
			}
			return writeFold(path, claims)
		}))
	}
	return err
}
