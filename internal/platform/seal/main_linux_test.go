package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, map[string]func(args []string) error{
		"attempt": attempt,
		"start":   startWithout,
		"leave":   leave,
		"reach":   reachAll,
		"slow":    slow,
		"dial":    dialEach,
		"measure": measure,
	})
}

// place is where the programs of a test work.
type place struct {
	Inside  string // a directory that is writable for sealed programs
	Outside string // one that is not
	Victim  int    // a process outside
	Socket  string // an abstract socket outside
	Rules   Rules
}

// newPlace returns a place with a file "secret" outside, and rules for a shell and this test program.
func newPlace(t testing.TB) place {
	t.Helper()
	if _, err := Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later, with landlock among the modules of the lsm= option", err)
	}
	dir, err := os.MkdirTemp("", "") // a short path, since there are sockets below it
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := place{Inside: filepath.Join(dir, "inside"), Outside: filepath.Join(dir, "outside")}
	for _, d := range []string{p.Inside, p.Outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(p.Outside, "secret"), "secret")
	p.Rules = Rules{
		Read: []string{self, "/proc"}, Write: []string{p.Inside, os.DevNull},
		Canary: filepath.Join(p.Outside, "secret"),
	}
	for _, system := range []string{"/bin", "/etc", "/lib", "/lib64", "/usr"} {
		if real, err := filepath.EvalSymlinks(system); err == nil {
			p.Rules.Read = append(p.Rules.Read, real)
		}
	}
	return p
}

func (p place) seal(t testing.TB) *Seal {
	t.Helper()
	s := New(func() (Rules, error) { return p.Rules, nil }, nil)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shell is a script that a sealed program may run.
func (p place) shell(script string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir, cmd.Env = p.Inside, []string{"PATH=/usr/bin:/bin", "outside=" + p.Outside}
	return cmd
}

// output runs a sealed program and returns what it wrote.
func output(t testing.TB, s *Seal, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := s.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String()
}

func write(t testing.TB, path, data string) {
	t.Helper()
	if err := testkit.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// attempt makes every attempt, and prints one line for each: its name and error.
func attempt(args []string) error {
	var p place
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	for name, try := range attempts() {
		err := try(p)
		if err == nil {
			fmt.Printf("%s\t\n", name)
		} else {
			fmt.Printf("%s\t%s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
	return nil
}

// results makes the attempts by a start of a program.
func results(t *testing.T, p place, start func(*exec.Cmd) error) map[string]string {
	t.Helper()
	arg, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := testkit.Child(t, "attempt", string(arg))
	cmd.Dir, cmd.Stdout = p.Inside, &out
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	found := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, result, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		found[name] = result
	}
	return found
}
