// Package overview collects what the owner wants to know at a glance: whether ticks come, what runs, what failed, what waits for the
// owner, what fires next, the ping budget, what was spent, and the last week by routine. It only reads. A part that cannot be read is
// left out and its error returned with the rest.
package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
)

// Status is the state of one data directory. Times are in the configured zone.
type Status struct {
	Tick struct { // whether something runs `ollim tick` each minute
		Alive  bool      `json:"alive"`
		Seen   time.Time `json:"seen,omitzero"`
		Why    string    `json:"why,omitempty"`    // why nothing runs it, if that is known
		Remedy string    `json:"remedy,omitempty"` // a command, or what to do
	} `json:"tick"`
	Paused *pause   `json:"paused,omitempty"` // nil: automatic runs start
	Seal   struct { // whether the programs of agents are sealed
		On  bool   `json:"on"`
		Why string `json:"why,omitempty"` // why they are not, or that no agent runs
	} `json:"seal"`

	Running   []run        `json:"running"`   // newest last
	Failed    []run        `json:"failed"`    // newest first, one for each job
	Missed    []tally      `json:"missed"`    // slots at which nothing ran, by job
	Models    []faulty     `json:"models"`    // that cannot be used
	GatesOff  []gateOff    `json:"gates_off"` // of jobs with gate-audit
	Waiting   []question   `json:"waiting"`   // for an answer
	Approvals []string     `json:"approvals"` // names that ollim approve takes
	Queued    []message    `json:"queued"`    // to the main conversation
	Inbox     []app.Events `json:"inbox"`

	Updates     int      `json:"updates"`
	Undelivered int      `json:"undelivered"` // without those that are held
	Held        app.Held `json:"held"`
	Invalid     int      `json:"invalid"` // job files with faults

	Overdue []fire `json:"overdue"` // reminders whose time has passed
	Next    []fire `json:"next"`
	Pings   struct {
		Left     int `json:"left"`
		Capacity int `json:"capacity"`
	} `json:"pings"`
	Runs struct { // of today
		Automatic int `json:"automatic"`
		Typed     int `json:"typed"` // that the owner started
	} `json:"runs"`
	Spent struct { // USD; a limit that is nil is none
		Today      float64  `json:"today"`
		PerDay     *float64 `json:"per_day"`
		Month      float64  `json:"month"`
		PerMonth   *float64 `json:"per_month"`
		RunsToday  int      `json:"runs_today"` // that RunsPerDay limits
		RunsPerDay *int     `json:"runs_per_day"`
	} `json:"spent"`
	Week     []week    `json:"week"` // by routine
	Findings []Finding `json:"findings"`
}

// pause is a pause of all automatic runs.
type pause struct {
	Until  time.Time `json:"until,omitzero"`   // zero: until ollim resume
	Reason string    `json:"reason,omitempty"` // what is wrong with the file that says so
}

// question is a run that waits for an answer, or that has one and could not go on yet.
type question struct {
	Run      string    `json:"run"`
	Name     string    `json:"name"`
	Asked    time.Time `json:"asked"`
	Expires  time.Time `json:"expires"`
	Text     string    `json:"question"`
	Answered bool      `json:"answered"`
}

// faulty is a model that does not exist any more, is refused or stays overloaded.
type faulty struct {
	Model string    `json:"model"`
	Since time.Time `json:"since"`
	Text  string    `json:"text"` // what is wrong, and which model answers instead
	Jobs  []string  `json:"jobs"` // names
}

// gateOff is the gate of a job that would have skipped a run which told the owner something.
type gateOff struct {
	Job  string    `json:"job"`
	Name string    `json:"name"`
	Run  string    `json:"run"` // that run
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// message is a message of the owner that has no answer yet.
type message struct {
	Arrived time.Time `json:"arrived"`
	Text    string    `json:"text"`
	CutOff  bool      `json:"cut_off,omitempty"` // its turn was cut off
}

// fire is a fire to come. During a pause that has an end At is not before that end.
type fire struct {
	At    time.Time `json:"at"`
	Job   string    `json:"job"`
	Label string    `json:"label"`
	Host  string    `json:"host,omitempty"` // name of the only machine that runs the job; "": every machine
}

// fires is how many fires are listed.
const fires = 3

// Collect reads the status. A brief one has the runs of the last day only, and no trends. The error is of the parts that could not be read.
func Collect(ctx context.Context, h app.Home, brief bool) (Status, error) {
	s := Status{
		Running: []run{}, Failed: []run{}, Models: []faulty{}, GatesOff: []gateOff{}, Waiting: []question{}, Approvals: []string{}, Queued: []message{},
		Overdue: []fire{}, Next: []fire{}, Week: []week{}, Findings: []Finding{},
	}
	var errs []error
	for _, part := range []func(context.Context, app.Home) error{
		s.tick, func(_ context.Context, h app.Home) error { return errors.Join(s.runs(h, brief), s.missed(h, brief)) },
		s.models, s.questions, s.queue, s.inbox, s.messages, s.jobs, s.money, s.seal,
	} {
		errs = append(errs, part(ctx, h))
	}
	return s, errors.Join(errs...)
}

func (s *Status) tick(_ context.Context, h app.Home) error {
	if paused, until, err := h.Spend.Paused(); paused {
		s.Paused = &pause{Until: until}
		if err != nil {
			s.Paused.Reason = err.Error()
		}
	}
	seen, coming, err := tick.Coming(h.Dir, h.Disk.Now())
	s.Tick.Alive, s.Tick.Seen = coming, seen.In(h.Config.Zone)
	return err
}

func (s *Status) seal(_ context.Context, h app.Home) error {
	_, why, err := h.Firer().Rules.Seals(job.New(job.Routine))
	if err != nil {
		why = err.Error()
	}
	s.Seal.On, s.Seal.Why = why == "", why
	return nil
}

func (s *Status) models(_ context.Context, h app.Home) error {
	page, err := h.Notices.Read()
	for _, key := range slices.Sorted(maps.Keys(page.Causes)) {
		e := page.Causes[key]
		if e.Kind != string(notify.Model) || !e.Open() {
			continue
		}
		f := faulty{Model: e.Subject, Since: e.Since.In(h.Config.Zone), Text: e.Text, Jobs: []string{}}
		for _, j := range e.Jobs {
			f.Jobs = append(f.Jobs, j.Name)
		}
		slices.Sort(f.Jobs)
		s.Models = append(s.Models, f)
	}
	return err
}

func (s *Status) questions(_ context.Context, h app.Home) error {
	all, err := h.Questions.List()
	for _, q := range all {
		if !q.Expired(h.Disk.Now()) {
			s.Waiting = append(s.Waiting, question{q.Run, q.Name, q.Asked, q.Expires.In(h.Config.Zone), q.Text, q.Answer != ""})
		}
	}
	return err
}

func (s *Status) queue(_ context.Context, h app.Home) error {
	c, err := h.Queue.Contents()
	for _, m := range c.Waiting {
		s.Queued = append(s.Queued, message{Arrived: m.Arrived, Text: m.Text})
	}
	for _, m := range c.CutOff {
		s.Queued = append(s.Queued, message{Arrived: m.Arrived, Text: m.Text, CutOff: true})
	}
	return err
}

func (s *Status) inbox(_ context.Context, h app.Home) (err error) {
	s.Inbox, err = h.Events()
	return err
}

func (s *Status) messages(ctx context.Context, h app.Home) error {
	updates, err := h.Updates.Peek(ctx)
	held, heldErr := h.Held()
	s.Updates, s.Held, s.Undelivered = len(updates), held, held.Others
	return errors.Join(err, heldErr)
}

// jobs finds what is to fire next, what waits for an approval, and files that cannot be read.
func (s *Status) jobs(ctx context.Context, h app.Home) error {
	set, err := h.Jobs.Load()
	s.Invalid = set.BadFiles()
	s.due(h, set.Jobs)
	s.next(ctx, h, set.Jobs)
	return errors.Join(err, s.gates(h, set.Jobs), s.approvals(h, set.Jobs))
}

// gates finds the gates that are off.
func (s *Status) gates(h app.Home, jobs []job.Job) (err error) {
	for _, j := range jobs {
		g, text, stateErr := h.GateState(j)
		if err = errors.Join(err, stateErr); g.Off != "" {
			s.GatesOff = append(s.GatesOff, gateOff{j.ID, j.Name(), g.Off, g.OffAt.In(h.Config.Zone), text})
		}
	}
	return err
}

// tickTime is the time in which a tick fires what is due.
const tickTime = time.Minute

// due finds the reminders whose time has passed and that were not tried yet. Those that the next tick fires are the next ones, unless
// no tick comes, or a pause holds them.
func (s *Status) due(h app.Home, jobs []job.Job) {
	now := h.Disk.Now()
	for _, j := range jobs {
		if j.Kind != job.Reminder || !j.Enabled || j.RunAt.After(now) || j.Attempt() != job.Waiting {
			continue
		}
		f := fire{j.RunAt.In(h.Config.Zone), j.ID, j.Label(), j.Host}
		if s.Tick.Alive && s.Paused == nil && now.Sub(j.RunAt) < tickTime {
			s.Next = append(s.Next, f)
		} else {
			s.Overdue = append(s.Overdue, f)
		}
	}
	for _, list := range [][]fire{s.Next, s.Overdue} {
		slices.SortStableFunc(list, inTime)
	}
	s.Next = s.Next[:min(fires, len(s.Next))]
}

// next finds the next fires. A pause with an end holds them until then: reminders that are due before then fire at its end, slots do not.
// During a pause without an end only the plain reminders that the pause does not hold fire.
func (s *Status) next(ctx context.Context, h app.Home, jobs []job.Job) {
	now, zone := h.Disk.Now(), h.Config.Zone
	from := now
	if s.Paused != nil {
		from = s.Paused.Until
		s.Next = append(s.Next, held(jobs, now, from, h.Firer().Pauses.HoldsReminders(), zone)...)
		if s.Next = s.Next[:min(fires, len(s.Next))]; from.IsZero() {
			return
		}
	}
	for f := range forecast.Upcoming(jobs, zone, from) {
		if len(s.Next) >= fires || ctx.Err() != nil {
			break
		}
		s.Next = append(s.Next, fire{f.At.In(zone), f.Job.ID, f.Job.Label(), f.Job.Host})
	}
}

// held returns the reminders that are due before the end of a pause, which may be none, when they fire.
func held(jobs []job.Job, now, end time.Time, holdsAll bool, zone *time.Location) (list []fire) {
	for _, j := range jobs {
		at, passes := j.RunAt, j.Plain && !holdsAll
		if j.Kind != job.Reminder || !j.Enabled || !at.After(now) || !end.IsZero() && at.After(end) || end.IsZero() && !passes {
			continue
		}
		if !passes {
			at = end
		}
		list = append(list, fire{at.In(zone), j.ID, j.Label(), j.Host})
	}
	slices.SortStableFunc(list, inTime)
	return list
}

func inTime(a, b fire) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Job, b.Job)) }

func (s *Status) approvals(h app.Home, jobs []job.Job) (err error) {
	book := h.Approvals
	for _, j := range jobs {
		waits, jobErr := book.Waits(j)
		if waits && j.Enabled {
			s.Approvals = append(s.Approvals, j.Name())
		}
		if jobErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", j.Name(), jobErr))
		}
	}
	policy, policyErr := book.Policy()
	if policy.Waits {
		s.Approvals = append(s.Approvals, policy.Subject.Label)
	}
	return errors.Join(err, policyErr)
}

func (s *Status) money(_ context.Context, h app.Home) error {
	pings, err := h.Budget.Status()
	s.Pings.Left, s.Pings.Capacity = int(pings.Available), pings.Capacity
	totals, totalsErr := h.Spend.Totals()
	if totalsErr != nil {
		return errors.Join(err, totalsErr)
	}
	limits := h.Spend.Limits
	s.Spent.Today, s.Spent.Month, s.Spent.RunsToday = totals.Today.Spent, totals.Month.Spent, totals.Runs
	s.Spent.PerDay, s.Spent.PerMonth = finite(limits.PerDay), finite(limits.PerMonth)
	if limits.RunsPerDay != math.MaxInt {
		s.Spent.RunsPerDay = &limits.RunsPerDay
	}
	return err
}

func finite(limit float64) *float64 {
	if math.IsInf(limit, 1) {
		return nil
	}
	return &limit
}
