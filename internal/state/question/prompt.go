package question

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// promptLife is how long the prompt of a button is kept.
const promptLife = 7 * 24 * time.Hour

var (
	errUsed = &Closed{Reason: "the button was pressed already"}
	errOld  = &Closed{Reason: "the button is more than seven days old"}
)

// prompt is the prompt of a button.
type prompt struct {
	Prompt string    `json:"prompt"`
	Kept   time.Time `json:"ts"`
	Used   time.Time `json:"used,omitzero"`
}

// KeepPrompt stores the prompt of a button and returns its id.
func (b Book) KeepPrompt(ctx context.Context, text string) (id string, err error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	id = hex.EncodeToString(random[:])
	return id, b.editPrompts(ctx, func(all map[string]prompt) error {
		all[id] = prompt{Prompt: text, Kept: b.Disk.Now().UTC()}
		return nil
	})
}

// UsePrompt returns the prompt of an id, to one caller only. The error is a *Closed if it was used, or is too old.
func (b Book) UsePrompt(ctx context.Context, id string) (text string, err error) {
	err = b.editPrompts(ctx, func(all map[string]prompt) error {
		p, kept := all[id]
		switch {
		case !kept:
			return errOld
		case !p.Used.IsZero():
			return errUsed
		}
		text, p.Used = p.Prompt, b.Disk.Now().UTC()
		all[id] = p
		return nil
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

// ReturnPrompt makes a prompt usable again that was used but not queued.
func (b Book) ReturnPrompt(ctx context.Context, id string) error {
	return b.editPrompts(ctx, func(all map[string]prompt) error {
		if p, kept := all[id]; kept {
			p.Used = time.Time{}
			all[id] = p
		}
		return nil
	})
}

// editPrompts removes the prompts that are too old, and changes the others.
func (b Book) editPrompts(ctx context.Context, change func(map[string]prompt) error) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("inquiries"), b.Home.State("inquiries.json"), func(all *map[string]prompt) error {
		if *all == nil {
			*all = map[string]prompt{}
		}
		for id, p := range *all {
			if b.Disk.Now().Sub(p.Kept) > promptLife {
				delete(*all, id)
			}
		}
		return change(*all)
	})
}
