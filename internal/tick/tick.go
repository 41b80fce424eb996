// Package tick is what happens once a minute: reminders that are due are started, those that are long past are told of in one
// update, what died without a word is ended, messages that did not get through are tried again, and once a day what is too old
// goes. It waits for no engine, and two at once do no harm: the second finds the first at work and leaves.
package tick

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/fire"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
	"github.com/ollim/ollim/internal/prompt"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/store"
)

// Minute is one tick of one data directory.
type Minute struct {
	Firer *fire.Firer
	Start func(job.Job) error         // starts a fire of the job, and does not wait for it
	Sweep func(context.Context) error // forgets the sessions of routines that are gone
	Keep  int                         // days that run records stay
}

// Bounds of a minute.
const (
	maxStarts  = 10               // engines that one minute starts; the rest is due in the next
	overdue    = 24 * time.Hour   // after which a reminder is told of and not run
	retryAfter = 5 * time.Minute  // an attempt that failed
	askAgain   = time.Hour        // after a fire that was refused or paused
	orphanAge  = 24 * time.Hour   // how far back a minute looks for runs that died; once a day it looks further
	sendLimit  = 45 * time.Second // for messages of earlier runs
)

// Action is something that a minute does, or would do.
type Action struct {
	Do   string    `json:"do"` // start or collect
	Job  string    `json:"job"`
	Name string    `json:"name"`
	At   time.Time `json:"at"` // when it was due
}

// What a minute does with a reminder.
const (
	Start   = "start"
	Collect = "collect"
)

// Plan says what Pass would do with reminders now, and changes nothing.
func (m Minute) Plan(ctx context.Context) ([]Action, error) {
	due, late, err := m.due(ctx, false)
	var actions []Action
	for _, j := range late {
		actions = append(actions, m.action(Collect, j))
	}
	for _, j := range due {
		actions = append(actions, m.action(Start, j))
	}
	return actions, err
}

func (m Minute) action(do string, j job.Job) Action {
	return Action{Do: do, Job: j.ID, Name: j.Name(), At: j.RunAt.In(m.Firer.Zone)}
}

// Pass is the minute's work. Trouble with one part does not keep the others from being done.
func (m Minute) Pass(ctx context.Context) error {
	guard, err := lock.TryGuard(m.Firer.Home.Lock("tick"))
	if errors.Is(err, lock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer guard.Release()
	m.Firer.EndOrphans(ctx, m.now().Add(-orphanAge))
	err = m.reminders(ctx)
	sending, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	if _, sendErr := m.Firer.Post.Flush(sending); sendErr != nil && sending.Err() == nil {
		err = errors.Join(err, sendErr)
	}
	return errors.Join(err, m.daily(ctx))
}

func (m Minute) now() time.Time { return m.Firer.Disk.Now() }

func (m Minute) reminders(ctx context.Context) error {
	due, late, err := m.due(ctx, true)
	if err != nil {
		return err
	}
	err = m.collect(ctx, late)
	for _, j := range due[:min(len(due), maxStarts)] {
		err = errors.Join(err, m.Start(j))
	}
	return err
}

// due is the reminders to start, oldest first, and those that are too late for that. While everything is paused there are none.
func (m Minute) due(ctx context.Context, tell bool) (start, late []job.Job, err error) {
	if paused, _, err := m.Firer.Spend.Paused(); paused || err != nil {
		return nil, nil, err
	}
	shelf, err := m.Firer.Jobs.Load()
	if err != nil {
		return nil, nil, err
	}
	jobs := shelf.Only(job.Reminder).Jobs
	byTime(jobs)
	for _, j := range jobs {
		last := m.last(j)
		switch {
		case !j.Enabled || j.RunAt.After(m.now()):
		case last.ID == "" && j.Attempt() != job.Second && m.now().Sub(j.RunAt) > overdue:
			late = append(late, j)
		case m.resting(last):
		case tell && m.Firer.Unapproved(ctx, j):
		default:
			start = append(start, j)
		}
	}
	return start, late, nil
}

// last is the job's latest run; the zero Record when there is none.
func (m Minute) last(j job.Job) run.Record {
	r, err := m.Firer.Runs.Load(strings.TrimSpace(lock.ReadNote(m.Firer.Home.JobLock(j.ID))))
	if err != nil {
		return run.Record{}
	}
	return r
}

// resting says whether it is too early for another attempt.
func (m Minute) resting(last run.Record) bool {
	switch {
	case last.ID == "":
		return false
	case !last.Done():
		return m.Firer.Runs.Alive(last) || m.now().Before(last.Started.Add(retryAfter))
	case last.Outcome == run.Refused || last.Outcome == run.Paused:
		return m.now().Before(last.Finished.Add(askAgain))
	}
	return m.now().Before(last.Finished.Add(retryAfter))
}

// collect tells of all that is long past in one update. The files are claimed before and deleted after it is in the box, so that
// none is lost and at worst one is told of twice.
func (m Minute) collect(ctx context.Context, late []job.Job) error {
	var claimed []job.Job
	var list []prompt.OverdueReminder
	for _, j := range late {
		guard, err := lock.TryGuard(m.Firer.Home.JobLock(j.ID))
		if err != nil {
			continue // somebody is at it
		}
		defer guard.Release()
		if j.Attempt() == job.Waiting {
			if j, err = m.Firer.Jobs.Claim(j); err != nil {
				continue // it was cancelled this moment
			}
		}
		claimed = append(claimed, j)
		list = append(list, prompt.OverdueReminder{At: j.RunAt.In(m.Firer.Zone), Text: textOf(j)})
	}
	if len(claimed) == 0 {
		return nil
	}
	if err := m.Firer.Updates.Add(ctx, prompt.Overdue(list), "ollim"); err != nil {
		return err
	}
	var err error
	for _, j := range claimed {
		err = errors.Join(err, store.Remove(j.Path))
	}
	return err
}

func textOf(j job.Job) string {
	if j.Description != "" {
		return j.Description
	}
	return j.Body
}
