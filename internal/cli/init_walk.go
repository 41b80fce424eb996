package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/setup"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/config"
)

// initWalk is a run of init. A terminal and the flags walk the same steps; each step can be repeated, so that init goes on where an
// earlier one was ended.
type initWalk struct {
	*setup.Setup

	d      *deps
	o      *initOptions
	asks   *interview // nil: nothing is asked
	done   int        // steps that made, changed or tried something
	failed failures   // failures of steps that no other step needs
	secret string     // the key that was given
}

// step is one part of a set-up.
type step struct {
	given   bool                                    // a flag says what to do
	missing func(context.Context) (bool, error)     // reports whether to ask about the step
	ask     func(context.Context, *interview) error // fills in what the flags say otherwise
	apply   func(context.Context) error             // does what the flags or the answers say
}

// walk makes the files, and then takes the steps in their order. Nothing is made before the zone and the engine are known.
func (w *initWalk) walk(ctx context.Context) error {
	if err := w.settings(ctx); err != nil || w.Home.Stores == nil {
		return err
	}
	o := w.o
	for _, s := range []step{
		{o.keyGiven() || o.Service.URL != "" && w.Serves(o.Answers) == engine.ClaudeCode, w.KeyMissing, w.askKey, w.setKey},
		{o.given("test-engine"), w.QuestionMissing, w.askQuestion, w.putQuestion},
		{o.delivery != "" || o.given("test-delivery"), w.DeliveryMissing, w.askDelivery, w.setDelivery},
		{o.routine != "", w.RoutineMissing, w.askRoutine, w.addRoutine},
		{o.schedule != "", w.ScheduleMissing, w.askSchedule, w.installSchedule},
		{o.given("fire"), w.FireMissing, w.askFire, w.fireRoutine},
	} {
		if !s.given {
			missing, err := w.asks != nil, error(nil)
			if missing {
				missing, err = s.missing(ctx)
			}
			if err == nil && missing {
				w.asks.say("")
				err = s.ask(ctx, w.asks)
			}
			if err != nil {
				return err
			}
			if !missing {
				continue
			}
		}
		w.done++
		if err := s.apply(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settings asks for the zone and the engine, and makes the files. If there is any flag, the zone of the system is not asked about.
func (w *initWalk) settings(ctx context.Context) error {
	o, flags, fresh := w.o, w.o.any(), w.Fresh
	if w.asks != nil && w.Fresh && !flags {
		w.asks.say("This sets up the engine, messages to you, the schedule and a first routine. Enter takes the answer in brackets. " +
			"Ctrl-C keeps what was done; run ollim init again to continue.\n")
		if err := w.askZone(ctx, w.asks); err != nil {
			return err
		}
	}
	asked := w.asks != nil && !o.engineGiven()
	if asked {
		c, err := w.App.Config()
		if asked = c.Engine == ""; err == nil && asked {
			w.asks.say("")
			err = w.askEngine(ctx, w.asks)
		}
		if err != nil {
			return err
		}
	}
	if err := w.make(ctx, flags); err != nil {
		return err
	}
	if o.Answers != (setup.Answers{}) {
		w.done++
	}
	if w.Home.Stores == nil || w.NoEngine() || !fresh && !asked && !o.engineGiven() {
		return nil
	}
	return w.leave(func(open *setup.Open) {
		open.Question = open.Question || asked || w.asks != nil && w.asks.yes && o.engineGiven() // flags alone ask no question
		open.Untested, open.Failure = true, ""
	})
}

// make makes the files and changes the settings. Settings that cannot be used stay as they are; that is an error if there is anything to do.
func (w *initWalk) make(ctx context.Context, flags bool) error {
	if !w.Fresh && w.o.engineGiven() && w.o.Engine != setup.None {
		h, err := w.d.Home()
		if about := w.Serves(w.o.Answers); err == nil && about != h.Config.Engine {
			err = w.d.announceCarry(ctx, h, about, w.asks == nil || w.asks.yes)
		}
		if err != nil {
			return err
		}
	}
	made, err := w.Make(ctx, w.o.Answers)
	if len(made) > 0 {
		w.done++
		w.d.note("created %s in %s", strings.Join(made, ", "), w.Dir)
	}
	if w.asks != nil {
		w.asks.fresh = false
	}
	if as[*app.ConfigFault](err) && w.asks == nil && !flags {
		return nil
	}
	if err == nil && w.Fresh {
		if untested := w.Home.UntestedClaude(ctx); untested != "" {
			w.d.note("%s", untested)
		}
	}
	w.Fresh = w.Fresh && err != nil
	return err
}

// leave changes what the next init finds open.
func (w *initWalk) leave(change func(*setup.Open)) error {
	open := w.Open()
	change(&open)
	return w.SetOpen(open)
}

func (w *initWalk) askZone(ctx context.Context, a *interview) (err error) {
	w.o.Zone, err = a.value(ctx, "Timezone", w.App.SystemZone(), func(answer string) error { return config.Check("timezone", setup.ZoneOf(answer)) })
	return err
}

// retry runs work until it succeeds or the owner wants no further attempt. If no questions are asked, its error is collected and the next
// step follows.
func (w *initWalk) retry(ctx context.Context, what string, work func() error, again func() (bool, error)) error {
	for {
		err := work()
		if err == nil || ctx.Err() != nil || as[*inputEnded](err) {
			return cmp.Or(ctx.Err(), err)
		}
		if w.asks == nil || w.asks.yes {
			w.failed.add(what, err)
			return nil
		}
		w.d.fail("init", what, err)
		if more, err := again(); err != nil || !more {
			return err
		}
	}
}

// errNotSeen is the error of a test message that was sent and did not arrive.
var errNotSeen = errors.New("the test message did not arrive")
