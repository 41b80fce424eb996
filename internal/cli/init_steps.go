package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// setup is a run of init. A terminal and the flags walk the same steps; each step can be repeated, so that init goes on where an
// earlier one was ended.
type setup struct {
	d      *deps
	o      *initOptions
	asks   *interview // nil: nothing is asked
	dir    paths.Dir
	h      app.Home // from the step in which the files are made
	fresh  bool     // there were no settings
	made   []string // files
	done   int      // steps that changed or tried something
	failed failures // of steps without which the others make sense

	secret string // the key that was given
	sample string // the name of the routine that was made
	mute   bool   // the engine did not answer the test question
}

// step is one part of a set-up.
type step struct {
	given   func(*setup) bool                               // reports whether a flag says what to do
	missing func(*setup, context.Context) (bool, error)     // reports whether it is to be asked about
	ask     func(*setup, context.Context, *interview) error // fills in what the flags say otherwise
	apply   func(*setup, context.Context) error             // does what the flags or the answers say
}

// steps lists the steps in their order. Nothing is made before the step of the files.
func steps() []step {
	return []step{
		{(*setup).zoneGiven, (*setup).zoneMissing, (*setup).askZone, (*setup).setZone},
		{(*setup).engineGiven, (*setup).engineMissing, (*setup).askEngine, (*setup).setEngine},
		{apply: (*setup).makeFiles},
		{(*setup).keyGiven, (*setup).keyMissing, (*setup).askKey, (*setup).setKey},
		{(*setup).questionGiven, (*setup).questionMissing, (*setup).askQuestion, (*setup).putQuestion},
		{(*setup).deliveryGiven, (*setup).deliveryMissing, (*setup).askDelivery, (*setup).setDelivery},
		{(*setup).routineGiven, (*setup).routineMissing, (*setup).askRoutine, (*setup).addRoutine},
		{(*setup).scheduleGiven, (*setup).scheduleMissing, (*setup).askSchedule, (*setup).installSchedule},
		{(*setup).fireGiven, (*setup).fireMissing, (*setup).askFire, (*setup).fireRoutine},
	}
}

func (s *setup) walk(ctx context.Context) error {
	for _, step := range steps() {
		if step.given == nil {
			if err := step.apply(s, ctx); err != nil {
				return err
			}
			continue
		}
		if !step.given(s) {
			if s.asks == nil {
				continue
			}
			missing, err := step.missing(s, ctx)
			if err == nil && missing {
				s.asks.say("")
				err = step.ask(s, ctx, s.asks)
			}
			if err != nil {
				return err
			}
			if !missing {
				continue
			}
		}
		s.done++
		if err := step.apply(s, ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeFiles makes the directories and the files that are not there, and opens the data directory. Settings that cannot be used stay as
// they are; the next steps then have an error if there is anything to do.
func (s *setup) makeFiles(ctx context.Context) error {
	settings, err := s.o.settings(s.d)
	if err != nil {
		return err
	}
	for _, folder := range s.dir.Folders() {
		if err := store.MkdirAll(folder); err != nil {
			return err
		}
	}
	if s.made, err = s.d.makeFiles(s.dir, settings); err != nil {
		return err
	}
	if len(s.made) > 0 {
		s.d.note("created %s in %s", strings.Join(s.made, ", "), s.dir)
	}
	if s.asks != nil {
		s.asks.fresh = false
	}
	if s.h, err = s.d.Home(); as[*app.ConfigFault](err) && s.asks == nil {
		return nil
	}
	if err == nil && s.fresh {
		if untested := s.h.UntestedClaude(ctx); untested != "" {
			s.d.note("%s", untested)
		}
	}
	return err
}

// change sets settings of a directory that was there before. Those of a new one are in the file that is made.
func (s *setup) change(ctx context.Context, settings map[string]string) error {
	if s.fresh {
		return nil
	}
	h, err := s.d.Home()
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if err == nil && settings[key] != "" {
			err = h.Set(ctx, key, settings[key])
		}
	}
	return err
}

// refresh reads the settings again.
func (s *setup) refresh() (err error) {
	s.h, err = s.d.Home()
	return err
}

// without reports whether there is no engine, so that nothing can be asked of it.
func (s *setup) without() bool { return s.h.Config.Engine == "" }

func (s *setup) zoneGiven() bool { return s.o.timezone != "" }

func (s *setup) zoneMissing(context.Context) (bool, error) { return s.fresh, nil }

func (s *setup) setZone(ctx context.Context) error {
	return s.change(ctx, map[string]string{"timezone": s.o.timezone})
}

// retry runs work until it succeeds or the owner wants no other try. Without questions its error is collected, and the next step follows.
func (s *setup) retry(ctx context.Context, what string, work func() error, again func(error) (bool, error)) error {
	for {
		err := work()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if s.asks == nil || s.asks.yes {
			s.failed.add(what, err)
			return nil
		}
		s.d.fail("init", what, err)
		if more, err := again(err); err != nil || !more {
			return err
		}
	}
}

// errNotSeen is the error of a test message that was sent and did not arrive.
var errNotSeen = errors.New("the test message did not arrive")
