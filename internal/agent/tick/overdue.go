package tick

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/update"
)

// collect sends all overdue reminders as one message, which says how late they are. The files are claimed before the message is written and moved away after it, so
// that none is lost and at worst one is reported twice.
func (r reminderList) collect(ctx context.Context, late []job.Job) error {
	var claimed []job.Job
	for _, j := range late {
		guard, err := lock.TryGuard(r.m.Runner.Home.JobLock(j.ID))
		if err != nil {
			continue // another process holds it
		}
		defer guard.Release()
		if j.Attempt() == job.Waiting {
			if j, err = r.m.Runner.Jobs.Claim(j); err != nil {
				continue // it has just been cancelled
			}
		}
		claimed = append(claimed, j)
	}
	if len(claimed) == 0 {
		return nil
	}
	if err := r.tell(ctx, headOverdue, headPlain, claimed); err != nil {
		return err
	}
	if err := store.MkdirOwn(r.m.Runner.Home.Late()); err != nil {
		return err
	}
	var err error
	for _, j := range claimed { // their files are kept from now on, because the report may have cut their texts
		kept := filepath.Join(r.m.Runner.Home.Late(), j.ID+".md")
		err = errors.Join(err, os.Rename(j.Path, kept), os.Chtimes(kept, r.m.now(), r.m.now()))
	}
	return err
}

// misdated returns the collected reminders that are not overdue by the present clock: they were collected at a wrong date. It omits those
// whose id or file name is taken.
func (r reminderList) misdated(files job.Set) (back []job.Job, err error) {
	late, err := r.m.Runner.Jobs.Late()
	for _, j := range late.Jobs {
		_, taken := files.ByID(j.ID)
		_, statErr := os.Lstat(r.restored(j))
		if !taken && errors.Is(statErr, fs.ErrNotExist) && r.m.now().Sub(j.RunAt) <= overdue {
			back = append(back, j)
		}
	}
	slices.SortStableFunc(back, func(a, b job.Job) int { return a.RunAt.Compare(b.RunAt) })
	return back, err
}

// restored returns the path that the file of a collected reminder had.
func (r reminderList) restored(j job.Job) string {
	return filepath.Join(r.m.Runner.Home.Reminders(), filepath.Base(j.Path))
}

// restore sets misdated reminders again. Like collect, at worst it reports one twice.
func (r reminderList) restore(ctx context.Context, files job.Set) error {
	back, err := r.misdated(files)
	if err != nil || len(back) == 0 {
		return err
	}
	if err := r.tell(ctx, headRestored, headRestored, back); err != nil {
		return err
	}
	for _, j := range back {
		err = errors.Join(err, r.m.Runner.Jobs.GiveBack(j, r.restored(j)))
	}
	return err
}

// What opens the messages about overdue reminders.
const (
	headPlain    = "These reminders are late (they are kept in state/late):"
	headOverdue  = "These reminders were due more than 24 hours ago and were not run (they are kept in state/late):"
	headRestored = "These reminders were reported as overdue while the system date was wrong; they are set again:"
)

// tell sends one message that names all the reminders; head opens it if an agent was to act on any of them, plain else.
func (r reminderList) tell(ctx context.Context, head, plain string, jobs []job.Job) error {
	const rest, date = 200, 50                                      // characters
	share := max((update.MaxChars-rest)/max(len(jobs), 1)-date, 20) // so that all are named in one update
	var list []overdueReminder
	for _, j := range jobs {
		list = append(list, overdueReminder{
			at: j.RunAt.In(r.m.Runner.Zone), text: plaintext.Short(cmp.Or(j.Description, j.Body), share), late: max(r.m.now().Sub(j.RunAt), 0),
		})
	}
	if !slices.ContainsFunc(jobs, func(j job.Job) bool { return !j.Plain }) {
		head = plain
	}
	return r.m.Runner.Notify().Tell(ctx, notify.Cause{Kind: notify.Late, Subject: "reminders", Name: "Reminders", Text: overdueText(head, list)})
}

// overdueReminder is a reminder whose time is long past, or was thought to be.
type overdueReminder struct {
	at   time.Time // in the zone to be shown
	text string    // what it was to remind of
	late time.Duration
}

// overdueChars is how much of each overdue reminder is told, in characters.
const overdueChars = 200

// overdueText returns one update for all the reminders, in the order given. Those that do not fit are counted.
func overdueText(head string, list []overdueReminder) string {
	const space = update.MaxChars - 100 // for the last line
	text := head
	for i, r := range list {
		when := r.at.Format("2006-01-02 Mon 3:04 PM")
		if r.late > 0 {
			when += " (" + prompt.Ago(r.late) + ")"
		}
		line := fmt.Sprintf("\n- %s: %s", when, plaintext.Short(plaintext.Line(r.text), overdueChars))
		if utf8.RuneCountInString(text)+utf8.RuneCountInString(line) > space {
			return text + fmt.Sprintf("\nand %d more.", len(list)-i)
		}
		text += line
	}
	return text
}
