package app

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/state/spend"
	"github.com/ollim/ollim/internal/state/task"
)

// Home is a data directory with its settings and its stores.
type Home struct {
	*state.Stores

	Dir    paths.Dir
	Config config.Config
	Disk   store.Disk

	app     *App
	by      *settings
	secrets func() plaintext.Secrets // values that no record and no result of a tool may contain
}

// Home returns the data directory with the settings as they are now. It must have been made by init; else the error is an
// ErrNoConfig.
func (a *App) Home() (Home, error) {
	h, err := a.NewHome()
	if err == nil && !h.Config.Exists {
		err = Hint(fmt.Errorf("%s: %w", a.ConfigFile(h.Dir), ErrNoConfig), "ollim init")
	}
	if err != nil {
		return Home{}, err
	}
	return h, nil
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

// DefaultHome is Home with the default settings, whatever the file says. They are in force from then on.
func (a *App) DefaultHome() (Home, error) {
	dir, err := a.Dir()
	if err != nil {
		return Home{}, err
	}
	none := func(string) (string, bool) { return "", false }
	c, err := config.Load(config.Source{Path: dir.Path("no-such-file"), Lookup: none, Zone: a.SystemZone})
	path := a.ConfigFile(dir)
	s := &settings{c, path, stat(path)}
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.loaded = s
	}
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
	h := Home{Dir: dir, Config: s.config, Disk: store.Disk{Now: a.Now, Warn: a.warn, Locks: &a.whole().memory.locks}, app: a, by: s}
	h.secrets = sync.OnceValue(h.hidden) // the file is read when they are first needed
	h.Stores = state.Of(dir, h.Disk, s.config.Zone)
	h.Runs.Secrets, h.Requests.Secrets, h.Approvals.Secrets = h.secrets, h.secrets, h.secrets
	h.Channels.Cache = &a.whole().memory.channels
	h.Approvals.User, h.Approvals.Servers = a.userHome(), s.config.Servers
	h.Updates.Started = h.answered
	h.Queue.Runs, h.Queue.Stop = h.fate, func(run string) error { return turn.Interrupt(h.Runs, run) }
	h.Inbox.Limits = inbox.LimitsOf(s.config.Webhook.Inbox, s.config.Webhook.Jobs)
	h.Inbox.NewRun = func() (string, error) { return runlog.NewID(h.Disk.Now(), a.Random) }
	h.Inbox.Runs = h.Runs.After
	c := s.config.Spend
	h.Spend.Limits = spend.Limits{PerRun: c.PerRun, PerDay: c.PerDay, PerMonth: c.PerMonth, RunsPerDay: math.MaxInt}
	if !math.IsInf(c.RunsPerDay, 1) {
		h.Spend.Limits.RunsPerDay = int(c.RunsPerDay)
	}
	h.Spend.Past, h.Spend.Share = h.past, 4
	return h
}

// Tasks returns the owner's tasks.
func (h Home) Tasks() task.Book {
	writable := h.app.run != nil && h.app.run.writes(filepath.Dir(h.Dir.Tasks()))
	return task.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, NoLink: writable}
}

// fate returns what a run has done with the messages that it was given.
func (h Home) fate(run string) queue.Fate {
	if run == "" {
		return queue.Fate{}
	}
	_, err := os.Lstat(h.Dir.Run(run, "prompt.txt"))
	f := queue.Fate{Begun: err == nil}
	if r, err := h.Runs.Load(run); err == nil {
		f.Begun = f.Begun || r.Turns > 0 // a power failure may have left only the record
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

// models is Models without the owner's lines if they are invalid, which the engine reports.
func (h Home) models() model.Table {
	t, err := h.Models()
	if err != nil {
		return model.Known()
	}
	return t
}

// past returns the runs from which the accounts of spending are made if the ledger has none.
func (h Home) past(since time.Time) (past []spend.Past, err error) {
	all, err := h.Runs.Tally(since)
	if err != nil || !slices.ContainsFunc(all.Tallies, func(t *runlog.Tally) bool { return t.Accounts > 0 }) {
		return nil, err
	}
	for r, err := range h.Runs.Since(since) {
		if err != nil {
			return past, err
		}
		if r.Accounted {
			cost := -1.0
			if bill, err := h.Runs.Bill(r); err == nil {
				cost = bill.Cost
			}
			p := spend.Past{Run: r.Account(), Job: r.Job, Started: r.Started, Cost: cost, Alive: h.Runs.Alive(r), Owner: r.Owner}
			if r.Continued > 0 { // each part counts on its own day
				past = append(past, spend.Past{Run: r.ID, Job: r.Job, Started: r.Started, Cost: r.Settled})
				p.Started, p.Cost = r.Resumed, max(p.Cost-r.Settled, min(p.Cost, 0))
			}
			past = append(past, p)
		}
	}
	return past, nil
}

// settled is the age of a slot after which a tick has recorded it if it was missed.
const settled = slot.Grace + 2*time.Minute

// Audit returns what became of every slot since an instant, those that wait for other runs included, except for those of the last minutes, which are not settled, and of those
// whose runs are no longer kept.
func (h Home) Audit(from time.Time) ([]forecast.Answer, error) {
	now := h.Disk.Now()
	if kept := now.AddDate(0, 0, -h.Config.Keep.Runs); from.Before(kept) {
		from = kept
	}
	machine, _ := os.Hostname()
	queued, queueErr := tick.Queued(h.Disk, h.Dir) // before the claims: a slot that waits has one later
	answers, err := forecast.Audit(h.Slots, from, now.Add(-settled), machine, h.became)
	for i, a := range answers {
		if a.Outcome == forecast.Unaccounted && slices.Contains(queued, tick.Waiting{Job: a.Job, Slot: a.Slot.UTC()}) {
			answers[i].Outcome = forecast.Queued
		}
	}
	return answers, errors.Join(err, queueErr)
}

// ScheduledJob returns the id of a job by its name, also if only the records of its slots are left of it; "" for no name.
func (h Home) ScheduledJob(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	s, err := h.Jobs.Load()
	if err != nil {
		return "", err
	}
	j, unknown := s.Find(name)
	if unknown == nil {
		return j.ID, nil
	}
	history, err := h.Slots.History()
	if err != nil {
		return "", err
	}
	for id, list := range history {
		if id == name || list[len(list)-1].Name == name {
			return id, nil
		}
	}
	return "", unknown
}

// became returns the outcome of a claim that does not record it; "" if its run is in progress.
func (h Home) became(c slot.Claim) string {
	alive := c.Alive() // before the record is read, whose end it may write meanwhile
	r, err := h.Runs.Load(c.Run)
	switch {
	case err == nil:
		return string(h.Runs.CutOff(r).Outcome)
	case alive:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return forecast.Unaccounted // its process died before it had a record
	}
	return string(runlog.Interrupted)
}

// Runner returns the runner of the data directory. atShell says that a person typed the command: keys and addresses of engines may then
// also come from its environment.
func (h Home) Runner(atShell bool) *run.Runner {
	name, _ := os.Hostname() // "" if it is not known: this machine then runs no job that is bound to one
	return &run.Runner{
		Stores: h.Stores, Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, Random: h.app.Random,
		Host: run.Host{
			Name:     name,
			Process:  sync.OnceValue(func() runlog.Process { return runlog.Process{ID: process.Self(), Group: syscall.Getpgrp()} }),
			Commands: h.app.Commands, Serve: h.serve, Sealing: h.sealing(), Sleep: h.app.Sleep,
			Embeds: func() bool { token, err := h.DiscordToken(); return err == nil && token != "" },
			Secret: h.secretPaths(), UserHome: h.app.userHome(), Env: h.ProgramEnv(),
		},
		Settings: run.Settings{
			Engine: h.Config.Engine, Model: h.defaultModel, Fallback: h.Config.Fallback, Models: h.models, CompactAt: h.Config.CompactAt, Quiet: h.Config.Quiet, Claim: h.Config.Claim,
			Names: h.Config.Names, Main: h.Config.Chat, Channel: h.Config.Channels,
		},
		SetNames: h.SetNames,
		Outbox:   h.Post(),
		Engines:  h.engines(atShell),
		Archive:  archive{h},
	}
}

// Firer returns what fires the jobs of the data directory.
func (h Home) Firer() fire.Firer { return fire.New(h.Runner(false)) }

// Turns returns what takes the turns that people ask for. atShell is as for Runner.
func (h Home) Turns(atShell bool) turn.Turns { return turn.New(h.Runner(atShell)) }

// sealing returns the configuration of seals. TMPDIR is that of this process.
func (h Home) sealing() run.Sealing {
	s := run.Sealing{Mode: h.Config.Seal, Check: seal.Check, Temp: "/tmp"}
	if h.app.Kernel != nil {
		s.Check = h.app.Kernel
	}
	if dir, _ := h.app.Lookup("TMPDIR"); filepath.IsAbs(dir) {
		s.Temp = dir
	}
	caches, _ := h.app.Lookup("XDG_CACHE_HOME")
	for _, base := range []string{filepath.Join(h.app.userHome(), ".cache"), caches} {
		if filepath.IsAbs(base) {
			s.Cache = filepath.Join(base, "ollim")
		}
	}
	if self, err := os.Executable(); err == nil {
		s.Self = self
	}
	return s
}

// ProgramEnv returns the environment of gates, of commands in skills and of the native engine's: that of all children, with the
// data directory, without the way to secrets.
func (h Home) ProgramEnv() []string {
	env := slices.DeleteFunc(h.childEnv(), func(kv string) bool { return strings.HasPrefix(kv, "CREDENTIALS_DIRECTORY=") })
	return append(env, h.location()...)
}

// location returns the variables that name the directory and the settings to an ollim that this process starts.
func (h Home) location() []string {
	env := []string{"OLLIM_DATA_DIR=" + string(h.Dir), "OLLIM_CONFIG=" + h.app.ConfigFile(h.Dir)}
	if token, _ := h.app.Lookup(discordVariable); token != "" {
		env = append(env, queueVariable)
	}
	return env
}

// childEnv returns the environment of all commands that are started: what the configuration says, and HOME, PATH and TZ of this process
// where it does not say (an ollim in a run must count the same days). Other variables of cron or of a shell are not passed on.
func (h Home) childEnv() []string {
	env := []string{}
	for _, name := range []string{"HOME", "PATH", "XDG_CONFIG_HOME", "TZ", "CREDENTIALS_DIRECTORY"} {
		if value, ok := h.app.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, h.Config.Env...)
}
