package spend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

type stop struct {
	Until time.Time `json:"until,omitzero"`
	Since time.Time `json:"since,omitzero"`           // zero if an earlier version wrote the file
	All   bool      `json:"hold_reminders,omitempty"` // plain reminders are held as well
}

func (b Book) pausePath() string { return b.Home.State("pause.json") }

// Pause stops every automatic fire until an instant, or until Resume if until is zero. It replaces an earlier pause. It returns an error
// for an instant that is not in the future.
func (b Book) Pause(ctx context.Context, until time.Time) error { return b.pause(ctx, until, false) }

// PauseAll is Pause, and it also holds plain reminders.
func (b Book) PauseAll(ctx context.Context, until time.Time) error { return b.pause(ctx, until, true) }

func (b Book) pause(ctx context.Context, until time.Time, all bool) error {
	if !until.IsZero() {
		if until = until.In(b.Zone); !until.After(b.Disk.Now()) {
			return fmt.Errorf("%s is not in the future", until.Format(time.RFC3339))
		}
	}
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("pause"), b.pausePath(), func(s *stop) error {
		if s.Since.IsZero() || !s.Until.IsZero() && !s.Until.After(b.Disk.Now()) { // no pause is in force, so this one begins now
			s.Since = b.Disk.Now().In(b.Zone)
		}
		s.Until, s.All = until, all
		return nil
	})
}

// Resume allows automatic fires again. It also succeeds if they are not paused.
func (b Book) Resume(ctx context.Context) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("pause"), b.pausePath(), func(*stop) error { return store.ErrEmpty })
}

// Paused reports whether automatic fires are stopped, and until when; a zero time means until Resume. It takes no lock and changes
// nothing. With an error paused is true: the file exists and is invalid.
func (b Book) Paused() (paused bool, until time.Time, err error) {
	data, err := store.Read(b.pausePath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, time.Time{}, nil
	}
	if err != nil {
		return true, time.Time{}, fmt.Errorf("treated as paused: %w", err)
	}
	var s stop
	if err := json.Unmarshal(data, &s); err != nil {
		return true, time.Time{}, fmt.Errorf("%s: not valid (%w): treated as paused", b.pausePath(), err)
	}
	if s.Until.IsZero() {
		return true, time.Time{}, nil
	}
	if !s.Until.After(b.Disk.Now()) {
		return false, time.Time{}, nil
	}
	return true, s.Until.In(b.Zone), nil
}

// LastPause is a pause in force, or one that has ended and was not removed by Resume.
type LastPause struct {
	Since time.Time // zero if unknown
	Over  bool      // the pause has ended
	All   bool      // plain reminders are held as well
}

// LastPause returns the pause that was last set; known is false if there is none. It takes no lock.
func (b Book) LastPause() (p LastPause, known bool) {
	data, err := store.Read(b.pausePath())
	var s stop
	if err != nil || json.Unmarshal(data, &s) != nil {
		return p, false
	}
	return LastPause{Since: s.Since, Over: !s.Until.IsZero() && !s.Until.After(b.Disk.Now()), All: s.All}, true
}
