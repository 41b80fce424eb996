package lock_test

import (
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
)

// Who holds a lock is the engine that inherited it, but not while its taker is there, nor a process that only waits for it.
func TestInherited(t *testing.T) {
	path := lockPath(t)
	if got := lock.Inherited(path); len(got) > 0 {
		t.Errorf("before anybody: %v", got)
	}
	parent := start(t, "parent", path)
	engine := parent.engine(t)
	if got := lock.Inherited(path); len(got) > 0 {
		t.Errorf("while the taker holds it: %v", got)
	}
	parent.kill(t)
	waiter := start(t, "wait", path)
	waiter.line(t)
	if got := lock.Inherited(path); !slices.Equal(got, []int{engine}) {
		t.Errorf("after the taker's death: %v, want the engine, %d", got, engine)
	}
}
