package tick

import (
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/slot"
)

// Quiet is how long ago Seen may be while ticks come each minute.
const Quiet = noteEvery + 2*time.Minute

// Seen returns the latest tick that is known, to within five minutes: not every tick writes something. It is zero before the first
// one. It is read-only.
func Seen(home paths.Dir) (time.Time, error) {
	path := pagePath(home)
	p, invalid, err := store.PeekJSON[page](path)
	if invalid != nil {
		err = fmt.Errorf("%s: not valid: %w", path, invalid)
	}
	if err != nil || p.Accounted.IsZero() {
		return time.Time{}, err
	}
	return p.Accounted.Add(slot.Grace), nil
}
