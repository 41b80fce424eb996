package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/app"
)

// offerApproval is for a directory that was there before: what in it waits for the owner is asked about on a terminal, job
// after job, and named elsewhere. An answer, also a no, changes nothing of what init has made.
func (d *Deps) offerApproval(ctx context.Context) error {
	if errors.Is(d.OwnerOnly(), app.ErrNotAllowed) {
		return nil // whoever this is, it is not theirs to say
	}
	s, h, err := d.shelf()
	if as[*app.ConfigFault](err) {
		return nil // of settings that init left as they were
	}
	if err != nil {
		return err
	}
	a := approver{d: d, h: h, failed: failures{d: d, verb: "init"}}
	if err := a.collectAll(s); err != nil {
		return err
	}
	a.found = slices.DeleteFunc(a.found, func(c candidate) bool { return c.state == stateApproved })
	if len(a.found) == 0 {
		return nil
	}
	var names []string
	for _, c := range a.found {
		names = append(names, c.name)
	}
	waiting := "wait for your approval: " + strings.Join(names, ", ")
	if !isTerminal(d.In) || !isTerminal(d.Stderr) {
		d.warn(waiting + ": ollim approve --all")
		return nil
	}
	d.note("these %s", waiting)
	return a.askAll(ctx)
}
