package state

import (
	"errors"

	"github.com/ollim/ollim/internal/platform/store"
)

// Unusable returns why no slot of a routine can be claimed and no run recorded: a directory that each needs, or the lock of the ledger,
// cannot be used. It changes nothing.
func (s *Stores) Unusable() error {
	home := s.Runs.Home
	err := store.UsableFile(home.LedgerLock())
	for _, dir := range []string{home.Ledger(), home.Locks(), home.Runs(), home.Slots()} {
		err = errors.Join(err, store.UsableDir(dir))
	}
	return err
}
