package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// checkpoint is the fold of the facts up to a position.
type checkpoint struct {
	At    position                   `json:"at"`
	Books map[string]json.RawMessage `json:"books"`
}

func (l *Ledger) checkpointPath() string { return l.home.State("checkpoint.json") }

func (l *Ledger) basePath() string { return l.home.Ledger("base.json") }

// from returns the view of a state, without the facts since.
func (l *Ledger) from(c checkpoint) *view {
	v := &view{l: l, states: map[string]*state{}, mark: c.At, at: c.At, parts: c.Books}
	for _, part := range c.Books {
		v.size += int64(len(part))
	}
	return v
}

// atBase returns the view of the state before the first fact that is on disk.
func (l *Ledger) atBase() (*view, error) {
	c, err := l.loadBase()
	if err != nil {
		return nil, err
	}
	v := l.from(c)
	v.base = c.At
	return v, nil
}

// loadBase returns the state before the first fact that is on disk. A base that cannot be read is an error: nothing else has that state.
func (l *Ledger) loadBase() (checkpoint, error) {
	c, invalid, err := store.PeekJSON[checkpoint](l.basePath())
	switch {
	case err != nil:
		return c, err
	case invalid != nil:
		return c, fmt.Errorf("%s: not valid: %w: restore it from a backup, or remove it, which forgets what its days have said", l.basePath(), invalid)
	case c.At.Day == "": // there is none
		c = checkpoint{At: position{Hash: first}}
	}
	return c, nil
}

// save writes the checkpoint. The checkpoint is a cache: after an error the next processes have to read a longer tail.
func (l *Ledger) save() {
	if l.view.fold() != nil {
		l.view = nil
		return
	}
	if c, err := l.view.checkpoint(); err == nil {
		l.view.size = int64(len(c))
		_ = store.Write(l.checkpointPath(), c, store.Buffered)
	}
}

// checkpoint returns the text of a checkpoint at the mark of a view that was folded.
func (v *view) checkpoint() ([]byte, error) {
	c := checkpoint{At: v.mark, Books: map[string]json.RawMessage{}}
	for name, s := range v.states {
		text, err := json.Marshal(s.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.Books[name] = text
	}
	text, _ := json.Marshal(c) // it consists of JSON
	return append(text, '\n'), nil
}

// Trim removes the files of the days before an instant, except the newest file. The base keeps the state that results from them.
func (l *Ledger) Trim(ctx context.Context, before time.Time) error {
	held, err := l.disk.Lock(ctx, l.home.LedgerLock())
	if err != nil {
		return err
	}
	defer held.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.tidy(); err != nil {
		return err
	}
	days, err := l.days()
	if err != nil {
		return err
	}
	n := 0
	for n < len(days)-1 && days[n] < before.UTC().Format(time.DateOnly) {
		n++
	}
	if n == 0 {
		return nil
	}
	if err := l.rebase(days[n-1]); err != nil {
		return err
	}
	for _, day := range days[:n] {
		if err := os.Remove(l.path(day)); err != nil {
			return &store.NotWritten{Path: l.path(day), Err: err}
		}
	}
	return nil
}

// tidy puts away the files that an import left when it was ended by a crash.
func (l *Ledger) tidy() error {
	if err := l.refresh(); err != nil {
		return err
	}
	owed, err := l.owed(View{l.view})
	if err == nil && len(owed) == 0 {
		l.putAway(l.Imports)
	}
	return err
}

// rebase makes the end of a day the base.
func (l *Ledger) rebase(day string) error {
	v, err := l.atBase()
	if err != nil {
		return err
	}
	var failed error
	err = v.readOn(position{Day: day, Offset: -1}, func(line Line) {
		if v.add(line); v.weight > most {
			failed = errors.Join(failed, v.fold())
		}
	})
	err = errors.Join(err, failed)
	if err == nil {
		err = v.fold()
	}
	if err != nil {
		return err
	}
	text, err := v.checkpoint()
	if err != nil {
		return err
	}
	return store.Write(l.basePath(), text, store.Synced)
}
