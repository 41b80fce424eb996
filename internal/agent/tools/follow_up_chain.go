package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

func chains(b *Set) error {
	r := b.Run.Record
	switch {
	case r.MaxChain == 0:
		return &Refused{"follow_up_chain is for reminders with max-chain only; to be reminded later use add_reminder."}
	case r.ChainDepth >= r.MaxChain:
		return &Refused{prompt.FollowUpTooLate(r.Foreground, r.AllowPing, job.UpdateMode(r.Update))}
	}
	return nil
}

// maxFollowUp is a week, in minutes.
const maxFollowUp = 7 * 24 * 60

func callFollowUp(ctx context.Context, b *Set, in struct {
	Minutes int `json:"minutes_from_now"`
}) (string, error) {
	if in.Minutes < 1 || in.Minutes > maxFollowUp {
		return "", fmt.Errorf("bad arguments: minutes_from_now must be 1 to %d", maxFollowUp)
	}
	at := b.Disk.Now().Add(time.Duration(in.Minutes) * time.Minute).In(b.Zone)
	if err := b.Run.Event(ctx, runlog.Event{Type: runlog.FollowUp, Text: at.Format(time.RFC3339)}); err != nil {
		return "", err
	}
	return "The next check is at " + at.Format("Mon 2006-01-02 3:04 PM MST") + ".", nil
}
