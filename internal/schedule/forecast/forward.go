package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
)

// tag says what an entry of the forward schedule is to the run that reads it.
type tag string

// The tags of behaviour 3.3.
const (
	thisTask  tag = "this task"
	justFired tag = "just fired"
)

// Entry is one background task in the forward schedule of a prompt.
type Entry struct {
	At          time.Time // in the zone to be shown
	Label       string    // a routine's description or "Routine", "Chain reminder (2/4)", "Reminder"
	Description string    // at most 60 characters and "..."
	Path        string    // of the file, relative to the data directory
	Silent      bool      // it may not ping
	Tag         tag       // "" for one that is neither
	More        int       // further fires of the job in the range of the list, which have no entry of their own
	Last        time.Time // the last of those
}

// Forward is what background tasks lie around an instant.
type Forward struct {
	Entries []Entry   // by time
	Hours   int       // range of the list: from now to Last, rounded, at least 1; 0 when nothing fires within 12 hours
	Last    time.Time // the last fire to come that is listed; zero when there is none
	Left    int       // fires in the range that are not listed, where more than maxAhead entries lie close together
	Refills int       // whole tokens that the ping budget gains before Last
}

// The window of behaviour 3.3.
const (
	lookBack   = 15 * time.Minute
	baseWindow = 3 * time.Hour
	maxWindow  = 12 * time.Hour
	minAhead   = 3
)

// Bounds of a list that is read by a model: a routine that fires every minute must not fill it, nor must ten thousand
// routines. The last entry of a frequent job counts its further fires; a list of more than maxAhead entries has a shorter range.
const (
	perJob    = 3 // entries to come of one job
	maxAhead  = 40
	maxRecent = 10
)

// longest is how many characters of a text are shown.
const longest = 60

type row struct {
	at   time.Time
	job  *job.Job
	tag  tag
	zone *time.Location // of the job, where there may be more fires of it after this row; else nil
	more int
	last time.Time
}

// Around lists the background tasks around now: what fired in the last 15 minutes, the fire of the job with the id current
// ("" is none) that is in progress now, and what fires in the next three hours. If that is less than three entries it looks
// further ahead, at most twelve hours. A job has at most three entries to come; the last one counts the rest. Times are in zone,
// which is also that of jobs without one of their own; relative turns a job's path into the one to be shown. The caller fills in
// Refills.
//
// Listed are enabled background routines and reminders, except plain ones, which no agent runs. The current job is listed
// when it was disabled since, too. A firing reminder is found only if the caller has it among the jobs.
func Around(jobs []job.Job, zone *time.Location, now time.Time, current string, relative func(path string) string) Forward {
	zones := map[string]*time.Location{} // loading one reads a file
	var recent, ahead, rows []row
	for i := range jobs {
		j := &jobs[i]
		if !j.Background || j.Plain || j.Kind != job.Routine && j.Kind != job.Reminder {
			continue
		}
		own, known := zones[j.Timezone]
		if !known {
			own = j.Zone(zone)
			zones[j.Timezone] = own
		}
		isCurrent := j.ID == current
		last, fired := latest(j, own, now)
		if !fired {
			last = now
		}
		switch {
		case isCurrent:
			rows = append(rows, row{at: last, job: j, tag: thisTask})
		case fired && j.Enabled:
			recent = append(recent, row{at: last, job: j, tag: justFired})
		}
		if j.Enabled && (!isCurrent || j.Kind == job.Routine) { // a reminder that fires before its time is done with
			ahead = upcoming(ahead, j, own, now)
		}
	}
	slices.SortStableFunc(recent, byTime)
	slices.SortStableFunc(ahead, byTime)
	f, ahead := window(ahead, now)
	rows = slices.Concat(rows, recent[max(0, len(recent)-maxRecent):], ahead)
	slices.SortStableFunc(rows, byTime)
	for _, r := range rows {
		f.Entries = append(f.Entries, r.entry(zone, relative))
	}
	return f
}

// latest is a job's latest fire at or before now, if it is within the lookBack window.
func latest(j *job.Job, zone *time.Location, now time.Time) (time.Time, bool) {
	at, ok := j.RunAt, true
	if j.Kind == job.Routine {
		at, ok = j.Schedule.Prev(now, zone)
	}
	return at, ok && !at.After(now) && now.Sub(at) <= lookBack
}

// upcoming adds what a job fires in the widest window after now, up to perJob rows.
func upcoming(rows []row, j *job.Job, zone *time.Location, now time.Time) []row {
	end := now.Add(maxWindow)
	if j.Kind == job.Reminder {
		if j.RunAt.After(now) && !j.RunAt.After(end) {
			rows = append(rows, row{at: j.RunAt, job: j})
		}
		return rows
	}
	most := len(rows) + perJob
	for at := range j.Schedule.Between(now, end, zone) {
		rows = append(rows, row{at: at, job: j})
		if len(rows) == most {
			rows[most-1].zone = zone
			break
		}
	}
	return rows
}

// window cuts rows to come, which are sorted, to the base window, or to the hour that the third row lies in if that is later.
// Every fire in the hours of the returned Forward has a row, is counted by the last row of its job, or is counted as Left.
func window(rows []row, now time.Time) (Forward, []row) {
	if len(rows) == 0 {
		return Forward{}, nil
	}
	end := now.Add(baseWindow)
	if third := rows[min(minAhead, len(rows))-1].at; third.After(end) {
		end = later(third, now.Add(third.Sub(now).Round(time.Hour)))
	}
	rows = rows[:until(rows, end)]
	f := Forward{}
	if len(rows) > maxAhead {
		f.Hours = max(1, int(rows[maxAhead].at.Sub(now)/time.Hour))
		end = later(now.Add(time.Duration(f.Hours)*time.Hour), rows[maxAhead-1].at)
		rows = rows[:max(maxAhead, until(rows, end))]
	}
	for i := range rows {
		rows[i].countMore(end)
		if i >= maxAhead {
			f.Left += 1 + rows[i].more
			continue
		}
		f.Last = later(f.Last, later(rows[i].at, rows[i].last))
	}
	if f.Hours == 0 {
		f.Hours = max(1, int(f.Last.Sub(now).Round(time.Hour)/time.Hour))
	}
	return f, rows[:min(maxAhead, len(rows))]
}

// until is the number of sorted rows that are not after end.
func until(rows []row, end time.Time) int {
	return sort.Search(len(rows), func(i int) bool { return rows[i].at.After(end) })
}

func (r *row) countMore(end time.Time) {
	if r.zone == nil {
		return
	}
	for at := range r.job.Schedule.Between(r.at, end, r.zone) {
		r.more, r.last = r.more+1, at
	}
}

func byTime(a, b row) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.job.Path, b.job.Path))
}

func (r row) entry(zone *time.Location, relative func(string) string) Entry {
	return Entry{
		At:          r.at.In(zone),
		Label:       label(r.job),
		Description: description(r.job),
		Path:        strings.Map(plaintext.Rune, relative(r.job.Path)),
		Silent:      !r.job.AllowPing,
		Tag:         r.tag,
		More:        r.more,
		Last:        r.last.In(zone),
	}
}

func label(j *job.Job) string {
	switch {
	case j.Kind == job.Routine:
		return cmp.Or(beginning(j.Description), "Routine")
	case j.MaxChain > 0:
		return fmt.Sprintf("Chain reminder (%d/%d)", j.ChainDepth+1, j.MaxChain+1)
	}
	return "Reminder"
}

// description is empty for a routine that has one, because that is its label.
func description(j *job.Job) string {
	words := beginning(j.Description)
	if words != "" && j.Kind == job.Routine {
		return ""
	}
	return cmp.Or(words, beginning(j.Body))
}

// beginning is what a text begins with, in one line.
func beginning(text string) string {
	first, more := plaintext.First(plaintext.Line(text), longest)
	if more {
		return strings.TrimSuffix(first, " ") + "..."
	}
	return first
}
