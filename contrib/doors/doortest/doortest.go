// Package doortest has what the tests of the doors of contrib share, such as ollim's test of the protocol.
package doortest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/door"
)

// Patience bounds the wait for an event that must come. It is no measure of speed: a busy machine is slow.
const Patience = 5 * time.Minute

// leastCases is how many cases the protocol has at least.
const leastCases = 40

// Conform runs what `ollim door test` runs on a door. It sends to a channel, "" is that of the owner's direct messages. It returns how many
// cases the door does, without those of what it says that it cannot do.
func Conform(t *testing.T, cmd *exec.Cmd, channel string) (done int) {
	t.Helper()
	call := process.Call{Argv: append([]string{cmd.Path}, cmd.Args[1:]...), Env: cmd.Environ(), Dir: cmd.Dir, Tied: true}
	p := door.Program{
		Name: "test", Files: filepath.Join(t.TempDir(), "files"), Start: func() (*process.Peer, error) { return process.Open(call) },
	}
	all := 0
	err := door.Conform(t.Context(), p, channel, false, func(c door.Case) {
		all++
		switch {
		case c.Err != nil:
			t.Errorf("%s: %v", c.Name, c.Err)
		case c.Lacks == "":
			done++
		}
	})
	if err != nil || all < leastCases {
		t.Errorf("%d cases: %v", all, err)
	}
	return done
}

// Equal fails the test if two values print differently.
func Equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Refused starts a door that cannot log in, and fails the test unless it ends with a status and says a text.
func Refused(t *testing.T, cmd *exec.Cmd, status int, text string) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintln(in, `{"type":"start","version":1,"name":"test","files":"/"}`)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != status || !strings.Contains(string(out), text) {
		t.Errorf("status %d: %s", got, out)
	}
}
