package tools

import (
	"context"
	_ "embed"
	"errors"

	"github.com/ollim/ollim/internal/state/job"
)

//go:embed cancel_reminder.md
var cancelReminderText string

func cancelReminder() tool {
	return tool{
		name:        "cancel_reminder",
		description: cancelReminderText,
		schema: `{"type":"object","properties":{"id":{"type":"string","minLength":1}},` +
			`"required":["id"],"additionalProperties":false}`,
		may:  listed("cancel_reminder"),
		call: takes(callCancelReminder),
	}
}

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
