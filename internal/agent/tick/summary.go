package tick

import (
	"context"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/update"
)

// summaryHour is when the summary of a week is due on Monday, in the owner's zone.
const summaryHour = 8

// latestSummary returns the date of the latest Monday on which a summary was due.
func latestSummary(now time.Time) string {
	year, month, day := now.Date()
	monday := day - (int(now.Weekday())+6)%7
	if now.Before(time.Date(year, month, monday, summaryHour, 0, 0, 0, now.Location())) {
		monday -= 7
	}
	return time.Date(year, month, monday, 12, 0, 0, 0, now.Location()).Format(time.DateOnly)
}

// weekly sends the summary of a week.
type weekly struct{ m Minute }

// summary sends the summary of a week in the first minute from Monday's hour on, once for each week: the message is held by the outbox
// before the week is noted, and released after that. During a pause and in quiet hours it waits. A week in which it could not be sent has
// no summary, and neither has the week in which the owner asked for summaries.
func (w weekly) summary(ctx context.Context) error {
	p, err := w.m.page()
	if err != nil {
		return err
	}
	if err := w.release(p); err != nil {
		return err
	}
	due := latestSummary(w.m.now().In(w.m.Runner.Zone))
	switch {
	case w.m.Summary == nil:
		due = ""
	case p.Summary == due:
		return nil
	case p.Summary != "" && p.Summary < due:
		paused, _, pauseErr := w.m.Runner.Spend.Paused()
		if paused || pauseErr != nil || w.m.Runner.Settings.Quiet.Contains(w.m.now().In(w.m.Runner.Zone)) {
			return pauseErr
		}
		if p.Release, err = w.makeSummary(ctx, due); err != nil {
			return err
		}
	case p.Summary > due && w.m.now().AddDate(0, 0, 7).Format(time.DateOnly) >= p.Summary:
		return nil // the clock was set back over the hour
	}
	if p.Summary == due {
		return nil
	}
	p.Summary = due
	if err := store.WriteJSON(pagePath(w.m.Runner.Home), p, store.Synced); err != nil {
		return err
	}
	return w.release(p)
}

// release puts the noted summary into the outbox, even if an earlier process was killed before it did.
func (w weekly) release(p *page) error {
	if p.Release == "" {
		return nil
	}
	if err := w.m.Runner.Outbox.Release(p.Release); err != nil {
		return err
	}
	p.Release = ""
	return w.m.save(p)
}

// makeSummary makes the message and returns its id. Without a delivery it adds an update instead.
func (w weekly) makeSummary(ctx context.Context, week string) (id string, err error) {
	f := w.m.Runner
	text, readErr := w.m.Summary()
	if readErr != nil { // the summary is sent without the part that could not be read
		f.Disk.Warn(readErr.Error())
	}
	text = update.Clean(strings.TrimSpace(text))
	id = "summary-" + week + ".1"
	if !f.Outbox.Configured() {
		return "", f.Updates.Add(ctx, text, id)
	}
	return id, f.Outbox.Hold(outbox.Message{ID: id, Label: "Weekly summary", Kind: outbox.Notice, Text: text, Created: w.m.now()})
}
