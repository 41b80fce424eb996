package inbox

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
)

// Bounds of the time after which an entry is started again whose process ended before the run began. It doubles each time.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Starts is what is noted about the processes that were started for the entries of a hook.
type Starts struct {
	Run     string      `json:"run"`   // of the latest entry
	Tries   int         `json:"tries"` // how often a process was started for it
	Process process.ID  `json:"process"`
	At      time.Time   `json:"at"`             // when it was started
	Past    []time.Time `json:"past,omitempty"` // when the hook's entries were first started, oldest first, as far as the rate limit needs it
}

// LockStarts excludes other processes that start entries.
func (b Book) LockStarts(ctx context.Context) (*lock.Held, error) {
	return b.Disk.Lock(ctx, b.Home.Lock("inbox-starts"))
}

// Starts returns the notes about a hook. The caller holds LockStarts.
func (b Book) Starts(hook string) (Starts, error) {
	return store.ReadJSON[Starts](b.Disk, b.startsPath(hook))
}

// NoteStarts replaces the notes about a hook. The caller holds LockStarts. They may be lost in a power cut, as the processes are.
func (b Book) NoteStarts(hook string, s Starts) error {
	return store.WriteJSON(b.startsPath(hook), s, store.Buffered)
}

func (b Book) startsPath(hook string) string { return filepath.Join(b.folder(hook), "starts.json") }

// Started returns the notes after a process was started for an entry. The rate limit counts the starts of a period.
func (s Starts) Started(run string, p process.ID, now time.Time, period time.Duration) Starts {
	if s.Run != run {
		s.Run, s.Tries = run, 0
		s.Past = append(slices.DeleteFunc(slices.Clone(s.Past), func(at time.Time) bool { return now.Sub(at) >= period }), now)
	}
	s.Process, s.At = p, now
	s.Tries++
	return s
}

// Pending reports whether the process that was started for an entry is alive.
func (s Starts) Pending(run string) bool { return s.Run == run && s.Process.Alive() }

// Wait returns how long an entry must not be started yet: a hook starts at most n entries in any period, and an entry that was started
// in vain is tried again later and later. A note of a time in the future is of a clock that was set back since, and is ignored.
func (s Starts) Wait(run string, now time.Time, n int, period time.Duration) time.Duration {
	since, wait := s.At, time.Duration(0)
	switch {
	case s.Run == run:
		wait = min(firstRetry<<min(s.Tries-1, 20), lastRetry)
	case n > 0 && len(s.Past) >= n:
		since, wait = s.Past[len(s.Past)-n], period
	}
	if ago := now.Sub(since); ago >= 0 && ago < wait {
		return wait - ago
	}
	return 0
}
