package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// Queue answers the messages of the owner, one turn at a time.
type Queue struct{ r *run.Runner }

// Chat answers a message, after the messages that wait. Its turn is in the interactive fork if one is open, else in main.
func (q Queue) Chat(ctx context.Context, m Message, o Options) (runlog.Record, error) {
	id, err := q.newRun()
	if err != nil {
		return runlog.Record{}, err
	}
	ticket, place, err := q.enqueue(ctx, m, o, id)
	if err != nil {
		return runlog.Record{}, err
	}
	if o.Queued != nil && place.Ahead > 0 {
		o.Queued(place)
	}
	record, _, err := q.Converse(ctx, []*queue.Ticket{ticket}, o)
	return record, err
}

// Enqueue puts a message of the owner's into the queue, for Converse.
func (q Queue) Enqueue(ctx context.Context, m Message, o Options) (*queue.Ticket, queue.Place, error) {
	return q.enqueue(ctx, m, o, "")
}

// enqueue is Enqueue with the run that answers the message if no other is before it.
func (q Queue) enqueue(ctx context.Context, m Message, o Options, id string) (*queue.Ticket, queue.Place, error) {
	entry := queue.Message{
		Tag: m.Tag, Text: m.Text, Input: o.Input, Model: o.Model, Group: m.Group, Owner: o.Owner, First: m.First, Source: m.Source, Run: id,
	}
	if m.Tag != "" { // a message with a tag is answered alone
		entry.Group = ""
	}
	for _, a := range m.Attachments {
		entry.Files = append(entry.Files, queue.File{Name: a.Name, Type: a.Type, Path: a.Path})
	}
	return q.r.Queue.Add(ctx, entry)
}

// Converse waits until the first message of own is next, and answers it in one turn with the messages of its group that wait next to it;
// left are the others. It first answers the messages whose sender has died.
func (q Queue) Converse(ctx context.Context, own []*queue.Ticket, o Options) (record runlog.Record, left []*queue.Ticket, err error) {
	for {
		turn, err := q.next(ctx, own)
		if err == nil && !turn.Own {
			err = q.standIn(ctx, turn, o)
		} else if err == nil {
			record, err = q.take(ctx, turn, o)
			answered := func(t *queue.Ticket) bool { return slices.Contains(turn.Tickets, t) }
			return record, slices.DeleteFunc(slices.Clone(own), answered), err
		}
		if err != nil {
			return runlog.Record{}, own[1:], errors.Join(err, giveUp(ctx, own[0]))
		}
	}
}

// speak runs a turn for the owner's message: in the interactive fork while one is open, else in main. If the turn in main opens a fork, the
// fork's first turn follows. fill adds the message to the Spec.
func (q Queue) speak(ctx context.Context, o Options, fill func(*run.Spec)) (runlog.Record, error) {
	for {
		f, open, err := q.r.Sessions.Fork(ctx)
		if err != nil {
			return runlog.Record{}, err
		}
		if !open {
			s, wrong := New(q.r).turnOf(o)
			fill(&s)
			record, err := New(q.r).Run(ctx, s, wrong)
			Forks(q).Follow(ctx, record, s.Policy.Deliver, o)
			return record, err
		}
		record, err := Forks(q).take(ctx, f, ownTurn, o, fill)
		if !errors.Is(err, session.ErrNoFork) {
			return record, err
		} // else the fork was ended while the turn waited for it
	}
}

// giveUp removes a message from the queue because its sender reports that it was not answered. If a signal other than the owner's
// ends the sender, the message stays.
func giveUp(ctx context.Context, t *queue.Ticket) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), run.ErrWithdrawn) {
		t.Leave()
		return nil
	}
	return t.Remove()
}

// next waits for the next turn of the queue. Its run has a new id, which the queue notes before the run begins.
func (q Queue) next(ctx context.Context, own []*queue.Ticket) (*queue.Turn, error) {
	q.r.Warn(q.r.Recover())
	return q.r.Queue.Next(ctx, own, q.newRun)
}

func (q Queue) newRun() (string, error) { return runlog.NewID(q.r.Disk.Now(), q.r.Random) }

// take runs a turn in which the sender of the messages waits for the answer.
func (q Queue) take(ctx context.Context, turn *queue.Turn, o Options) (runlog.Record, error) {
	o, fill := q.said(turn, o)
	record, err := q.speak(ctx, o, fill)
	if record.Outcome == runlog.Interrupted || record.ID == "" && ctx.Err() != nil {
		return record, errors.Join(err, q.interrupted(ctx, turn, record))
	}
	return record, errors.Join(err, turn.End(ctx, ""))
}

// interrupted ends a turn that was stopped. If the owner withdrew its messages or stopped the run, they count as answered. If another
// message stopped the turn before the agent said anything, the next turn reports them, because the session does not contain them.
func (q Queue) interrupted(ctx context.Context, turn *queue.Turn, record runlog.Record) error {
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), run.ErrWithdrawn):
		return turn.Release(ctx)
	case ctx.Err() == nil && record.Error == stoppedByMessage:
		if standing, err := q.r.Runs.Standing(record.ID); err != nil || !standing.Started {
			return turn.End(ctx, record.Error)
		}
	}
	return turn.End(ctx, "")
}

// stoppedByMessage is the reason in the record of a turn that was stopped by a message that goes first.
const stoppedByMessage = "stopped by a new message"

// Interrupt requests that a turn ends because of a new message.
func Interrupt(runs runlog.Book, run string) error { return runs.AskStop(run, stoppedByMessage) }

// Stop requests that the owner's turn in progress ends, in any process, and returns its run; "" if there is none. The message is
// withdrawn; what the agent has said stays.
func (q Queue) Stop() (run string, err error) {
	for record, err := range q.r.Runs.List() {
		if err != nil && record.ID == "" {
			return "", err
		}
		if err == nil && !record.Done() && record.Kind == kindChat && q.r.Runs.Alive(record) {
			return record.ID, q.r.Runs.AskStop(record.ID, "stopped by the owner")
		}
	}
	return "", nil
}

// standIn answers messages whose sender has died. The answer is delivered, because no terminal waits for it.
func (q Queue) standIn(ctx context.Context, turn *queue.Turn, o Options) error {
	sender := q.r.Outbox
	sender.Terminal = nil
	key := session.MainKey
	if _, open, err := q.r.Sessions.Fork(ctx); err == nil && open {
		key = session.ForkKey
	}
	if left := q.r.Runs.Leftover(q.r.Home.ConversationLock(key)); left != nil {
		return errors.Join(left, turn.Release(ctx))
	}
	o, fill := q.said(turn, Options{Engine: o.Engine})
	record, err := q.speak(ctx, o, func(s *run.Spec) {
		fill(s)
		s.Sender, s.Policy.Awaited, s.Policy.Deliver = sender, false, true
	})
	switch {
	case record.Outcome == runlog.OK:
		return errors.Join(err, turn.End(ctx, ""))
	case record.Outcome == runlog.Interrupted && ctx.Err() == nil: // by ollim stop, or by a message: the next turn reports it
		return turn.Release(ctx)
	case record.ID == "", record.Outcome == runlog.Interrupted, errors.Is(err, lock.ErrBusy):
		return errors.Join(err, turn.Release(ctx))
	}
	q.r.Mail().SendFailure(ctx, record, fmt.Sprintf("Your message could not be answered (%s); the next turn of the conversation reports it to the agent: %s",
		record.Error, turn.Tickets[0].Text))
	return turn.End(ctx, cmp.Or(record.Error, string(record.Outcome)))
}

// AnswerAbandoned answers the messages that wait although their senders have died, if no other process does.
func (q Queue) AnswerAbandoned(ctx context.Context, o Options) error {
	for {
		turn, err := q.next(ctx, nil)
		if turn == nil || err != nil {
			return err
		}
		if err := q.standIn(ctx, turn, o); err != nil {
			return err
		}
	}
}

// said returns the options of a turn of the queue, and a function that completes its Spec. It joins messages that are answered
// together.
func (q Queue) said(turn *queue.Turn, o Options) (Options, func(*run.Spec)) {
	var texts, inputs, sources []string
	o.Owner = false
	for _, t := range turn.Tickets {
		texts = append(texts, t.Text)
		if t.Input != "" {
			inputs = append(inputs, t.Input)
		}
		o.Model = cmp.Or(t.Model, o.Model)
		o.Owner = o.Owner || t.Owner
		if t.Source != "" {
			sources = append(sources, t.Source)
		}
	}
	o.Input = strings.Join(inputs, "\n")
	return o, func(s *run.Spec) {
		s.Identity.Run, s.Identity.Answers = turn.Tickets[0].Run, sources
		var files []queue.File
		for _, m := range turn.CutOff {
			files = append(files, m.Files...)
			record, _ := q.r.Runs.Load(m.Run) // none if its process ended first
			why := cmp.Or(m.Ended, record.Error, "its process ended before it did")
			s.Input.CutOff = append(s.Input.CutOff, prompt.CutOff{At: m.Arrived.In(q.r.Zone), Text: m.Text, Why: why})
		}
		for _, t := range turn.Tickets {
			files = append(files, t.Files...)
		}
		for _, f := range files {
			s.Input.Piped.Files = append(s.Input.Piped.Files, engine.Attachment{Name: f.Name, Type: f.Type, Path: f.Path})
		}
		s.Input.Task.Tag = turn.Tickets[0].Tag
		s.Input.Task.Body = strings.Join(texts, "\n\n")
	}
}
