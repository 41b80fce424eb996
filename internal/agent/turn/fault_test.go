package turn

import (
	"errors"
	"os"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/channel"
)

// TestFaults: what cannot be read or made is an error of each turn that needs it, and of no other.
func TestFaults(t *testing.T) {
	t.Parallel()
	owner := Options{Owner: true}
	calls := map[string]func(r *run.Runner) error{
		"Ask": func(r *run.Runner) error {
			_, err := New(r).Ask(t.Context(), Question{Text: "Why?", Discard: true}, owner)
			return err
		},
		"Asked": func(r *run.Runner) error {
			_, err := Replies{r}.Asked(t.Context(), "none")
			return err
		},
		"Channel": func(r *run.Runner) error {
			name, err := channel.NewName("mine", "1")
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(r).ChatChannel(t.Context(), name, Message{Text: "hi"}, owner)
			return err
		},
		"Chat": func(r *run.Runner) error {
			_, err := Queue{r}.Chat(t.Context(), Message{Text: "hi"}, owner)
			return err
		},
		"Exit": func(r *run.Runner) error {
			_, err := Forks{r}.Exit(t.Context())
			return err
		},
		"Idle": func(r *run.Runner) error {
			_, _, err := Forks{r}.Idle(t.Context())
			return err
		},
		"Nudge": func(r *run.Runner) error {
			_, err := Forks{r}.Nudge(t.Context(), owner)
			return err
		},
		"Report": func(r *run.Runner) error {
			_, err := Forks{r}.Report(t.Context(), owner)
			return err
		},
		"Save": func(r *run.Runner) error {
			_, err := Forks{r}.Save(t.Context())
			return err
		},
	}
	instead := func(path string) error { return errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)) }
	for name, c := range map[string]struct {
		fault func(r *run.Runner) error
		fail  []string
	}{
		"none": {func(*run.Runner) error { return nil }, nil},
		"no ids": {func(r *run.Runner) error {
			r.Random = iotest.ErrReader(errors.New("no random numbers"))
			return nil
		}, []string{"Ask", "Channel", "Chat", "Report"}},
		"the fork cannot be read":         {func(r *run.Runner) error { return instead(r.Home.Fork()) }, []string{"Chat", "Exit", "Idle", "Nudge", "Report", "Save"}},
		"the main session cannot be read": {func(r *run.Runner) error { return instead(r.Home.MainSession()) }, []string{"Chat", "Exit", "Idle", "Nudge", "Report", "Save"}},
		"the messages cannot be read":     {func(r *run.Runner) error { return instead(r.Home.State("fork_messages.json")) }, []string{"Asked"}},
		"tool-policy.yaml is wrong": {
			func(r *run.Runner) error {
				return os.WriteFile(r.Home.Path("tool-policy.yaml"), []byte("none: 1\n"), 0o600)
			}, []string{"Chat", "Report"},
		},
		"CHANNEL.md cannot be read": {func(r *run.Runner) error { return instead(r.Home.Path("CHANNEL.md")) }, []string{"Channel"}},
	} {
		failed := runtest.Failing(calls, func() *run.Runner {
			r := runtest.New(t, runtest.Answering{Asked: new([]engine.Request)})
			if _, err := (Forks{r}).Start(t.Context(), "tea", owner); err != nil {
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
