package transcript

import (
	"context"

	"github.com/ollim/ollim/internal/platform/lock"
)

// Lock locks the transcript for appending, waiting until ctx ends; then the error wraps lock.ErrBusy. Entries that were
// loaded earlier may be out of date. Readers need no lock.
func (t Transcript) Lock(ctx context.Context, locks *lock.Table) (*lock.Guard, error) {
	return locks.WaitGuard(ctx, t.Path)
}

// Busy reports whether the transcript is locked.
func (t Transcript) Busy() bool { return !lock.Free(t.Path) }
