package seal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// TestResources: starts of all ends, many at once, leave no descriptor, goroutine or process of this one behind.
func TestResources(t *testing.T) { testResources(t) }

func TestResourcesOfUser(t *testing.T) {
	if testkit.Unprivileged(t) {
		testResources(t)
	}
}

func testResources(t *testing.T) {
	p := newPlace(t)
	fds, goroutines := descriptors(t), runtime.NumGoroutine()
	s := New(func() (Rules, error) { return p.Rules, nil }, nil)
	ways := []func() error{
		func() error { return finish(s, p.shell("exit 3")) },
		func() error { return finish(s, p.shell("sleep 1000 >/dev/null 2>&1 & exit")) },
		func() error { return finish(s, p.shell("kill -KILL $$")) },
		func() error { return finish(s, exec.Command("/no/such/program")) },
		func() error { return finish(s.With(Rules{Canary: "/etc/passwd"}), p.shell("exit")) },
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := ways[i%len(ways)](); (err == nil) != (i%len(ways) < 3) {
				t.Errorf("way %d: %v", i%len(ways), err)
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, "end of all goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := descriptors(t); now > fds {
		t.Errorf("%d descriptors, before %d", now, fds)
	}
	if children, err := os.ReadFile("/proc/self/task/" + fmt.Sprint(os.Getpid()) + "/children"); len(children) > 0 {
		t.Errorf("children %s, %v", children, err)
	}
}

// finish runs a program to its end, whatever its status.
func finish(s *Seal, cmd *exec.Cmd) error {
	err := s.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if errors.As(err, new(*exec.ExitError)) {
		return nil
	}
	return err
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestApart: what listens in one of many runs of this process is closed to the others.
func TestApart(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3", "/usr/bin:/bin")
	var all sync.WaitGroup
	for range 8 {
		p := newPlace(t)
		s, other := p.seal(t), p.seal(t)
		all.Go(func() {
			const listen = `import socket,sys; s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(); print(s.getsockname()[1], flush=True); s.accept()`
			out, in, err := os.Pipe()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = out.Close() }()
			server := p.shell("exec python3 -c '" + listen + "'")
			server.Stdout = in
			if err := s.Start(server); err != nil {
				t.Error(err)
				return
			}
			_ = in.Close()
			port := make([]byte, 8)
			n, err := out.Read(port)
			if err != nil {
				t.Error(err)
				return
			}
			dial := fmt.Sprintf(`python3 -c 'import socket; socket.create_connection(("127.0.0.1",%s)); print("connected")' 2>&1`, strings.TrimSpace(string(port[:n])))
			if got := output(t, other, p.shell(dial)); !strings.Contains(got, "PermissionError") {
				t.Errorf("another run: %s", got)
			}
			if got := output(t, s, p.shell(dial)); !strings.Contains(got, "connected") {
				t.Errorf("the same run: %s", got)
			}
			_ = server.Wait()
		})
	}
	all.Wait()
}
