package fire

import (
	"errors"
	"os"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
)

// TestFaults: what cannot be read or made is an error of each call that needs it, and of no other.
func TestFaults(t *testing.T) {
	t.Parallel()
	calls := map[string]func(r *run.Runner) error{
		"Fire": func(r *run.Runner) error {
			_, err := New(r).Fire(t.Context(), "a", Options{})
			return err
		},
		"Preview": func(r *run.Runner) error {
			plan, err := New(r).Preview(t.Context(), "a", Options{})
			if err == nil && plan.Refused != "" {
				err = errors.New(plan.Refused)
			}
			return err
		},
		"Held": func(r *run.Runner) error {
			_, err := Pauses{r}.Held()
			return err
		},
		"End": func(r *run.Runner) error { return Pauses{r}.End(t.Context()) },
		"Miss": func(r *run.Runner) error {
			_, _, err := Slots{r}.Miss(t.Context(), "a", r.Disk.Now().Truncate(time.Hour), "")
			return err
		},
		"CallOwed": func(r *run.Runner) error { return Monitors{r}.CallOwed(t.Context()) },
		"Start": func(r *run.Runner) error {
			_, err := Entries{r}.Start(t.Context(), nil)
			return err
		},
	}
	file := func(path string) error {
		return errors.Join(os.RemoveAll(path), store.Replace(path, []byte("none: 1\n")))
	}
	over := []byte(`{"since":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","hold_reminders":true}`)
	for name, c := range map[string]struct {
		fault func(r *run.Runner) error
		fail  []string
	}{
		"none": {func(*run.Runner) error { return nil }, nil},
		"no ids": {func(r *run.Runner) error {
			r.Random = iotest.ErrReader(errors.New("no random numbers"))
			return nil
		}, []string{"Fire", "Preview"}},
		"the routines cannot be read": {func(r *run.Runner) error { return file(r.Home.Path("routines")) }, []string{"End", "Fire", "Held", "Preview"}},
		"the ledger cannot be read":   {func(r *run.Runner) error { return file(r.Home.State("ledger")) }, []string{"CallOwed", "Fire", "Preview"}},
		"tool-policy.yaml is wrong":   {func(r *run.Runner) error { return file(r.Home.Path("tool-policy.yaml")) }, []string{"Fire", "Preview"}},
		"the slots cannot be read":    {func(r *run.Runner) error { return file(r.Home.State("slots")) }, []string{"Miss"}},
		"the inbox cannot be read":    {func(r *run.Runner) error { return file(r.Home.State("inbox")) }, []string{"Start"}},
		"it is paused":                {func(r *run.Runner) error { return r.Spend.Pause(t.Context(), time.Time{}) }, []string{"Fire", "Preview"}},
	} {
		failed := runtest.Failing(calls, func() *run.Runner {
			r := runtest.New(t, runtest.Answering{Asked: new([]engine.Request)})
			r.Disk.Warn = func(string) {}
			if err := store.Replace(r.Home.State("pause.json"), over); err != nil {
				t.Fatal(err)
			}
			if err := c.fault(r); err != nil {
				t.Fatal(err)
			}
			return r
		})
		if !slices.Equal(failed, c.fail) {
			t.Errorf("%s: %q fail, want %q", name, failed, c.fail)
		}
	}
}
