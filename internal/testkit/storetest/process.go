package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// dirVar is the variable with the data directory of a process that adds items.
const dirVar = "OLLIM_STORETEST_DIR"

// addUntilTheEnd adds items until standard input ends, and writes a line to descriptor 3 for each item added.
func (s Store) addUntilTheEnd(dir string) {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(done)
	}()
	warn := func(text string) { fail("warned: " + text) }
	reported := os.NewFile(3, "told")
	for i := 0; ; i++ {
		select {
		case <-done:
			os.Exit(0)
		default:
		}
		if err := s.Add(context.Background(), dir, warn, fmt.Sprintf("%d-%d", os.Getpid(), i)); err != nil {
			fail(err.Error())
		}
		if _, err := fmt.Fprintln(reported, i); err != nil {
			fail(err.Error())
		}
	}
}

func fail(text string) {
	_, _ = os.Stderr.WriteString(text + "\n")
	os.Exit(1)
}

// adder is a process that adds items.
type adder struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	reported *bufio.Reader
	close    func() error
	added    int
}

// start runs this test again in a process that adds items.
func start(t *testing.T, dir string) *adder {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(self, "-test.run=^"+test+"$")
	cmd.Env = append(cmd.Environ(), dirVar+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	cmd.ExtraFiles = []*os.File{write}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &adder{cmd: cmd, stdin: stdin, reported: bufio.NewReader(read), close: read.Close}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return a
}

// until waits until the process has added at least n items.
func (a *adder) until(t *testing.T, n int) {
	t.Helper()
	for a.added < n {
		if _, err := a.reported.ReadString('\n'); err != nil {
			t.Fatalf("after %d items: %v, %v", a.added, err, a.cmd.Wait())
		}
		a.added++
	}
}

// stop requests the process to end after the current item.
func (a *adder) stop(t *testing.T) {
	t.Helper()
	if err := a.stdin.Close(); err != nil {
		t.Error(err)
	}
}

// end waits for the end of the process and returns how many items it has added for certain. The exit status of a
// process that was not killed must be 0.
func (a *adder) end(t *testing.T) int {
	t.Helper()
	for {
		if line, _ := a.reported.ReadString('\n'); !strings.HasSuffix(line, "\n") {
			break
		}
		a.added++
	}
	_ = a.close()
	if err := a.cmd.Wait(); err != nil && a.cmd.ProcessState.ExitCode() != -1 { // -1: ended by a signal
		t.Error(err)
	}
	return a.added
}
