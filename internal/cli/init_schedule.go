package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/app/setup"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/ui"
)

func checkSchedule(answer string) error {
	switch answer {
	case "", setup.None, forCrontab, forSystemd:
		return nil
	}
	return fmt.Errorf("%q: write %s, %s or %s", answer, forCrontab, forSystemd, setup.None)
}

func (w *initWalk) askSchedule(ctx context.Context, a *interview) (err error) {
	set, err := w.Home.Jobs.Load()
	if err != nil {
		return err
	}
	standard := w.Scheduler()
	if a.yes || !slices.ContainsFunc(set.Jobs, func(j job.Job) bool { return j.Enabled }) {
		standard = setup.None
	}
	a.say("Routines and reminders fire when cron or systemd runs `ollim tick` each minute.")
	w.o.schedule, err = a.value(ctx, "Scheduler: crontab, systemd or none", standard, checkSchedule)
	return err
}

// installSchedule installs the entries, and prints the lines that a crontab gets. A failure is reported with its remedy, and the next step
// follows.
func (w *initWalk) installSchedule(ctx context.Context) error {
	if w.o.schedule == setup.None {
		return nil
	}
	o := unitOptions{target: w.o.schedule, untold: true}
	var changes []lineChange
	e, err := w.d.entries(o)
	if err == nil && o.target == forCrontab {
		changes, _, _, err = w.d.crontabChanges(ctx, e)
	}
	if err == nil {
		err = runScheduleInstall(ctx, w.d, o)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.failed.add("schedule install "+w.o.schedule, o.fault(err))
		return nil
	}
	for _, c := range changes {
		if c.What == installer.Add && !strings.HasPrefix(c.Line, "#") {
			w.d.tell("crontab:", c.Line)
		}
	}
	return nil
}

// shownFires is how many fires the last screen lists.
const shownFires = 4

// finish prints the state of the installation: one line if nothing was missing, else one screen.
func (w *initWalk) finish(ctx context.Context) {
	if w.d.quiet || !isTerminal(w.d.Stderr) || w.Home.Stores == nil {
		return
	}
	if w.done == 0 {
		w.d.note("%s: nothing is missing", w.Dir)
		return
	}
	set, err := w.Home.Jobs.Load()
	if err != nil {
		return // ollim check reports it
	}
	w.d.note("")
	now, fires := w.d.Now(), 0
	for f := range forecast.Upcoming(set.Jobs, w.Home.Config.Zone, now) {
		if fires++; fires > shownFires {
			break
		}
		w.line("fires", f.Job.Name()+", "+clock(f.At.In(w.Home.Config.Zone)))
	}
	if fires == 0 {
		w.line("fires", "nothing yet:", `ollim routine add NAME --cron "0 9 * * *" PROMPT`)
	}
	w.costs(ctx)
	messages := cmp.Or(w.DeliveryName(), "wait for your next ollim chat")
	w.line("messages", ui.Shorten(messages, ui.Columns(w.d.Stderr)-15))
	switch name, start := w.Doctor.Scheduler(ctx, true), w.App.CronStopped(); {
	case name == "":
		w.line("schedule", "not installed:", "ollim schedule install crontab")
	case name == forCrontab && start != "":
		w.line("schedule", "in crontab, but no cron daemon is running:", start)
	default:
		w.line("schedule", "in "+name)
	}
	w.next(set.Jobs)
}

// costs prints which engine there is, whether it is known to work, and what fires cost at most.
func (w *initWalk) costs(ctx context.Context) {
	if w.NoEngine() {
		w.line("engine", "none:", "ollim config set engine native")
		return
	}
	w.engine(ctx)
	if w.scripted() {
		w.line("costs", "nothing: a file plays the model")
		return
	}
	limits := w.Home.Spend.Limits
	w.line("costs", fmt.Sprintf("at most $%.2f a fire and $%.2f a day (ollim config list)", limits.PerRun, limits.PerDay))
}

// engine names the engine, and says why it is not known to work.
func (w *initWalk) engine(ctx context.Context) {
	name, open := w.Home.Config.Engine, w.Open()
	missing := false
	if open.Untested {
		missing, _ = w.KeyMissing(ctx) // with invalid settings the line says that the engine was not tested
	}
	switch {
	case open.Failure != "":
		w.line("engine", ui.Shorten(name+", but its test question failed: "+open.Failure, 2*ui.Columns(w.d.Stderr)-20)) // two lines
	case missing:
		w.line("engine", name+", but it has no key:", "ollim init")
	case open.Untested:
		w.line("engine", name+", not tested:", "ollim init --test-engine")
	default:
		w.line("engine", name)
	}
}

func (w *initWalk) next(jobs []job.Job) {
	edit, why := "ollim help routine add", "write a routine"
	if len(jobs) > 0 {
		edit, why = "ollim routine edit "+jobs[0].Name(), "change what it does and when"
	}
	w.line("next", fmt.Sprintf("%-31s talk to the agent", "ollim chat"))
	w.line("", fmt.Sprintf("%-31s what runs, failed and fires next", "ollim status"))
	w.line("", fmt.Sprintf("%-31s %s", edit, why))
	w.line("", fmt.Sprintf("%-31s %s", "ollim help tutorial", "the first hour, step by step"))
}

// line writes a line of the last screen, which may end with a command.
func (w *initWalk) line(what, text string, command ...string) {
	if text = fmt.Sprintf("%-9s %s", what, text); len(command) > 0 {
		w.d.tell(text, command[0])
		return
	}
	w.d.note("%s", printable(text))
}
