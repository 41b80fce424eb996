package transcript

import (
	"context"

	"github.com/ollim/ollim/internal/platform/lock"
)

// Lock takes the transcript for whoever goes on with it, waiting until ctx ends; then the error wraps lock.ErrBusy. What was
// loaded before may be old. Readers need no lock.
func (t Transcript) Lock(ctx context.Context) (*lock.Guard, error) {
	return lock.WaitGuard(ctx, t.Path)
}

// Busy says whether somebody goes on with the transcript right now.
func (t Transcript) Busy() bool { return !lock.Free(t.Path) }
