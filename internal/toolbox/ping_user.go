package toolbox

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/deliver"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/run"
)

//go:embed ping_user.md
var pingUserText string

func pingUser() tool {
	return tool{
		name:        "ping_user",
		description: pingUserText,
		schema: `{"type":"object","properties":{"message":{"type":"string","minLength":1},"critical":{"type":"boolean"}},` +
			`"required":["message"],"additionalProperties":false}`,
		offered: func(r run.Record) bool { return !background(r) || r.AllowPing },
		call:    callPing,
	}
}

type ping struct {
	Message  string `json:"message"`
	Critical bool   `json:"critical"`
}

func callPing(ctx context.Context, b *Box, input json.RawMessage) (string, error) {
	var p ping
	if err := decode(input, &p); err != nil {
		return "", err
	}
	if strings.TrimSpace(p.Message) == "" {
		return "", errors.New("bad arguments: message is empty")
	}
	var number int
	err := b.Run.Decide(ctx, func(s run.Standing) (run.Event, error) {
		number = s.Messages + 1
		return run.Event{Type: run.Ping, Text: p.Message}, b.mayPing(s, p.Critical)
	})
	if err != nil {
		return "", err
	}
	if !b.Post.Configured() {
		return b.pingByUpdate(ctx, p.Message)
	}
	return b.send(ctx, p, number)
}

// mayPing is the gate: the job's own word first, which nothing passes; what is critical passes the others.
func (b *Box) mayPing(s run.Standing, critical bool) error {
	r := b.Run.Record
	if !background(r) {
		return nil
	}
	instead := " Use `report_updates` instead."
	if r.Update == string(job.Blocked) {
		instead = " Finish the task without one."
	}
	switch {
	case !r.AllowPing:
		return &Refused{"Pings are disabled for this task (allow-ping: false)."}
	case critical:
		return nil
	case s.Pings > 0:
		return &Refused{"This run has already sent its one ping."}
	case b.Busy():
		return &Refused{"The owner is in mid-conversation." + instead}
	}
	return nil
}

func (b *Box) send(ctx context.Context, p ping, number int) (string, error) {
	r := b.Run.Record
	fate, err := b.Post.Send(ctx, deliver.Message{
		ID: fmt.Sprintf("%s.%d", r.ID, number), Run: r.ID, Job: r.Job, Label: r.Label(),
		Kind: deliver.Ping, Critical: p.Critical, Text: p.Message, Created: b.Disk.Now(),
	})
	switch {
	case fate == deliver.Sent:
		return "Sent.", nil
	case fate == deliver.Queued:
		return "Not delivered yet; it is queued and will be tried again.", nil
	case fate == deliver.Refused || err != nil:
		back := b.Run.Event(ctx, run.Event{Type: run.PingRefused, Text: p.Message})
		return "", errors.Join(errors.New("the message was not sent"), err, back)
	}
	return "", nil
}

// pingByUpdate is for an owner who has not said how to be reached: the next conversation tells them.
func (b *Box) pingByUpdate(ctx context.Context, message string) (string, error) {
	if err := b.report(ctx, message); err != nil {
		return "", errors.Join(err, b.Run.Event(ctx, run.Event{Type: run.PingRefused, Text: message}))
	}
	return "No delivery is configured, so the owner will read this in the next conversation.", nil
}
