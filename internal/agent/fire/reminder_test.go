package fire

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// reminderFile writes a reminder that is due, and reads it.
func reminderFile(t *testing.T, f *run.Runner, keys string) job.Job {
	t.Helper()
	path := f.Home.Path("reminders", "r.md")
	text := "---\nid: r\nrun-at: " + time.Now().Add(-time.Minute).UTC().Format(time.RFC3339) + "\n" + keys + "\n---\nCall mum.\n"
	if err := store.Replace(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
	files, err := f.Jobs.Load()
	if err != nil {
		t.Fatal(err)
	}
	j, err := files.Find("r")
	if err != nil {
		t.Fatal(err, files.Faults)
	}
	return j
}

// TestCancelledJustBefore: a reminder that is cancelled while its fire begins is not delivered any more.
func TestCancelledJustBefore(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"plain: true", "isolated: true"} {
		f := runtest.New(t, runtest.Plays(nil))
		j := reminderFile(t, f, keys)
		if err := f.Jobs.Cancel(j); err != nil {
			t.Fatal(err)
		}
		id, err := runlog.NewID(time.Now(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Run(t.Context(), (&fire{r: f, run: id, job: j}).spec()); !errors.Is(err, job.ErrGone) {
			t.Errorf("%s: %v", keys, err)
		}
		if pending, err := f.Updates.Peek(t.Context()); err != nil || len(pending) > 0 {
			t.Errorf("%s: %+v, %v", keys, pending, err)
		}
	}
}

// TestGiveBack: a reminder that was claimed and not tried is moved back, and no other file is overwritten.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	f := runtest.New(t, runtest.Plays(nil))
	j := reminderFile(t, f, "")
	claimed, err := f.Jobs.Claim(j)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Jobs.GiveBack(claimed, j.Path); err != nil {
		t.Fatal(err)
	}
	if claimed, err = f.Jobs.Claim(j); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(j.Path, []byte("another one")); err != nil {
		t.Fatal(err)
	}
	if err := f.Jobs.GiveBack(claimed, j.Path); err == nil {
		t.Error("another reminder has lost its place")
	}
	if _, err := f.Jobs.Claim(claimed); err != nil {
		t.Error(err)
	}
}

func TestUnavailable(t *testing.T) {
	if got := unavailable("Take the pizza out."); got != "(agent unavailable) Take the pizza out." {
		t.Errorf("got %q", got)
	}
}
