package turn

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/testkit"
)

// leave lets a process keep the lock of a conversation that this one has taken and given up.
func leave(t *testing.T, r *run.Runner, key string) {
	t.Helper()
	file, err := os.Create(r.Home.ConversationLock(key))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testkit.Program(t, "sleep", "coreutils"), "6000")
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// TestLockOfALeftover: nothing waits for a process that an engine has left running with the lock of a conversation. A message that nobody
// waits for stays in the queue until that process has ended.
func TestLockOfALeftover(t *testing.T) {
	t.Parallel()
	for _, key := range []string{session.MainKey, session.ForkKey} {
		a := &agent{}
		r := runtest.New(t, a)
		abandon(t, r, Message{Text: "hi"}, Options{})
		inFork(t, r)
		if key == session.MainKey {
			if _, err := (Forks{r}).Exit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		leave(t, r, key)
		var left *runlog.Leftover
		if err := (Queue{r}).AnswerAbandoned(t.Context(), Options{}); !errors.As(err, &left) || len(a.asked) > 0 {
			t.Errorf("%s: %v, asked %d times", key, err, len(a.asked))
		}
		if texts := waiting(t, r); !slices.Equal(texts, []string{"hi"}) {
			t.Errorf("%s: %q wait", key, texts)
		}
		if key == session.ForkKey {
			if _, err := (Forks{r}).Exit(t.Context()); !errors.As(err, &left) || forkOf(t, r) == nil {
				t.Errorf("%v, fork %+v", err, forkOf(t, r))
			}
		}
	}
}
