package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/ui"
)

func checkSchedule(answer string) error {
	switch answer {
	case "", noAnswer, forCrontab, forSystemd:
		return nil
	}
	return fmt.Errorf("%q: write %s, %s or %s", answer, forCrontab, forSystemd, noAnswer)
}

func (s *setup) scheduleGiven() bool { return s.o.schedule != "" }

// scheduleMissing reports whether no scheduler has the present entries. Something else may run ollim tick.
func (s *setup) scheduleMissing(ctx context.Context) (bool, error) {
	found, err := s.scheduler(ctx)
	seen, _ := tick.Seen(s.dir)
	return err == nil && found == "" && s.d.Now().Sub(seen) > tick.Quiet, err
}

// scheduler names the scheduler that has the present entries, "" if none has.
func (s *setup) scheduler(ctx context.Context) (string, error) {
	for _, name := range []string{forCrontab, forSystemd, forSystemd + " --system"} {
		found, err := s.d.installedEntries(ctx, name)
		if err == nil && found.Installed && found.Changes == 0 {
			return name, nil
		}
	}
	return "", ctx.Err()
}

// untilScheduled says what must be done before routines fire: nothing if ollim tick was seen, or will be started by what is installed.
func (d *deps) untilScheduled(ctx context.Context, h app.Home) string {
	seen, _ := tick.Seen(h.Dir)
	if d.Now().Sub(seen) <= tick.Quiet {
		return ""
	}
	for _, name := range []string{forCrontab, forSystemd} {
		if found, err := d.installedEntries(ctx, name); err == nil && found.Installed {
			return ""
		}
	}
	return ", once you have installed the schedule: `ollim schedule install crontab`"
}

func (s *setup) askSchedule(ctx context.Context, a *interview) (err error) {
	set, err := s.h.Jobs.Load()
	if err != nil {
		return err
	}
	standard := noAnswer
	if there := s.schedulers(); len(there) > 0 && !a.yes && slices.ContainsFunc(set.Jobs, func(j job.Job) bool { return j.Enabled }) {
		standard = there[0]
	}
	a.say("Routines and reminders fire when cron or systemd runs `ollim tick` each minute.")
	s.o.schedule, err = a.value(ctx, "Scheduler: crontab, systemd or none", standard, checkSchedule)
	return err
}

// schedulers lists the schedulers of this machine.
func (s *setup) schedulers() (there []string) {
	path, _ := s.d.Lookup("PATH")
	for name, program := range map[string]string{forCrontab: "crontab", forSystemd: "systemctl"} {
		_, err := process.LookPath(program, []string{"PATH=" + path})
		if err == nil && (name == forCrontab || exists("/run/systemd/system")) {
			there = append(there, name)
		}
	}
	slices.Sort(there)
	return there
}

// installSchedule installs the entries, and says which lines a crontab gets.
func (s *setup) installSchedule(ctx context.Context) error {
	if s.o.schedule == noAnswer {
		return nil
	}
	o := unitOptions{target: s.o.schedule}
	return s.retry(ctx, "schedule install "+s.o.schedule, func() error {
		o.target = s.o.schedule
		var changes []lineChange
		e, err := s.d.entries(o)
		if err == nil && o.target == forCrontab {
			changes, _, _, err = s.d.crontabChanges(ctx, e)
		}
		if err == nil {
			err = runScheduleInstall(ctx, s.d, o)
		}
		if err != nil {
			return o.fault(err)
		}
		for _, c := range changes {
			if c.What == installer.Add && !strings.HasPrefix(c.Line, "#") {
				s.d.note("crontab: %s", c.Line)
			}
		}
		if runs, known := process.Runs("/proc", "cron", "crond", "fcron", "dcron"); o.target == forCrontab && known && !runs {
			s.d.note("no cron daemon is running; to start it: sudo service cron start")
		}
		return nil
	}, func(error) (bool, error) {
		s.o.schedule = noAnswer
		err := s.askSchedule(ctx, s.asks)
		return err == nil && s.o.schedule != noAnswer, err
	})
}

// shownFires is how many fires the last screen lists.
const shownFires = 4

// finish says what there is now: one line if nothing was missing, else one screen.
func (s *setup) finish(ctx context.Context) {
	if s.d.quiet || !isTerminal(s.d.Stderr) || s.h.Stores == nil {
		return
	}
	if s.done == 0 && len(s.made) == 0 {
		s.d.note("%s: nothing is missing", s.dir)
		return
	}
	set, err := s.h.Jobs.Load()
	if err != nil {
		return // ollim check says it
	}
	s.d.note("")
	now, fires := s.d.Now(), 0
	for f := range forecast.Upcoming(set.Jobs, s.h.Config.Zone, now) {
		if fires++; fires > shownFires {
			break
		}
		s.line("fires", f.Job.Name()+", "+clock(f.At.In(s.h.Config.Zone)))
	}
	if fires == 0 {
		s.line("fires", "nothing yet: ollim routine add NAME --cron \"0 9 * * *\" PROMPT")
	}
	s.costs(set.Jobs)
	messages := cmp.Or(s.deliveryName(), "wait for your next ollim chat")
	s.line("messages", ui.Shorten(messages, ui.Columns(s.d.Stderr)-15))
	if name, _ := s.scheduler(ctx); name != "" {
		s.line("schedule", "in "+name)
	} else {
		s.line("schedule", "not installed: ollim schedule install crontab")
	}
	s.next()
}

// costs says what fires cost at most, and on average so far.
func (s *setup) costs(jobs []job.Job) {
	if s.without() {
		s.line("engine", "none: ollim config set engine native")
		return
	}
	limits := s.h.Spend.Limits
	s.line("engine", s.h.Config.Engine)
	s.line("costs", fmt.Sprintf("at most $%.2f a fire and $%.2f a day (ollim config list)", limits.PerRun, limits.PerDay))
	past := overview.Pasts(s.h, s.d.Now(), jobs)
	for _, j := range jobs {
		if p, known := past[j.ID]; known {
			s.line("", fmt.Sprintf("a fire of %s has cost $%.2f", j.Name(), p.Cost))
		}
	}
}

func (s *setup) next() {
	edit, why := "ollim help routine add", "write a routine"
	if s.sample != "" {
		edit, why = "ollim routine edit "+s.sample, "change what it does and when"
	}
	s.line("next", fmt.Sprintf("%-31s talk to the agent", "ollim chat"))
	s.line("", fmt.Sprintf("%-31s what runs, failed and fires next", "ollim status"))
	s.line("", fmt.Sprintf("%-31s %s", edit, why))
	s.line("", fmt.Sprintf("%-31s %s", "ollim help tutorial", "the first hour, step by step"))
}

func (s *setup) line(what, text string) { s.d.note("%-9s %s", what, printable(text)) }
