// Package testkit is for tests only. It runs the tests of a package and copies of their program in other roles, as an
// unprivileged user too, and finds or replaces parts of the machine: programs, terminals, memory.
package testkit

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
)

// roleVar is the variable with the role of a copy of the test program.
const roleVar = "OLLIM_TEST_ROLE"

// Main is for TestMain: it runs the tests of a package or, in a process made by Child, a role. A role gets the arguments of Child;
// its error ends the process with status 1. Main does not return.
//
// The tests run in memory where InMemory can do that. Tests with package rapid make 25 checks of each property unless CI=true or the
// command line says otherwise.
func Main(m *testing.M, roles map[string]func(args []string) error) {
	role, playing := os.LookupEnv(roleVar)
	if !playing {
		Overlap()
		if flag.Lookup("rapid.checks") != nil {
			_ = flag.Set("rapid.checks", strconv.Itoa(Full(100, 25)))
		}
		Run(m)
		return
	}
	play := roles[role]
	if play == nil {
		play = func([]string) error { return fmt.Errorf("no role %q", role) }
	}
	if err := play(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Overlap is for TestMain: more parallel tests run at once than there are processors, since many only wait. The command line may say
// otherwise.
func Overlap() { _ = flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+4)) }

// Child prepares a copy of the test program that runs a role of Main. Its standard error is that of the test.
func Child(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(cmd.Environ(), roleVar+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}
