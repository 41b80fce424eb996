package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// TestSupport: the settings, the job and the kernel decide together whether a run is sealed, refused, or neither, and the record says why.
func TestSupport(t *testing.T) {
	t.Parallel()
	const auto = "auto"
	no := errors.New("no Landlock")
	for i, c := range []struct {
		mode    string
		on      bool
		fault   error
		abi     int
		why     string
		refused bool
	}{
		{auto, false, nil, 7, "", false}, {auto, false, no, 0, "no Landlock", false}, {auto, true, no, 0, "", true}, {auto, true, nil, 7, "", false},
		{config.SealOff, false, nil, 0, "seal: off", false}, {config.SealOff, true, nil, 7, "", false}, {config.SealOff, true, no, 0, "", true},
		{config.SealOn, false, nil, 7, "", false}, {config.SealOn, false, no, 0, "", true},
	} {
		s := Sealing{Mode: c.mode, Check: func() (int, error) {
			if c.fault != nil {
				return 0, c.fault
			}
			return 7, nil
		}}
		abi, why, err := s.Support(c.on)
		if abi != c.abi || why != c.why || errors.Is(err, ErrRefused) != c.refused || errors.Is(err, c.fault) != (c.refused || c.fault == nil && err == nil) {
			t.Errorf("%d: %d, %q, %v", i, abi, why, err)
		}
	}
}

// TestSealsForOthers: a seal outside a run, too, is refused where nothing can be sealed or its canary cannot be made.
func TestSealsForOthers(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(r *Runner) (*seal.Seal, error){
		"offline": func(r *Runner) (*seal.Seal, error) { _, s, err := Offline(r, "x"); return s, err },
		"private": func(r *Runner) (*seal.Seal, error) { return Private(r, r.Host.Sealing.Temp, true) },
	} {
		for fault, prep := range map[string]func(r *Runner) error{
			"none":   func(*Runner) error { return nil },
			"kernel": func(r *Runner) error { r.Host.Sealing.Check = func() (int, error) { return 0, ErrSilent }; return nil },
			"canary": func(r *Runner) error { r.Home += "/none\x00"; return nil },
			"place":  func(r *Runner) error { r.Host.Sealing.Temp = "/dev/null/none"; return nil },
		} {
			r, _ := bench(t, runlog.Record{})
			r.Host.Sealing = Sealing{Mode: config.SealOff, Temp: t.TempDir(), Check: func() (int, error) { return 7, nil }}
			if err := prep(r); err != nil {
				t.Fatal(err)
			}
			s, err := do(r)
			if fails := fault == "kernel" || fault == "canary" || fault == "place" && name == "offline"; (err != nil) != fails || errors.Is(err, ErrRefused) != (fault == "kernel") {
				t.Errorf("%s, fault of the %s: %v, %v", name, fault, s, err)
			}
		}
	}
}

// TestClear: the temporary files of a run are removed, and those of another are not; so are those of a run that ended or died, by Sweep.
func TestClear(t *testing.T) {
	t.Parallel()
	r, run := bench(t, runlog.Record{})
	s := Sealing{Temp: t.TempDir()}
	mine, other := s.temporary(run.ID), s.temporary("20260302T080000.000Z-aaaaaa")
	if err := errors.Join(os.MkdirAll(filepath.Join(mine, "x"), 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	held, err := r.Runs.Hold(run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context(), r.Runs, time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("those of a living run: %v", err)
	}
	held.Leave()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Clear(ended, run.ID); err == nil {
		t.Error("removing files that takes too long is no error")
	}
	if err := s.Clear(t.Context(), run.ID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mine); err == nil {
		t.Error("those of the run are left")
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("those of another: %v", err)
	}
}

// TestLater: a run that is taken back says which limit it met, and can be refused for it.
func TestLater(t *testing.T) {
	t.Parallel()
	l := &Later{&spend.Limit{Key: "per-day", Allowed: 5}}
	if l.Error() != l.Limit.Error() || !errors.Is(l.Refusal(), ErrRefused) || !errors.As(l.Refusal(), new(*spend.Limit)) {
		t.Errorf("%v, %v", l, l.Refusal())
	}
}

// TestRemedyOfALongSession: a run that reached its limit in a session that is long is told to shorten it.
func TestRemedyOfALongSession(t *testing.T) {
	t.Parallel()
	for context, want := range map[int]bool{shortSession: false, shortSession + 1: true} {
		for _, session := range []string{"", "main"} {
			r, run := bench(t, runlog.Record{Engine: engine.Native, Subject: runlog.Subject{Kind: string(job.Routine), Name: "a"}})
			if err := run.Event(t.Context(), runlog.Event{Type: runlog.Session, Session: "s", Context: context}); err != nil {
				t.Fatal(err)
			}
			err := r.accountOf(run, Spec{}).remedy(session, engine.ErrMaxCost)
			with := engine.ErrMaxCost.Error() + "; to shorten the session: ollim session compact main Keep what matters; to allow more: ollim config set spend.per-run 2.00"
			if got := strings.Contains(err.Error(), "shorten"); got != (want && session != "") || got && err.Error() != with || !errors.Is(err, engine.ErrMaxCost) {
				t.Errorf("%d tokens, %q: %v", context, session, err)
			}
		}
	}
}
