package tick

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	data, err := store.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	var p page
	if err == nil {
		if err = json.Unmarshal(data, &p); err != nil {
			err = fmt.Errorf("%s: not valid: %w", path, err)
		}
	}
	if err != nil || p.Accounted.IsZero() {
		return time.Time{}, err
	}
	return p.Accounted.Add(slot.Grace), nil
}
