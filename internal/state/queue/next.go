package queue

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// sortEntries sorts messages as they are answered: what is being answered, what goes first, and the rest by arrival.
func sortEntries(all []entry) {
	rank := func(e entry) int {
		switch {
		case e.running():
			return 0
		case e.First:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a.ID, b.ID)) })
}

// Turn holds the messages that one run answers.
type Turn struct {
	Tickets []*Ticket // the messages, oldest first; they are joined
	Own     bool      // one of them is the caller's
	CutOff  []Message // earlier ones that the prompt reports

	book Book
}

// Next waits until no other process is to answer a message before the caller's. It then returns what the caller's next run, whose id
// newRun makes, must answer: a message whose sender died, or the first of the caller's own, with the waiting neighbours of its group.
// Without own messages it returns nil if another process serves the queue, or if nothing waits.
//
// The turn is the caller's until it calls End. If ctx ends, the error is its cause; if the first of own was removed from the queue, to which
// the caller shows the answer, it is errGone. The caller still holds its own tickets.
func (b Book) Next(ctx context.Context, own []*Ticket, newRun func() (string, error)) (*Turn, error) {
	for {
		turn, before, err := b.next(ctx, own, newRun)
		if turn != nil || err != nil || before == "" {
			return turn, err
		}
		if err := b.await(ctx, before); err != nil {
			return nil, err
		}
	}
}

// await waits for the end of the process that holds a message.
func (b Book) await(ctx context.Context, id string) error {
	guard, err := b.Disk.Locks.WaitGuard(ctx, b.lockPath(id))
	if ctx.Err() != nil {
		guard.Release()
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if _, err := store.Read(b.path(id)); err != nil { // it was answered; the wait has created a new lock file
		return guard.Delete()
	}
	guard.Release()
	return nil
}

// next returns the turn of Next, or the message to wait for.
func (b Book) next(ctx context.Context, own []*Ticket, newRun func() (string, error)) (turn *Turn, before string, err error) {
	held, err := b.Disk.Lock(ctx, b.Home.Lock("queue"))
	if err != nil {
		return nil, "", err
	}
	defer held.Release()
	all, err := b.load(true)
	if err != nil {
		return nil, "", err
	}
	waiting, cutOff, err := b.tidy(all)
	if err != nil {
		return nil, "", err
	}
	before, err = ahead(waiting, own)
	living := func(e entry) bool { return e.living }
	if before != "" || err != nil || len(waiting) == 0 || len(own) == 0 && slices.ContainsFunc(waiting, living) {
		return nil, before, err
	}
	batch := neighbours(waiting, own)
	run := batch[0].Run
	if run == "" || !holds(own, batch[0]) { // Add has noted none, or it was that of a sender that died
		if run, err = newRun(); err != nil {
			return nil, "", err
		}
	}
	return b.take(batch, cutOff, own, run)
}

// take makes a turn of messages. before is the first of them if another process holds it for a moment.
func (b Book) take(batch []entry, cutOff []Message, own []*Ticket, run string) (turn *Turn, before string, err error) {
	turn = &Turn{book: b}
	for _, e := range batch {
		t, err := b.claim(e, own)
		switch {
		case err == nil:
			turn.Tickets = append(turn.Tickets, t)
			turn.Own = turn.Own || slices.Contains(own, t)
			continue
		case len(turn.Tickets) > 0: // the next turn answers the rest
		case errors.Is(err, lock.ErrBusy):
			return nil, e.ID, nil
		default:
			return nil, "", err
		}
		break
	}
	if err := turn.note(run, cutOff); err != nil {
		turn.leave(own)
		return nil, "", err
	}
	return turn, "", nil
}

// judge returns the messages that wait or are being answered, those whose turn was cut off, and those that can be removed.
func (b Book) judge(all []entry) (waiting []entry, cutOff, settled []Message) {
	for _, e := range all {
		switch {
		case e.living || b.waits(e.Message):
			waiting = append(waiting, e)
		case b.settled(e.Message):
			settled = append(settled, e.Message)
		default:
			cutOff = append(cutOff, e.Message)
		}
	}
	return waiting, cutOff, settled
}

// tidy is judge, and removes the settled messages. The caller holds the lock of the queue.
func (b Book) tidy(all []entry) (waiting []entry, cutOff []Message, err error) {
	waiting, cutOff, settled := b.judge(all)
	for _, m := range settled {
		err = errors.Join(err, b.drop(m))
	}
	return waiting, cutOff, err
}

// waits reports whether no engine was given the message of a process that died.
func (b Book) waits(m Message) bool {
	return m.Ended == "" && (m.Run == "" || !b.Runs(m.Run).Begun)
}

// settled reports whether the message of a process that died was answered, or its report was read.
func (b Book) settled(m Message) bool {
	return m.Reporter != "" && b.Runs(m.Reporter).Answered || b.answered(m)
}

// answered reports whether the run of a message ended well.
func (b Book) answered(m Message) bool {
	fate := b.Runs(m.Run)
	return m.Ended == "" && fate.Done && fate.OK
}

// ahead returns the message to wait for, the last that another process holds before the caller's first; "" if there is none. The error is
// errGone if the caller's first is not in the queue.
func ahead(waiting []entry, own []*Ticket) (before string, err error) {
	if len(own) == 0 {
		return "", nil
	}
	if !slices.ContainsFunc(waiting, func(e entry) bool { return e.ID == own[0].ID }) {
		return "", errGone
	}
	first := slices.IndexFunc(waiting, func(e entry) bool { return holds(own, e) })
	for _, e := range slices.Backward(waiting[:first]) {
		if e.living {
			return e.ID, nil
		}
	}
	return "", nil
}

func holds(own []*Ticket, e entry) bool {
	return slices.ContainsFunc(own, func(t *Ticket) bool { return t.ID == e.ID })
}

// neighbours returns the first message and those of its group that directly follow it and that the caller may answer.
func neighbours(waiting []entry, own []*Ticket) []entry {
	n := 1
	for n < len(waiting) && waiting[0].Group != "" && waiting[n].Group == waiting[0].Group && (!waiting[n].living || holds(own, waiting[n])) {
		n++
	}
	return waiting[:n]
}

// claim returns the ticket of a message: the caller's, or a new one for a message that nobody holds.
func (b Book) claim(e entry, own []*Ticket) (*Ticket, error) {
	if i := slices.IndexFunc(own, func(t *Ticket) bool { return t.ID == e.ID }); i >= 0 {
		own[i].Text = e.Text // Rewrite may have changed it
		return own[i], nil
	}
	guard, err := lock.TryGuard(b.lockPath(e.ID))
	if err != nil {
		return nil, err
	}
	return &Ticket{e.Message, b, guard}, nil
}

// note writes the run into the messages of the turn and into those that it reports. The caller holds the lock of the queue.
func (t *Turn) note(run string, cutOff []Message) error {
	for _, ticket := range t.Tickets {
		if ticket.Run == run {
			continue
		}
		ticket.Run = run
		if err := ticket.save(); err != nil {
			return err
		}
	}
	for _, m := range cutOff {
		m.Reporter = run
		if err := store.WriteJSON(t.book.path(m.ID), m, store.Synced); err != nil {
			return err
		}
		t.CutOff = append(t.CutOff, m)
	}
	return nil
}

// leave leaves the messages that the turn took over from dead senders.
func (t *Turn) leave(own []*Ticket) {
	for _, ticket := range t.Tickets {
		if !slices.Contains(own, ticket) {
			ticket.Leave()
		}
	}
}

// End ends the turn. Its messages are removed, even if a person was told why there is no answer. If why is set, the next turn reports them
// with that reason instead. The messages whose cut-off turns it has reported are removed if the agent read the report.
func (t *Turn) End(ctx context.Context, why string) error {
	return t.end(ctx, func(ticket *Ticket) error {
		if why == "" {
			return ticket.Remove()
		}
		return ticket.fail(why)
	})
}

// Release ends the turn as if its process had died: what its run has done decides what becomes of the messages.
func (t *Turn) Release(ctx context.Context) error {
	return t.end(ctx, func(ticket *Ticket) error { ticket.Leave(); return nil })
}

func (t *Turn) end(ctx context.Context, settle func(*Ticket) error) error {
	held, err := t.book.Disk.Lock(context.WithoutCancel(ctx), t.book.Home.Lock("queue"))
	if err == nil {
		defer held.Release()
	}
	for _, m := range t.CutOff {
		if t.book.Runs(m.Reporter).Answered {
			err = errors.Join(err, t.book.drop(m))
		}
	}
	for _, ticket := range t.Tickets {
		err = errors.Join(err, settle(ticket))
	}
	return err
}

// drop removes a message that no process holds.
func (b Book) drop(m Message) error {
	guard, err := lock.TryGuard(b.lockPath(m.ID))
	if errors.Is(err, lock.ErrBusy) { // a process that waited for the message holds it for a moment; the next turn removes the message
		return nil
	}
	if err != nil {
		return err
	}
	return (&Ticket{m, b, guard}).Remove()
}

// contents are the messages in the queue, in the order in which they are answered.
type contents struct {
	Running []Message // a run is answering them
	Waiting []Message
	CutOff  []Message // the next turn reports them
}

// Contents returns what is in the queue. It needs no lock: a message that is removed meanwhile is omitted.
func (b Book) Contents() (c contents, err error) {
	all, err := b.load(false)
	if err != nil {
		return c, err
	}
	waiting, cutOff, _ := b.judge(all)
	for _, e := range waiting {
		if e.running() {
			c.Running = append(c.Running, e.Message)
		} else {
			c.Waiting = append(c.Waiting, e.Message)
		}
	}
	c.CutOff = cutOff
	return c, nil
}

// Abandoned reports whether messages wait that no process will answer. It also removes messages that were answered, and attachments that a
// killed sender left more than an hour ago.
func (b Book) Abandoned(ctx context.Context) (bool, error) {
	if files, err := os.ReadDir(b.Home.Queue()); err != nil || len(files) == 0 { // as nearly always
		return false, nil // no message has ever been sent
	}
	held, err := b.Disk.Lock(ctx, b.Home.Lock("queue"))
	if err != nil {
		return false, err
	}
	defer held.Release()
	all, err := b.load(true)
	if err != nil {
		return false, err
	}
	waiting, _, err := b.tidy(all)
	living := slices.ContainsFunc(waiting, func(e entry) bool { return e.living })
	return len(waiting) > 0 && !living, errors.Join(err, b.sweep(all))
}

// sweep removes attachments that belong to no message.
func (b Book) sweep(all []entry) error {
	dirs, err := filepath.Glob(b.filesPath("*"))
	for _, dir := range dirs {
		info, statErr := os.Lstat(dir)
		used := slices.ContainsFunc(all, func(e entry) bool { return b.filesPath(nameOf(e.ID)) == dir })
		if statErr == nil && !used && b.Disk.Now().Sub(info.ModTime()) > time.Hour {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}
