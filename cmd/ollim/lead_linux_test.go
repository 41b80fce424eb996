package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestOneBranchLeads: of forked routines that are due at once one asks first, and the others when its answer begins, so that the service reads
// main's messages from its cache for them. A branch that follows soon after waits for nobody.
func TestOneBranchLeads(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.ok("chat", "hello")
	const routines = 4
	for i := range routines {
		c.ok("routine", "add", fmt.Sprint("r", i), "--id", fmt.Sprint("r", i), "--cron", "@yearly", "--background", "--thinking", "main", "Look.")
	}
	main := len(api.Requests())
	hold := make(chan struct{})
	var mu sync.Mutex
	asked := 0
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		mu.Lock()
		defer mu.Unlock()
		reply := anthropicapi.Reply{Text: "ok"}
		if asked++; asked == 1 {
			reply.Hold = hold
		}
		return reply
	})
	var fires []*exec.Cmd
	for i := range routines {
		fire := c.cmd("fire", fmt.Sprint("r", i))
		if err := fire.Start(); err != nil {
			t.Fatal(err)
		}
		fires = append(fires, fire)
	}
	if !await(func() bool { return c.waitForThePrefix(fires) == routines-1 && len(api.Requests()) > main }) {
		t.Errorf("%d branches wait for the first", c.waitForThePrefix(fires))
	}
	if n := len(api.Requests()) - main; n != 1 {
		t.Errorf("%d branches have asked before the first answer began", n)
	}
	close(hold)
	for _, fire := range fires {
		if err := fire.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n := len(api.Requests()) - main; n != routines {
		t.Errorf("%d branches have asked in all", n)
	}
	if cached, _ := filepath.Glob(filepath.Join(c.data, "state/cache/prefix-*.json")); len(cached) != 1 {
		t.Errorf("cached beginnings: %q", cached)
	}
}

// waitForThePrefix returns how many processes wait for the lock of a beginning.
func (c *command) waitForThePrefix(fires []*exec.Cmd) (n int) {
	c.t.Helper()
	locks, _ := filepath.Glob(filepath.Join(c.data, "state/locks/prefix-*.lock"))
	for _, fire := range fires {
		for _, lock := range locks {
			if waitsForLock(c.t, fire.Process.Pid, lock) {
				n++
			}
		}
	}
	return n
}
