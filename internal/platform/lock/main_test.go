package lock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// roleVar makes a copy of the test program play a part: ROLE PATH.
const roleVar = "OLLIM_LOCK_TEST_ROLE"

func TestMain(m *testing.M) {
	role, path, played := strings.Cut(os.Getenv(roleVar), " ")
	if !played {
		os.Exit(m.Run())
	}
	if err := play(role, path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play says something on standard output when its part has begun, and ends with its standard input.
func play(role, path string) error {
	var err error
	switch role {
	case "hold":
		_, err = lock.Try(path)
	case "guard":
		_, err = lock.TryGuard(path)
	case "count":
		return count(path, 100)
	case "engine":
		fmt.Println("ready")
		time.Sleep(time.Hour)
		return nil
	case "wait":
		waiting, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { _, err := new(lock.Table).Wait(waiting, path); done <- err }()
		for n := 0; n == 0; { // until it has the file open
			n = len(openFiles(path))
		}
		fmt.Println("ready")
		return <-done
	case "parent", "parent-without":
		err = parent(role, path)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// openFiles are the descriptors of this process that are the file.
func openFiles(path string) (found []string) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if file, _ := os.Readlink(link); file == path {
			found = append(found, link)
		}
	}
	return found
}

// parent takes the guard and starts an engine, with or without it, whose process id it tells.
func parent(role, path string) error {
	guard, err := lock.TryGuard(path)
	if err != nil {
		return err
	}
	engine := exec.Command(os.Args[0])
	engine.Env = append(os.Environ(), roleVar+"=engine "+path)
	if role == "parent" {
		engine.ExtraFiles = []*os.File{guard.File()}
	}
	out, err := engine.StdoutPipe()
	if err != nil {
		return err
	}
	if err := engine.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return err
	}
	fmt.Println(engine.Process.Pid)
	return nil
}

// count adds one to the number in a file, many times, each time under the lock.
func count(path string, times int) error {
	for range times {
		held, err := new(lock.Table).Wait(context.Background(), path)
		if err != nil {
			return err
		}
		if err := addOne(path + ".number"); err != nil {
			return err
		}
		held.Release()
	}
	return nil
}

func addOne(file string) error {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	n, _ := strconv.Atoi(string(text))
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600)
}

// actor is a process that plays a part.
type actor struct {
	*exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

// start starts a part; its process is gone when the test ends.
func start(t *testing.T, role, path string) *actor {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role+" "+path)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &actor{cmd, stdin, bufio.NewReader(out)}
}

// line is the next that the part says.
func (a *actor) line(t *testing.T) string {
	t.Helper()
	line, err := a.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v after %q", err, line)
	}
	return strings.TrimSpace(line)
}

// engine is the process id of the engine that a parent tells; it is gone when the test ends.
func (a *actor) engine(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(a.line(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	a.line(t)
	return pid
}

// kill ends the process as kill -9 does.
func (a *actor) kill(t *testing.T) {
	t.Helper()
	if err := a.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.Wait()
}

// eventually waits for what the kernel or another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

func lockPath(t *testing.T) string { return filepath.Join(t.TempDir(), "locks", "x.lock") }

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
