package fire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/slot"
)

// ErrUnasked is the error of a fire that did not run because the owner's claim command failed. The next tick asks again.
var ErrUnasked = errors.New("the claim command failed")

const (
	askLimit  = 30 * time.Second // for one call of the claim command
	notOurs   = 75               // its exit status if another machine has the slot
	wonByThem = "the claim command gave the slot to another machine"
)

// ask starts the owner's claim command for the slot of the fire, unless an earlier call gave the slot to this machine. The caller holds the
// job's lock, and the claim is the fire's. A slot of another machine leaves a timer's fire with nothing to do, and makes any other fire an
// additional run. An ErrUnasked voids the claim.
func (c *claim) ask(ctx context.Context) error {
	command := c.r.Settings.Claim
	if command == "" || c.at.IsZero() {
		return nil
	}
	held, err := c.r.Slots.Load(c.job.ID, c.at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || held.Won {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, askLimit, fmt.Errorf("it did not end within %s", askLimit))
	defer cancel()
	result, err := process.Run(limited, process.Call{
		Argv: []string{command, c.job.ID, c.at.UTC().Format(time.RFC3339), c.r.Host.Name}, Env: c.r.Host.Env, Dir: c.r.Home.Path(), Grace: stopGrace,
	})
	switch {
	case err == nil && result.Status == 0:
		c.answered(ctx)
		return c.r.Slots.Win(c.job.ID, c.at, c.run)
	case err == nil && result.Status == notOurs:
		c.answered(ctx)
		lost := slot.Claim{Job: c.job.ID, Slot: c.at, Claimed: c.r.Disk.Now().In(c.r.Zone), Outcome: slot.Elsewhere, Held: wonByThem}
		c.rival, c.at = c.at, time.Time{}
		if err := c.r.Slots.Rewrite(lost); err != nil {
			return err
		}
		if c.yields() {
			return slot.ErrClaimed
		}
		return nil
	case err == nil:
		err = fmt.Errorf("%s: %s", result.End, cmp.Or(strings.Join(strings.Fields(result.Stderr), " "), "it printed no reason"))
	}
	why := command + ": " + err.Error()
	at := c.at
	c.at = time.Time{}
	err = c.r.Slots.Rewrite(slot.Claim{Job: c.job.ID, Slot: at, Claimed: c.r.Disk.Now().In(c.r.Zone), Held: why, Unasked: true})
	if ctx.Err() == nil {
		err = errors.Join(err, Reports{c.r}.unasked(ctx, c.job.ID, why, notice.Count{}))
	}
	c.r.Warn(err)
	return fmt.Errorf("%w: %s", ErrUnasked, why)
}

// answered closes the cause of a claim command that failed before.
func (c *claim) answered(ctx context.Context) {
	if !c.r.Notices.Empty() {
		c.r.Warn(c.r.Notify().Close(ctx, unaskedCause("").Key(), "works again"))
	}
}

func unaskedCause(command string) notify.Cause {
	return notify.Cause{
		Kind: notify.Claim, Subject: "claim", Name: "The claim command",
		Remedy: fmt.Sprintf("try it by hand: `%s JOB SLOT MACHINE; echo $?`; the setting is claim", command),
	}
}

// unasked reports that a slot was not run because the claim command failed, and counts what came of that.
func (t Reports) unasked(ctx context.Context, id, why string, n notice.Count) error {
	label := t.labelOf(id)
	c := unaskedCause(t.r.Settings.Claim)
	c.Text = fmt.Sprintf("%s did not run, because the claim command failed (%s). Each tick asks it again, for 15 minutes", label, why)
	c.Jobs = []notify.Affected{{ID: id, Name: label, Count: n}}
	return t.tell(ctx, c)
}
