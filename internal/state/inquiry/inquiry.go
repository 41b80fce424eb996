// Package inquiry keeps the prompts of buttons, because the id of a button is too short for one.
//
// On disk: state/inquiries.json, absent before the first one,
//
//	{"<id>": {"prompt": "Prepare the meeting", "ts": "2026-02-24T14:30:00Z", "used": "2026-02-24T15:00:00Z"}}
//
// changed under the lock "inquiries". A prompt is used once, and forgotten seven days after it was kept. A file that cannot be
// parsed is set aside.
package inquiry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Limit is how long a prompt is kept.
const Limit = 7 * 24 * time.Hour

// Errors of Use.
var (
	ErrUsed    = errors.New("the button was pressed already")
	ErrExpired = errors.New("the button is more than seven days old")
)

// Book holds the prompts of one data directory. Besides ErrUsed and ErrExpired an error wraps *store.NotWritten, *lock.Failed, or
// lock.ErrBusy after ten seconds; nothing is changed then.
type Book struct {
	Home paths.Dir
	Disk store.Disk
}

type entry struct {
	Prompt string    `json:"prompt"`
	Kept   time.Time `json:"ts"`
	Used   time.Time `json:"used,omitzero"`
}

// Keep keeps a prompt and returns its id.
func (b Book) Keep(ctx context.Context, prompt string) (id string, err error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	id = hex.EncodeToString(random[:])
	return id, b.edit(ctx, func(all map[string]entry) error {
		all[id] = entry{Prompt: prompt, Kept: b.Disk.Now().UTC()}
		return nil
	})
}

// Use returns the prompt of an id, to one caller only.
func (b Book) Use(ctx context.Context, id string) (prompt string, err error) {
	err = b.edit(ctx, func(all map[string]entry) error {
		e, kept := all[id]
		switch {
		case !kept:
			return ErrExpired
		case !e.Used.IsZero():
			return ErrUsed
		}
		prompt, e.Used = e.Prompt, b.Disk.Now().UTC()
		all[id] = e
		return nil
	})
	if err != nil {
		prompt = ""
	}
	return prompt, err
}

// Return makes a prompt usable again that was used but not queued.
func (b Book) Return(ctx context.Context, id string) error {
	return b.edit(ctx, func(all map[string]entry) error {
		if e, kept := all[id]; kept {
			e.Used = time.Time{}
			all[id] = e
		}
		return nil
	})
}

// edit changes the prompts, of which those that are too old are gone.
func (b Book) edit(ctx context.Context, change func(map[string]entry) error) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("inquiries"), b.Home.Inquiries(), func(all *map[string]entry) error {
		if *all == nil {
			*all = map[string]entry{}
		}
		for id, e := range *all {
			if b.Disk.Now().Sub(e.Kept) > Limit {
				delete(*all, id)
			}
		}
		return change(*all)
	})
}
