package app

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/inquiry"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/object"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/skill"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/state/spend"
	"github.com/ollim/ollim/internal/state/task"
	"github.com/ollim/ollim/internal/state/update"
)

// Home is a data directory with its settings. Its methods make the stores.
type Home struct {
	Dir    paths.Dir
	Config config.Config
	Disk   store.Disk

	app     *App
	by      *settings
	secrets func() plaintext.Secrets // that no record and no result of a tool may contain
}

// Home returns the data directory with the settings as they are now. It must have been made by init; else the error is an
// ErrNoConfig.
func (a *App) Home() (Home, error) {
	dir, err := a.Dir()
	if err != nil {
		return Home{}, err
	}
	s, err := a.settings()
	if err != nil {
		return Home{}, err
	}
	if !s.config.Exists {
		return Home{}, Hint(fmt.Errorf("%s: %w", a.ConfigFile(dir), ErrNoConfig), "ollim init")
	}
	return a.with(dir, s), nil
}

// AnyHome is Home for commands that must work although the settings cannot be used (pause, stop, history): it warns, and takes the
// defaults.
func (a *App) AnyHome() (Home, error) {
	h, err := a.Home()
	if !errors.As(err, new(*ConfigFault)) {
		return h, err
	}
	a.warn(err.Error())
	return a.DefaultHome()
}

// DefaultHome is Home with the default settings, whatever the file says.
func (a *App) DefaultHome() (Home, error) {
	dir, err := a.Dir()
	if err != nil {
		return Home{}, err
	}
	s, err := a.defaults(dir)
	return a.with(dir, s), err
}

// NewHome is Home for a data directory that need not have been made.
func (a *App) NewHome() (Home, error) {
	dir, err := a.Dir()
	if err != nil {
		return Home{}, err
	}
	s, err := a.settings()
	return a.with(dir, s), err
}

func (a *App) with(dir paths.Dir, s *settings) Home {
	h := Home{Dir: dir, Config: s.config, Disk: a.disk(), app: a, by: s}
	h.secrets = sync.OnceValue(h.hidden) // the file is read when they are first needed
	return h
}

// Jobs returns the job files.
func (h Home) Jobs() job.Library { return job.Library{Home: h.Dir, Zone: h.Config.Zone} }

// Skills returns the skills.
func (h Home) Skills() skill.Library { return skill.Library{Home: h.Dir} }

// Runs returns the records of runs.
func (h Home) Runs() runlog.Book {
	return runlog.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, Secrets: h.secrets}
}

// Sessions returns the current sessions and their history.
func (h Home) Sessions() session.Book {
	return session.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone}
}

// Channels returns the sessions of channels, with what this process has in memory of them.
func (h Home) Channels() channel.Book {
	return channel.Book{Home: h.Dir, Disk: h.Disk, Cache: &h.app.whole().memory.channels}
}

// Objects is what models saw.
func (h Home) Objects() object.Box { return object.Box{Home: h.Dir, Disk: h.Disk} }

// Requests returns what was sent to models.
func (h Home) Requests() request.Book {
	return request.Book{Home: h.Dir, Disk: h.Disk, Objects: h.Objects(), Secrets: h.secrets}
}

// Slots returns the claims of slots.
func (h Home) Slots() slot.Book { return slot.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone} }

// Tasks returns the owner's tasks.
func (h Home) Tasks() task.Book {
	writable := h.app.run != nil && h.app.run.writes(filepath.Dir(h.Dir.Tasks()))
	return task.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, NoLink: writable}
}

// Budget returns the budget of pings.
func (h Home) Budget() budget.Book {
	return budget.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone}
}

// Questions returns the questions that wait for the owner's answer.
func (h Home) Questions() question.Book {
	return question.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone}
}

// Inquiries returns the prompts of buttons.
func (h Home) Inquiries() inquiry.Book { return inquiry.Book{Home: h.Dir, Disk: h.Disk} }

// Notices returns what the owner was told once.
func (h Home) Notices() notice.Book { return notice.Book{Home: h.Dir, Disk: h.Disk} }

// Approvals returns what the owner has approved.
func (h Home) Approvals() approval.Book {
	return approval.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, User: h.app.userHome(), Servers: h.Config.Servers}
}

// Updates returns the pending updates.
func (h Home) Updates() update.Box {
	return update.Box{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, Started: h.answered}
}

// Queue returns the owner's messages that wait for a turn.
func (h Home) Queue() queue.Book {
	return queue.Book{
		Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, Runs: h.fate,
		Stop: func(run string) error { return runner.Interrupt(h.Runs(), run) },
	}
}

// Inbox returns the webhook events that wait for their runs.
func (h Home) Inbox() inbox.Book {
	return inbox.Book{
		Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, Limits: inbox.LimitsOf(h.Config.Webhook.Inbox, h.Config.Webhook.Jobs),
		NewRun: func() (string, error) { return runlog.NewID(h.Disk.Now(), h.app.Random) },
		Runs:   h.Runs().After,
	}
}

// fate returns what a run has done with the messages that it was given.
func (h Home) fate(run string) queue.Fate {
	if run == "" {
		return queue.Fate{}
	}
	_, err := os.Lstat(h.Dir.Run(run, "prompt.txt"))
	f := queue.Fate{Begun: err == nil}
	if r, err := h.Runs().Load(run); err == nil {
		f.Done, f.OK = r.Done(), r.Outcome == runlog.OK
	}
	f.Answered = f.Begun && h.answered(run)
	return f
}

// Models returns what is known of models, the owner's own lines included.
func (h Home) Models() (model.Table, error) {
	t, err := model.Known().With(h.Config.Models)
	if err != nil {
		return t, &config.Wrong{Reason: "models: " + err.Error()}
	}
	return t, nil
}

// Spend returns the accounts. The settings were checked when they were read, so every amount is one.
func (h Home) Spend() spend.Book {
	usd := func(text string) float64 {
		n, _ := config.Amount(text)
		return n
	}
	limits := spend.Limits{
		PerRun: usd(h.Config.Spend.PerRun), PerDay: usd(h.Config.Spend.PerDay), PerMonth: usd(h.Config.Spend.PerMonth),
		RunsPerDay: math.MaxInt,
	}
	if n := usd(h.Config.Spend.RunsPerDay); !math.IsInf(n, 1) {
		limits.RunsPerDay = int(n)
	}
	return spend.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, Limits: limits, Past: h.past, Share: 4}
}

// past returns what the accounts are made from when their file is gone.
func (h Home) past(since time.Time) (past []spend.Past, err error) {
	for r, err := range h.Runs().Since(since) {
		if err != nil {
			return past, err
		}
		if r.Accounted {
			cost := -1.0
			if bill, err := h.Runs().Bill(r); err == nil {
				cost = bill.Cost
			}
			p := spend.Past{Run: r.Account(), Job: r.Job, Started: r.Started, Cost: cost, Alive: h.Runs().Alive(r)}
			if r.Continued > 0 { // each part counts on its own day
				past = append(past, spend.Past{Run: r.ID, Job: r.Job, Started: r.Started, Cost: r.Settled})
				p.Started, p.Cost = r.Resumed, max(p.Cost-r.Settled, min(p.Cost, 0))
			}
			past = append(past, p)
		}
	}
	return past, nil
}

// Audit returns what became of every slot since an instant, except for those of the last minutes, which are not settled.
func (h Home) Audit(from time.Time) ([]forecast.Answer, error) {
	return forecast.Audit(h.Slots(), from, h.Disk.Now().Add(-forecast.Settled), h.became)
}

// became is the outcome of a claim that does not say it; "" is of a run that is in progress.
func (h Home) became(c slot.Claim) string {
	r, err := h.Runs().Load(c.Run)
	switch {
	case err == nil && r.Done():
		return string(r.Outcome)
	case c.Alive(), err == nil && h.Runs().Alive(r):
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return forecast.Unaccounted // its process died before it had a record
	}
	return string(runlog.Interrupted)
}
