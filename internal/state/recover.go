package state

import (
	"errors"
	"slices"
	"strings"

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
	c := slot.Claim{Job: r.Job, Slot: *r.Scheduled, Claimed: r.Started, Run: r.ID, PID: r.PID, PIDStart: r.Start}
	if r.Done() {
		c.Outcome = string(r.Outcome)
	}
	return s.Slots.Restore(c)
}
