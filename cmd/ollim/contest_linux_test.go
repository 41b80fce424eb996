package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// TestSlotsBetweenNamespaces: processes in two PID, mount and UTS namespaces, such as two pods, fire the same slots at the same moments. Each
// slot has one run, and none is skipped because the claim of the other process looks like that of a dead one.
func TestSlotsBetweenNamespaces(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "contested slots between two PID namespaces")
	unshare := testkit.Program(t, "unshare", "util-linux")
	strace := testkit.Program(t, "strace", "strace") // it makes each lock take 2 ms, as over a network
	options := []string{"--pid", "--fork", "--mount-proc", "--uts"}
	if out, err := exec.Command(unshare, append(options, "true")...).CombinedOutput(); err != nil {
		testkit.Missing(t, "no namespaces can be made here: %s: run the test as root", strings.TrimSpace(string(out)))
	}
	c := newCommand(t)
	c.write("play.yaml", "turns:\n  - - text: well\n")
	c.write("routines/each.md", "---\nid: each\ncron: \"* * * * *\"\nbackground: true\nengine: script:play.yaml\n---\nGo.\n")
	slots := 200
	first := time.Now().UTC().Truncate(time.Minute).Add(time.Duration(-slots) * time.Minute)
	for i := range slots {
		at := first.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		var both sync.WaitGroup
		start := make(chan struct{})
		var ready sync.WaitGroup
		for before := range 2 { // processes, so that the numbers differ
			cmd := c.cmd()
			cmd.Path, cmd.Args = unshare, slices.Concat([]string{unshare}, options,
				[]string{"sh", "-c", strings.Repeat("(:); ", 5*before) + `echo ready; read start; exec "$@"`, "sh", strace, "-f", "-o", "/dev/null", "-e", "trace=flock",
					"-e", "inject=flock:delay_enter=2000", c.path, "fire", "--scheduled", "--slot", at, "each"})
			ready.Add(1)
			both.Go(func() {
				if out, err := startTogether(cmd, ready.Done, start); err != nil {
					t.Errorf("%s: %v: %s", at, err, out)
				}
			})
		}
		ready.Wait()
		close(start)
		both.Wait()
	}
	runs := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(c.ok("run", "list", "--json", "-n", "0")), "\n") {
		var r struct {
			Outcome   string
			Scheduled string `json:"scheduled_for"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if runs[r.Scheduled]++; r.Outcome != "ok" {
			t.Errorf("%s: %s", r.Scheduled, r.Outcome)
		}
	}
	if len(runs) != slots {
		t.Errorf("%d of %d slots have a run", len(runs), slots)
	}
	for at, n := range runs {
		if n != 1 {
			t.Errorf("%s: %d runs", at, n)
		}
	}
}

// startTogether starts a command that says that it is ready, and lets it go on at start.
func startTogether(cmd *exec.Cmd, ready func(), start <-chan struct{}) (out string, err error) {
	ready = sync.OnceFunc(ready)
	defer ready()
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	var wrong strings.Builder
	cmd.Stderr = &wrong
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(from).ReadString('\n')
	ready()
	<-start
	_, writeErr := io.WriteString(in, "go\n")
	return line + wrong.String(), errors.Join(err, writeErr, cmd.Wait())
}
