package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/session"
)

// InUse is the error of a transcript that is the current session of main or of a routine.
type InUse struct{ Name SessionName }

func (e *InUse) Error() string {
	return fmt.Sprintf("%v: it is the session of %s", ErrNotAllowed, e.Name.Text)
}

// Unwrap returns ErrNotAllowed.
func (*InUse) Unwrap() error { return ErrNotAllowed }

// writeTime is the longest time from writing an image or a document to writing the line that refers to it. Tick removes what this leaves.
const writeTime = time.Minute

// DeleteTranscript deletes a file that nobody uses, and the images and documents to which nothing else refers.
func (h Home) DeleteTranscript(ctx context.Context, c Conversation) error {
	guard, err := lock.TryGuard(c.File.Path)
	if err != nil {
		return err
	}
	defer guard.Release()
	held, err := h.CurrentNames() // read under the lock, so that nobody begins to use the file
	if err != nil {
		return err
	}
	if n, ok := held[c.ID]; ok {
		return &InUse{n}
	}
	shown, err := c.File.Objects()
	if err != nil {
		return err
	}
	if err := store.Remove(c.File.Path); err != nil || len(shown) == 0 {
		return err
	}
	others, err := h.Transcripts().Objects()
	if err != nil {
		return err
	}
	runs, err := h.Runs.After(time.Time{}) // all
	if err != nil {
		return err
	}
	sent, err := h.Requests.Named(runs)
	if err != nil {
		return err
	}
	return h.Objects.Sweep(ctx, h.app.Now().Add(-writeTime), func(hash string) bool { return others[hash] || sent[hash] || !shown[hash] })
}

// Forget removes a session's id, under its lock; the transcript stays. Main is cleared even if a turn holds the lock; the error of a
// routine that is running is a lock.ErrBusy.
func (h Home) Forget(ctx context.Context, n SessionName) error {
	guard, err := lock.TryGuard(h.Dir.SessionLock(n.Routine))
	if errors.Is(err, lock.ErrBusy) && n.Routine == "" {
		return h.Turns(true).Clear(ctx)
	}
	if err != nil {
		return err
	}
	defer guard.Release()
	id, err := n.ID(h.Sessions)
	if err != nil {
		return err
	}
	if n.Routine == "" {
		err = h.Sessions.ClearMain()
	} else {
		err = h.Sessions.RemoveRoutine(n.Routine)
	}
	if err != nil {
		return err
	}
	return h.Sessions.Log(ctx, session.Event{SessionID: id, Event: session.Cleared})
}
