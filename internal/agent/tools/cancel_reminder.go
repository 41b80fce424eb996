package tools

import (
	"context"
	_ "embed"
	"encoding/json"
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
		call: callCancelReminder,
	}
}

func callCancelReminder(_ context.Context, b *Set, input json.RawMessage) (string, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := decode(input, &in); err != nil {
		return "", err
	}
	s, err := b.Jobs.Load()
	if err != nil {
		return "", err
	}
	j, err := s.Only(job.Reminder).Find(in.ID)
	if err != nil {
		return "", err
	}
	if err := b.Jobs.Cancel(j); errors.Is(err, job.ErrFiring) {
		return "", &Refused{"It is running already."}
	} else if err != nil {
		return "", err
	}
	return "Cancelled.", nil
}
