package report

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// told is something that the owner was told.
type told struct {
	at   time.Time
	kind string // how it reached the owner
	text string
	run  string // the id of the run that said it; "": a person, or ollim itself
	why  string // besides the run
}

// The kinds of what the owner was told, besides outbox.Ping.
const (
	toldQuestion = "question"
	toldUpdate   = "update"
	toldNotice   = "notice"
)

// tell adds the messages of a run.
func (p *Page) tell(run string, said []runlog.Saying) {
	for _, s := range said {
		t := told{s.At, string(outbox.Ping), s.Text, run, ""}
		switch s.Kind {
		case runlog.SaidQuestion:
			t.kind = toldQuestion
		case runlog.SaidPing:
		default:
			continue
		}
		if s.Fate != string(outbox.Sent) {
			t.why = s.Fate
		}
		p.hear(t)
	}
}

// hear adds a message if it is from the time of the page.
func (p *Page) hear(t told) {
	if t.at = t.at.In(p.to.Location()); !t.at.Before(p.from) && strings.TrimSpace(t.text) != "" {
		p.told = append(p.told, t)
	}
}

// readTold reads notices and updates. The messages of runs are there already.
func (p *Page) readTold(ctx context.Context, h app.Home) error {
	err := errors.Join(p.readNotices(h), p.readUpdates(ctx, h))
	slices.SortStableFunc(p.told, func(a, b told) int { return b.at.Compare(a.at) })
	return err
}

// readNotices reads what ollim itself said, and what it will say when quiet hours end.
func (p *Page) readNotices(h app.Home) error {
	for m, err := range h.Notices.Said(p.from) {
		if err != nil {
			return err
		}
		p.hear(told{m.At, toldNotice, m.Text, m.Run, ""})
	}
	page, err := h.Notices.Read()
	held, heldErr := h.Held()
	for _, m := range page.Unsent {
		why := "not sent yet"
		if !m.Critical && held.Count > 0 {
			why = held.Why()
		}
		p.hear(told{m.At, toldNotice, m.Text, m.Run, why})
	}
	return errors.Join(err, heldErr)
}

// readUpdates reads updates, except for the notices among them.
func (p *Page) readUpdates(ctx context.Context, h app.Home) error {
	notices := map[string]bool{}
	for _, t := range p.told {
		notices[t.text] = t.kind == toldNotice
	}
	for fate, err := range h.Updates.Fates(p.from) {
		if err != nil {
			return err
		}
		if !notices[fate.Message] {
			p.hear(told{fate.TS, toldUpdate, fate.Message, fate.By, fate.Became})
		}
	}
	pending, err := h.Updates.Peek(ctx)
	for _, u := range pending {
		if !notices[u.Message] {
			p.hear(told{u.TS, toldUpdate, u.Message, u.By, "pending"})
		}
	}
	return err
}
