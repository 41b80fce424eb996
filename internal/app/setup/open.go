package setup

import (
	"context"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
)

// Open is what a set-up began and left open. Whether the other steps were done shows in their results.
type Open struct {
	Question bool   `json:"question,omitempty"` // the engine was set, and no test question was answered or declined
	Untested bool   `json:"untested,omitempty"` // no test question was answered since the engine was set
	Failure  string `json:"failure,omitempty"`  // why the last test question failed
	Fire     string `json:"fire,omitempty"`     // the first routine, which was neither fired nor left for later
}

// Open returns what an earlier set-up has left open.
func (s *Setup) Open() Open {
	o, _, _ := store.PeekJSON[Open](s.Dir.State(openFile)) // a file that cannot be read leaves nothing open
	return o
}

// SetOpen keeps what is left open.
func (s *Setup) SetOpen(o Open) error {
	switch o {
	case s.Open():
		return nil
	case Open{}:
		return store.Remove(s.Dir.State(openFile))
	}
	return store.WriteJSON(s.Dir.State(openFile), o, store.Synced)
}

const openFile = "setup.json"

// NoEngine reports whether no engine is configured.
func (s *Setup) NoEngine() bool { return s.Home.Config.Engine == "" }

// KeyMissing reports whether the engine needs a key or a login and has none.
func (s *Setup) KeyMissing(ctx context.Context) (bool, error) {
	_, missing, err := s.Home.EngineKey(ctx)
	return missing, err
}

// answers reports whether there is an engine that has the key it needs.
func (s *Setup) answers(ctx context.Context) (bool, error) {
	if s.NoEngine() {
		return false, nil
	}
	missing, err := s.KeyMissing(ctx)
	return !missing, err
}

// QuestionMissing reports whether the engine was set and not tested, or its last test failed.
func (s *Setup) QuestionMissing(ctx context.Context) (bool, error) {
	switch o := s.Open(); {
	case o.Failure != "":
		return !s.NoEngine(), nil
	case !o.Question:
		return false, nil
	}
	return s.answers(ctx)
}

// FireMissing reports whether the first routine was made and not fired, and the engine does not wait for a test.
func (s *Setup) FireMissing(ctx context.Context) (bool, error) {
	if o := s.Open(); o.Fire == "" || o.Question || !store.Exists(s.routinePath(o.Fire)) {
		return false, nil
	}
	return s.answers(ctx)
}

// DeliveryMissing reports whether no message of the present delivery has been seen.
func (s *Setup) DeliveryMissing(context.Context) (bool, error) {
	return !s.Home.Post().Configured() || !s.Home.DeliverySeen(), nil
}

// RoutineMissing reports whether there is no job of any kind.
func (s *Setup) RoutineMissing(context.Context) (bool, error) {
	set, err := s.Home.Jobs.Load()
	return err == nil && len(set.Jobs)+len(set.Faults) == 0, err
}

// ScheduleMissing reports whether no scheduler has the present entries and nothing else runs ollim tick.
func (s *Setup) ScheduleMissing(ctx context.Context) (bool, error) {
	_, coming, _ := tick.Coming(s.Dir, s.App.Now())
	return s.Doctor.Scheduler(ctx, true) == "" && !coming, ctx.Err()
}

// Scheduler returns the scheduler that this machine has: crontab, systemd or None.
func (s *Setup) Scheduler() string {
	path, _ := s.App.Lookup("PATH")
	if _, err := process.LookPath("crontab", []string{"PATH=" + path}); err == nil {
		return "crontab"
	} else if store.Exists("/run/systemd/system") {
		return "systemd"
	}
	return None
}
