package tools

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/state/job"
)

func callCancelReminder(_ context.Context, b *Set, in struct {
	ID string `json:"id"`
}) (string, error) {
	s, err := b.Jobs.Load()
	if err != nil {
		return "", err
	}
	j, err := s.Only(job.Reminder).Find(in.ID)
	if err != nil {
		return "", err
	}
	if err := b.Jobs.Cancel(j); errors.Is(err, job.ErrFiring) {
		return "", &Refused{"It is already running."}
	} else if err != nil {
		return "", err
	}
	return "Cancelled.", nil
}
