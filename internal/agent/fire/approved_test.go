package fire

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/job"
)

// A widened job without approval is refused; approvals that cannot be read are an error.
func TestApprovedFailsClosed(t *testing.T) {
	t.Parallel()
	dir := paths.Dir(t.TempDir())
	f := &run.Runner{Home: dir, Stores: state.Of(dir, store.Disk{Now: time.Now}, time.UTC)}
	plain, widened, unfit := job.New(job.Routine), job.New(job.Routine), job.New(job.Routine)
	plain.ID, widened.ID, unfit.ID = "plain", "widened", "unfit"
	widened.AllowedTools, unfit.Gate = []string{"WebSearch"}, "folder"
	if err := os.MkdirAll(dir.Gate("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (Rules{f}).approved(plain); err != nil {
		t.Errorf("plain: %v", err)
	}
	for _, j := range []job.Job{widened, unfit} {
		if err := (Rules{f}).approved(j); !errors.Is(err, run.ErrRefused) {
			t.Errorf("%s: %v, want refused", j.ID, err)
		}
	}
	if err := os.MkdirAll(dir.Approvals(), 0o700); err != nil { // a folder cannot be read as a file
		t.Fatal(err)
	}
	if err := (Rules{f}).approved(widened); err == nil || errors.Is(err, run.ErrRefused) {
		t.Errorf("approvals that cannot be read: %v", err)
	}
}
