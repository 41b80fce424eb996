package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// maxBoots is how many boots are remembered: more than the machines that may share a data directory.
const maxBoots = 16

// Recover makes the records of runs and the claims of slots agree with the ledger, once in each boot of the machine: a power failure may
// have undone them. It comes before anything that depends on what earlier runs did. Without boot ids it is done each time.
func (s *Stores) Recover() error {
	boot, path := process.Boot(), s.Runs.Home.State("boots")
	text, _ := store.Read(path) // if it is lost, too much is done
	known := strings.Fields(string(text))
	if boot != "" && slices.Contains(known, boot) {
		return nil
	}
	last, err := s.Runs.Restore()
	for _, r := range last {
		err = errors.Join(err, s.restoreClaim(r))
	}
	if err != nil || boot == "" {
		return err
	}
	known = append(known, boot)
	text = []byte(strings.Join(known[max(0, len(known)-maxBoots):], "\n") + "\n")
	return store.Write(path, text, store.Buffered)
}

// restoreClaim makes the claim of a run on a slot of its routine again.
func (s *Stores) restoreClaim(r runlog.Record) error {
	if r.Kind != string(job.Routine) || r.Scheduled == nil {
		return nil
	}
	return s.Slots.Restore(claimOf(r))
}

// Reclaim makes the claim of a routine's slot again if the ledger has a run of the slot other than the run given, and reports whether it has.
// It warns, because only a fault of the disk or a person damages or removes a claim. The caller holds the job's lock.
func (s *Stores) Reclaim(routine string, at time.Time, except string) (bool, error) {
	r, err := s.Runs.OfSlot(string(job.Routine), routine, at)
	if err != nil || r.ID == "" || r.ID == except {
		return false, err
	}
	if err := s.Slots.Rewrite(claimOf(r)); err != nil {
		return true, err
	}
	s.Slots.Disk.Warn(fmt.Sprintf("%s: missing or not valid: made again from the ledger, because %s is the run of this slot", s.Slots.Path(routine, at), r.ID))
	return true, nil
}

// claimOf returns the claim of a run on its slot.
func claimOf(r runlog.Record) slot.Claim {
	c := slot.Claim{Job: r.Job, Slot: *r.Scheduled, Claimed: r.Started, Run: r.ID, PID: r.PID, PIDStart: r.Start}
	if r.Done() {
		c.Outcome = string(r.Outcome)
	}
	return c
}
