package notify

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// Times between messages.
const (
	calm      = time.Hour      // time after a message about a cause in which its return is not reported
	reminding = 24 * time.Hour // time from one message about a cause that lasts to the next
	settling  = time.Minute    // time in which the process that made a message puts it into the outbox itself
)

// idPrefix begins the id of a message that is not, or not yet, one of a run's.
const idPrefix = "notice-"

// Book notifies the owner of causes.
type Book struct {
	Notices notice.Book
	Updates update.Box
	Sender  outbox.Sender
	Zone    *time.Location
	Quiet   timeparse.Span
	Random  io.Reader
	Now     func() time.Time

	// Number records a message in the events of a run and returns its id. nil: no message belongs to a run.
	Number func(ctx context.Context, run, text string) (id string, err error)
}

// Open reports a cause, or another effect of an open cause, such as one more fire that failed. told reports whether the owner is notified
// now, or when quiet hours end.
func (b Book) Open(ctx context.Context, c Cause) (told bool, err error) {
	all, err := b.open(ctx, c.Kind, []Cause{c}, nil)
	return len(all) > 0, err
}

// open reports causes of one kind that were found at one time. It returns the keys of those about which the owner is notified. several
// returns an entry that stands for several of them in one message; nil if there is one cause.
func (b Book) open(ctx context.Context, kind Kind, found []Cause, several func([]notice.Entry) notice.Entry) (told []string, err error) {
	one := func(all []notice.Entry) notice.Entry {
		if len(all) == 1 {
			return all[0]
		}
		return several(all)
	}
	var made []notice.Message
	var again []notice.Entry // only for the conversation: another fault, or one that is back within an hour
	err = b.Notices.Edit(ctx, func(p *notice.Page) (changed bool) {
		var first []notice.Entry
		for _, c := range found {
			e, is := b.enter(p, c)
			switch is {
			case saidNow:
				first = append(first, e)
			case saidAgain:
				again = append(again, e)
			case noNews:
				continue
			case onlyCounted:
			}
			if changed = true; is != onlyCounted {
				told = append(told, c.Key())
			}
		}
		if len(first) > 0 {
			e := one(first)
			made = append(made, b.message(notice.Key(e.Kind, e.Subject), e, opening(e), outbox.Failure, found[0].Run))
			p.Unsent = append(p.Unsent, made...)
		}
		return changed
	})
	if err != nil {
		return nil, err
	}
	if len(again) > 0 {
		err = b.Updates.Add(ctx, opening(one(again)), "ollim")
	}
	return told, errors.Join(err, b.say(ctx, made, kind))
}

// news is what is new about a cause.
type news int

const (
	noNews      news = iota // nothing
	onlyCounted             // it had an effect on a job, or it ends at another time
	saidNow                 // the owner gets a message
	saidAgain               // the conversation is told: it has another fault, or is back within an hour
)

// enter puts a cause on the page and returns its entry.
func (b Book) enter(p *notice.Page, c Cause) (notice.Entry, news) {
	now, t := b.now(), c.Kind.trait()
	before, onPage := p.Causes[c.Key()]
	e := before
	if !onPage || !e.Open() {
		e = notice.Entry{Kind: string(c.Kind), Subject: c.Subject, Since: now.UTC(), Told: e.Told}
	}
	e.Name, e.Text, e.Remedy, e.Until = c.Name, oneLine(c.Text), c.Remedy, c.Until.UTC()
	more := count(&e, c.Jobs)
	e.Fresh = e.Said && (e.Fresh || more)
	is := noNews
	switch back := onPage && !before.Open(); {
	case !e.Said && (t.prompt || !b.within(e.Told, calm)):
		e.Said, e.Told, is = true, now.UTC(), saidNow
	case t.update && (back || (c.Kind == File || c.Kind == Refused) && e.Text != before.Text):
		is = saidAgain
	case !onPage || back || more || !e.Until.Equal(before.Until):
		is = onlyCounted
	}
	if is != noNews {
		p.Set(c.Key(), e)
	}
	return e, is
}

// Close ends a cause. how follows the cause's name in the message; "" means "works again". There is no message if the owner was not told
// that the cause is back.
func (b Book) Close(ctx context.Context, key, how string, jobs ...Affected) error {
	p, err := b.Notices.Read()
	if e, known := p.Causes[key]; err != nil || !known || !e.Open() {
		return err
	}
	var made []notice.Message
	var kind Kind
	err = b.Notices.Edit(ctx, func(p *notice.Page) bool {
		e, known := p.Causes[key]
		if !known || !e.Open() {
			return false
		}
		kind = Kind(e.Kind)
		made = b.close(p, key, e, how, jobs)
		return true
	})
	return errors.Join(err, b.say(ctx, made, kind))
}

func (b Book) close(p *notice.Page, key string, e notice.Entry, how string, jobs []Affected) (made []notice.Message) {
	count(&e, jobs)
	if b.end(p, key, e) {
		made = append(made, b.message(key, e, closing(e, how), outbox.Notice, ""))
		p.Unsent = append(p.Unsent, made...)
	}
	return made
}

// end ends a cause. said reports whether the owner was told that it lasted.
func (b Book) end(p *notice.Page, key string, e notice.Entry) (said bool) {
	now := b.now().UTC()
	if said = e.Said; said {
		e.Told = now
	}
	e.Closed, e.Said = now, false
	p.Set(key, e)
	return said
}

// Drop removes a cause whose subject is gone, such as a job that was deleted. There is no message.
func (b Book) Drop(ctx context.Context, key string) error {
	if b.Notices.Empty() {
		return nil
	}
	return b.Notices.Edit(ctx, func(p *notice.Page) bool {
		_, known := p.Causes[key]
		delete(p.Causes, key)
		return known
	})
}

// Forget removes the causes that are about a single job, which is gone.
func (b Book) Forget(ctx context.Context, job string) error {
	var err error
	for _, kind := range []Kind{Job, Refused, Approval, Monitor, Bill, Gate} {
		err = errors.Join(err, b.Drop(ctx, notice.Key(string(kind), job)))
	}
	return err
}

// Spare removes a job from those that a cause concerns. The cause ends as by Close if it concerns no other.
func (b Book) Spare(ctx context.Context, key, job, how string) error {
	var made []notice.Message
	var kind Kind
	err := b.Notices.Edit(ctx, func(p *notice.Page) bool {
		e, known := p.Causes[key]
		if _, concerned := e.Jobs[job]; !known || !e.Open() || !concerned {
			return false
		}
		kind, e.Jobs = Kind(e.Kind), maps.Clone(e.Jobs)
		if delete(e.Jobs, job); len(e.Jobs) > 0 {
			p.Set(key, e)
			return true
		}
		made = b.close(p, key, e, how, nil)
		return true
	})
	return errors.Join(err, b.say(ctx, made, kind))
}

// Keep opens the causes of a kind that hold now, and closes the others.
func (b Book) Keep(ctx context.Context, kind Kind, now []Cause, how string) error {
	present := map[string]bool{}
	var err error
	for _, c := range now {
		present[c.Key()] = true
		_, openErr := b.Open(ctx, c)
		err = errors.Join(err, openErr)
	}
	open, readErr := b.OpenCauses()
	for _, key := range slices.Sorted(maps.Keys(open)) {
		if open[key].Kind == string(kind) && !present[key] {
			err = errors.Join(err, b.Close(ctx, key, how))
		}
	}
	return errors.Join(err, readErr)
}

// Tell notifies the owner of something that happened once, without an end or reminders. The same text is sent at most once an hour.
func (b Book) Tell(ctx context.Context, c Cause) error {
	now := b.now()
	var made []notice.Message
	err := b.Notices.Edit(ctx, func(p *notice.Page) bool {
		e := p.Causes[c.Key()]
		if e.Text == c.Text && b.within(e.Told, calm) {
			return false
		}
		e = notice.Entry{
			Kind: string(c.Kind), Subject: c.Subject, Name: c.Name, Text: c.Text, Remedy: c.Remedy, Since: now.UTC(), Told: now.UTC(), Closed: now.UTC(),
		}
		made = append(made, b.message(c.Key(), e, opening(e), outbox.Notice, c.Run))
		p.Set(c.Key(), e)
		p.Unsent = append(p.Unsent, made...)
		return true
	})
	return errors.Join(err, b.say(ctx, made, c.Kind))
}

// OpenCauses returns the causes that last, by key.
func (b Book) OpenCauses() (map[string]notice.Entry, error) {
	p, err := b.Notices.Read()
	open := map[string]notice.Entry{}
	for key, e := range p.Causes {
		if e.Open() {
			open[key] = e
		}
	}
	return open, err
}

func (b Book) now() time.Time { return b.Now().In(b.Zone) }

// within reports whether an instant is less than d ago. It is false for an instant that is an hour or more ahead, because the clock was set
// back since.
func (b Book) within(at time.Time, d time.Duration) bool {
	ago := b.now().Sub(at)
	return ago > -calm && ago < d
}

func (b Book) message(key string, e notice.Entry, text string, kind outbox.Kind, run string) notice.Message {
	m := notice.Message{
		Cause: key, Run: run, Kind: string(kind), Label: e.Name, Text: update.Clean(text), At: b.now().UTC(),
		Critical: kind == outbox.Failure && Kind(e.Kind).trait().critical, // the end of a cause can wait for the end of quiet hours
	}
	if len(e.Jobs) == 1 {
		for id := range e.Jobs {
			m.Job = id
		}
	}
	if id, err := runlog.NewID(b.now(), b.Random); err == nil { // else Send refuses the message, and it waits
		m.ID = idPrefix + id
	}
	return m
}

// count adds the effects of a cause on jobs.
func count(e *notice.Entry, jobs []Affected) (changed bool) {
	all := map[string]notice.Count{}
	for id, c := range e.Jobs {
		all[id] = c
	}
	for _, j := range jobs {
		c, known := all[j.ID]
		if c.Name = j.Name; c.Name == "" {
			c.Name = j.ID
		}
		c.Failed, c.Missed = c.Failed+j.Failed, c.Missed+j.Missed
		changed = changed || !known || j.Failed+j.Missed > 0
		all[j.ID] = c
	}
	e.Jobs = all
	return changed
}
