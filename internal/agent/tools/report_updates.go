package tools

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

func reports(b *Set) error {
	switch {
	case b.inFork():
		return nil
	case b.Run.Foreground:
		return &Refused{"This is the main session itself: say it in your answer."}
	case b.Run.Record.Update == string(job.Blocked):
		return &Refused{"Reporting is disabled for this task (update-main-session: blocked)."}
	}
	return nil
}

func callReport(ctx context.Context, b *Set, in struct {
	Message string `json:"message"`
}) (string, error) {
	if b.inFork() {
		if err := b.mayLeave(ctx); err != nil {
			return "", err
		}
	}
	if err := b.report(ctx, in.Message); err != nil {
		return "", err
	}
	const reported = "Reported: the main session will see it in its next turn."
	if !b.inFork() {
		return reported, nil
	}
	saved, err := b.savesFork()
	if err != nil || saved {
		return reported, err
	}
	return reported + " The fork is dropped when this turn ends.", nil
}

func (b *Set) report(ctx context.Context, message string) error {
	err := b.Updates.Add(ctx, message, b.Run.ID)
	if errors.Is(err, update.ErrEmpty) {
		return errors.New("bad arguments: message is empty")
	}
	if err != nil {
		return err
	}
	return b.Run.Event(ctx, runlog.Event{Type: runlog.Report, Text: message})
}
