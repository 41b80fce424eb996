package notify

import (
	"context"
	"errors"
	"time"

	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

// Mail sends the messages of runs to the owner. Each is in the events of its run before it is in the outbox.
type Mail struct {
	Runs     runlog.Book
	Sessions session.Book
	Updates  update.Box
	Outbox   outbox.Sender // as configured
	Now      func() time.Time
	Warn     func(error)
}

// Post numbers a message of a run and sends it, not before until. The number is on disk before the first attempt, so that no later message
// of the run gets the same id, even if this process is killed. The fate is "" if the message did not reach the outbox.
func (m Mail) Post(ctx context.Context, sender outbox.Sender, run *runlog.Run, kind outbox.Kind, text string, until time.Time) (outbox.Fate, error) {
	said := text
	if kind == outbox.Text { // the record has the text
		said = ""
	}
	id, err := m.Number(ctx, run, kind, said)
	if err != nil {
		return "", err
	}
	message := outbox.Message{
		ID: id, Run: run.ID, Job: run.Job, Label: run.Label(),
		Kind: kind, Text: text, Created: m.Now(), NotBefore: until,
	}
	if kind == outbox.Text {
		m.Warn(Remember(ctx, m.Sessions, run, id))
	}
	receipt, err := sender.Send(ctx, message)
	err = errors.Join(err, m.Sessions.Received(ctx, id, receipt.Outside...))
	return receipt.Fate, errors.Join(err, run.Event(ctx, runlog.Event{Type: runlog.Delivered, Text: string(receipt.Fate), Tool: string(kind)}))
}

// Number records a message of a run and returns its id.
func (m Mail) Number(ctx context.Context, run *runlog.Run, kind outbox.Kind, said string) (id string, err error) {
	err = run.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		id = session.MessageID(run.ID, s.Messages+1)
		return runlog.Event{Type: runlog.Message, Tool: string(kind), Text: said}, nil
	})
	return id, err
}

// Tell sends a text to the owner, not before until. If that is not possible, it adds a pending update. An error means that both failed.
func (m Mail) Tell(ctx context.Context, sender outbox.Sender, run *runlog.Run, text string, until time.Time) error {
	text = update.Clean(text)
	if !sender.Configured() {
		return m.Updates.Add(ctx, text, run.ID)
	}
	fate, err := m.Post(ctx, sender, run, outbox.Ping, text, until)
	m.Warn(err)
	if fate == "" || fate == outbox.Refused {
		return m.Updates.Add(ctx, text, run.ID)
	}
	return nil
}

// SendFailure sends the owner the error of a run that could not answer a message. Without a delivery it adds a pending update.
func (m Mail) SendFailure(ctx context.Context, record runlog.Record, text string) {
	run, err := m.Runs.At(record.ID)
	if err == nil && m.Outbox.Configured() {
		_, err = m.Post(ctx, m.Outbox, run, outbox.Failure, text, time.Time{})
	} else {
		err = m.Updates.Add(ctx, text, record.ID)
	}
	m.Warn(err)
}

// Remember notes which session a reply to a message of a run branches. A message of a foreground run needs no note.
func Remember(ctx context.Context, sessions session.Book, run *runlog.Run, message string) error {
	if run.Foreground {
		return nil
	}
	standing, err := run.Standing()
	if err != nil || standing.Session == "" {
		return err
	}
	return sessions.Sent(ctx, session.Message{MessageID: message, ForkSessionID: standing.Session, ParentSessionID: run.Parent})
}
