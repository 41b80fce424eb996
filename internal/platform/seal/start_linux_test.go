package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/testkit"
)

// TestAllowed: what the rules allow works.
func TestAllowed(t *testing.T) {
	p := newPlace(t)
	other := filepath.Join(p.Outside, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Rules.Write = append(p.Rules.Write, other)
	s := p.seal(t)
	for name, script := range map[string]string{
		"its own directory":      `echo a > f && mkdir d && mv f d/f && ln -s f d/l && ln d/f d/h && truncate -s 1 d/h && cat d/l && rm -r d`,
		"another folder":         `echo a > moved && mv moved "$outside"/other/ && rm "$outside"/other/moved`,
		"the null device":        `echo gone > /dev/null && cat < /dev/null`,
		"its own streams":        `echo a > /dev/stdout && cat /dev/stdin`,
		"its own process":        `cat /proc/self/environ /proc/$$/maps && kill -0 $$; sleep 1000 & kill $!`,
		"a program of its own":   `cp /bin/true t && ./t && printf '#!/bin/sh\n' > s && chmod 700 s && ./s`,
		"a pipe and a named one": `mkfifo p; echo a > p & cat p | cat`,
	} {
		out := output(t, s, p.shell(`set -e; mkdir "`+name+`"; cd "`+name+`"; `+script+`; echo done`))
		if !strings.HasSuffix(out, "done\n") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestRules: rules are read at each start, and a rule opens nothing but what it names.
func TestRules(t *testing.T) {
	p := newPlace(t)
	s := p.seal(t)
	one, two := filepath.Join(p.Outside, "one"), filepath.Join(p.Outside, "two")
	with := s.With(Rules{Read: []string{one, filepath.Join(p.Outside, "link"), filepath.Join(p.Outside, "link", "outside"), filepath.Join(p.Outside, "none")}})
	if err := os.Symlink("/", filepath.Join(p.Outside, "link")); err != nil {
		t.Fatal(err)
	}
	read := func(s *Seal) string { return output(t, s, p.shell(`cat "$outside"/one; cat "$outside"/secret`)) }
	write(t, one, "old\n")
	if got := read(with); !strings.HasPrefix(got, "old\n") || !strings.Contains(got, "secret: Permission denied") {
		t.Errorf("got %s", got)
	}
	if got := read(s); !strings.Contains(got, "one: Permission denied") {
		t.Errorf("without the rule: %s", got)
	}
	write(t, two, "new\n")
	if err := os.Rename(two, one); err != nil {
		t.Fatal(err)
	}
	if got := read(with); !strings.HasPrefix(got, "new\n") {
		t.Errorf("after a file was replaced: %s", got)
	}
	if got := output(t, with, p.shell(`echo more >> "$outside"/one`)); !strings.Contains(got, "ermission denied") {
		t.Errorf("a rule for reading: %s", got)
	}
}

// TestIdleThread: a thread starts the next program only if nothing is left of the last one, and the rules and their files are the same.
func TestIdleThread(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.Inside, "file")
	p.Rules.Read = append(p.Rules.Read, file)
	s := p.seal(t)
	after := func(s *Seal, script string) *thread {
		output(t, s, p.shell(script))
		waitFor(t, "an idle thread", func() bool { return idle(s) != nil })
		return idle(s)
	}
	first := after(s, "exit")
	if after(s, "exit") != first {
		t.Error("a second thread was made")
	}
	write(t, file, "")
	second := after(s, "exit")
	if second == first {
		t.Error("the rules are those of a file that was missing")
	}
	write(t, file+"2", "")
	if err := os.Rename(file+"2", file); err != nil {
		t.Fatal(err)
	}
	third := after(s, "exit")
	if third == second {
		t.Error("the rules are those of a file that was replaced")
	}
	fourth := after(s.With(Rules{Sockets: []string{file}}), "exit")
	if fourth == third {
		t.Error("the rules are those of another seal")
	}
	output(t, s.With(Rules{Sockets: []string{file}}), p.shell("sleep 1000 >/dev/null 2>&1 &"))
	waitFor(t, "the thread to wait for the end of the run", func() bool { return idle(s) == nil })
}

// idle returns the thread that would start the next program; nil if there is none.
func idle(s *Seal) *thread {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.idle
}

// TestInherited: a program gets no descriptor that this process has inherited.
func TestInherited(t *testing.T) {
	p := newPlace(t)
	secret, err := os.Open(filepath.Join(p.Outside, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = secret.Close() }()
	if _, err := unix.FcntlInt(secret.Fd(), unix.F_SETFD, 0); err != nil { // as those are that a parent passes
		t.Fatal(err)
	}
	if got := output(t, p.seal(t), p.shell("ls -l /proc/$$/fd")); strings.Contains(got, "secret") || !strings.Contains(got, " 1 ->") {
		t.Errorf("the program has %s", got)
	}
}

// leaving returns scripts that leave processes behind. Each writes a line to descriptor 3, which these processes keep open.
func leaving() map[string]string {
	return map[string]string{
		"a background process":  `sh -c 'echo ready >&3; sleep 1000' &`,
		"a session of its own":  `setsid sh -c '(env -i /bin/sh -c "echo ready >&3; sleep 1000" &)' &`,
		"one that ignores all":  `(trap '' HUP INT TERM; echo ready >&3; while :; do sleep 1000; done) &`,
		"one that has stopped":  `sh -c 'echo ready >&3; kill -STOP $$' &`,
		"many that start more":  `for i in 1 2 3 4 5 6 7 8; do (echo ready >&3; while :; do (sleep 0.01 & ) ; sleep 0.01; done) & done`,
		"a program still there": `echo ready >&3; exec sleep 1000`,
	}
}

// TestDescendants: what a program leaves behind runs until Close, and not longer.
func TestDescendants(t *testing.T) {
	for name, script := range leaving() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			s := p.seal(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			cmd := p.shell(script)
			cmd.ExtraFiles = []*os.File{w}
			if err := s.Start(cmd); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			if name != "a program still there" {
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
				t.Fatalf("it ended with the program: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if cmd.ProcessState == nil {
				_ = cmd.Wait() // else a child is left
			}
			waitForEnd(t, r)
		})
	}
}

// TestDescendantsOfLowNumbers is TestDescendants where the numbers of processes begin again at the lowest a hundred times in a second,
// as they do on any machine after the highest: a process that a program leaves behind then has a lower number than the program.
func TestDescendantsOfLowNumbers(t *testing.T) {
	t.Parallel()
	unshare := testkit.Program(t, "unshare", "util-linux")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 || exec.Command(unshare, "--pid", "--fork", "--mount-proc", "true").Run() != nil {
		testkit.Missing(t, "no PID namespace can be made: run the test as root")
	}
	const again = `for i in $(seq 400); do sleep 1000 & done
last=$(($(cat /proc/sys/kernel/pid_max) - 11))
while :; do echo $last >/proc/sys/kernel/ns_last_pid; sleep 0.01; done &
"$0" -test.run='^TestDescendants$' -test.count="$1"`
	rounds := strconv.Itoa(testkit.Full(60, 4))
	out, err := exec.CommandContext(t.Context(), unshare, "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", again, self, rounds).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// waitForEnd waits until no process has the other end of a pipe.
func waitForEnd(t *testing.T, r *os.File) {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("a process survived: %v", err)
	}
}

// TestRefused: a start whose trial fails starts nothing.
func TestRefused(t *testing.T) {
	p := newPlace(t)
	made := filepath.Join(p.Inside, "made")
	for name, change := range map[string]func(*Rules){
		"the canary opens":     func(r *Rules) { r.Read = append(r.Read, r.Canary) },
		"below a rule":         func(r *Rules) { r.Read = append(r.Read, "/") },
		"the canary is not":    func(r *Rules) { r.Canary += "-none" },
		"no canary":            func(r *Rules) { r.Canary = "" },
		"the canary is a link": func(r *Rules) { r.Canary = filepath.Join(p.Inside, "null") },
	} {
		if name == "the canary is a link" {
			if err := os.Symlink(os.DevNull, filepath.Join(p.Inside, "null")); err != nil {
				t.Fatal(err)
			}
		}
		q := p
		change(&q.Rules)
		err := q.seal(t).Start(q.shell("touch made"))
		if !errors.Is(err, ErrNotSealed) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(made); err == nil {
			t.Errorf("%s: the program was started", name)
		}
	}
	s := p.seal(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(p.shell("touch made")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	missing := errors.New("missing")
	s = New(func() (Rules, error) { return Rules{}, missing }, nil)
	if err := errors.Join(s.Start(p.shell("touch made")), s.Close()); !errors.Is(err, missing) {
		t.Errorf("without rules: %v", err)
	}
}

// TestKernel: where the kernel lacks Landlock, or only claims that it seals, nothing is started. It is run as a user, because a
// fault here would kill all processes.
func TestKernel(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	for name, c := range map[string]struct {
		errno syscall.Errno
		call  uint32
		want  string
	}{
		"no Landlock":      {unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET, "check: cannot seal: the kernel has no Landlock, or it is off; ABI 6 (Linux 6.12) is needed"},
		"off at boot":      {unix.EOPNOTSUPP, unix.SYS_LANDLOCK_CREATE_RULESET, "check: cannot seal: the kernel has no Landlock, or it is off; ABI 6 (Linux 6.12) is needed"},
		"an old one":       {0, unix.SYS_LANDLOCK_CREATE_RULESET, "check: cannot seal: the kernel has Landlock ABI 0; ABI 6 (Linux 6.12) is needed"},
		"no rules":         {unix.ENOMEM, unix.SYS_LANDLOCK_ADD_RULE, "start: the seal does not hold: landlock_add_rule"},
		"not for this one": {unix.E2BIG, unix.SYS_LANDLOCK_RESTRICT_SELF, "start: the seal does not hold: landlock_restrict_self: argument list too long"},
		"a claim":          {0, unix.SYS_LANDLOCK_RESTRICT_SELF, "a sealed program could open "},
		"no processes":     {unix.EAGAIN, unix.SYS_OPENAT2, "start: the seal does not hold: open"},
	} {
		p := newPlace(t)
		arg, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := testkit.Child(t, "start", string(arg))
		cmd.Stdout = &out
		testkit.StartRefusing(t, cmd, c.errno, c.call)
		if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %s, %v", name, out.String(), err)
		}
		if _, err := os.Stat(filepath.Join(p.Inside, "made")); err == nil {
			t.Errorf("%s: the program was started", name)
		}
	}
}

// startWithout is the process of TestKernel.
func startWithout(args []string) error {
	var p place
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	s := New(func() (Rules, error) { return p.Rules, nil }, nil)
	if _, err := Check(); err != nil {
		fmt.Printf("check: %v\n", err)
		if again := s.Start(p.shell("touch made")); !errors.Is(again, ErrUnsupported) {
			return fmt.Errorf("Start returned %w", again)
		}
		return s.Close()
	}
	fmt.Printf("start: %v\n", s.Start(p.shell("touch made")))
	return s.Close()
}

// TestKilled: a sealed program, and whatever it has left behind, ends with the process that started it, even by SIGKILL.
func TestKilled(t *testing.T) { testKilled(t) }

// TestKilledOfUser is the same as a user without privileges.
func TestKilledOfUser(t *testing.T) {
	if testkit.Unprivileged(t) {
		testKilled(t)
	}
}

func testKilled(t *testing.T) {
	for name, script := range leaving() {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			arg, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			cmd := testkit.Child(t, "leave", string(arg), script)
			cmd.Stderr, cmd.ExtraFiles = nil, []*os.File{w} // a pipe that a survivor has would be waited for
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			waitForEnd(t, r)
		})
	}
}

// leave is the process of TestKilled. It never ends by itself.
func leave(args []string) error {
	var p place
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	s := New(func() (Rules, error) { return p.Rules, nil }, nil)
	cmd := p.shell(args[1])
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "pipe")}
	if err := s.Start(cmd); err != nil {
		return err
	}
	_ = cmd.ExtraFiles[0].Close()
	_ = cmd.Wait()
	time.Sleep(time.Hour)
	return nil
}

// TestKeeper: a sealed program cannot end, stop or read the process that ends it if this one is killed. Without that process nothing more is
// started.
func TestKeeper(t *testing.T) {
	p := newPlace(t)
	s := p.seal(t)
	output(t, s, p.shell("exit"))
	waitFor(t, "an idle thread", func() bool { return idle(s) != nil })
	keeper := idle(s).keeper
	const attempts = `for s in KILL STOP TERM; do kill -$s $keeper && echo sent $s; done
		kill -KILL -1 # succeeds if it reaches nobody
		for f in environ maps mem fd/0; do (exec </proc/$keeper/$f) && echo read $f; (exec >>/proc/$keeper/$f) && echo opened $f; done
		echo done`
	cmd := p.shell(attempts)
	cmd.Env = append(cmd.Env, fmt.Sprintf("keeper=%d", keeper.cmd.Process.Pid))
	out := output(t, s, cmd)
	if strings.Contains(out, "sent") || strings.Contains(out, "read ") || strings.Contains(out, "opened") || !strings.HasSuffix(out, "done\n") {
		t.Errorf("a sealed program: %s", out)
	}
	waitFor(t, "an idle thread", func() bool { return idle(s) != nil })
	if idle(s).keeper != keeper {
		t.Error("another thread was made")
	}
	if err := keeper.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the keeper", func() bool { return poll(0, keeper.watch) })
	if err := s.Start(p.shell("touch made")); !errors.Is(err, ErrNotSealed) {
		t.Errorf("without a keeper: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.Inside, "made")); err == nil {
		t.Error("without a keeper a program was started")
	}
}

// TestThreads: sealed threads end, and the main thread is never one of them; the others of this process keep their rights.
func TestThreads(t *testing.T) {
	p := newPlace(t)
	s := p.seal(t)
	before := restricted(t) // threads of testkit.StartRefusing; the main thread stays if it was one
	var starts sync.WaitGroup
	for range 8 {
		starts.Go(func() {
			for range 10 {
				output(t, s, p.shell("exit"))
				if _, err := os.ReadFile(p.Rules.Canary); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starts.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, "the end of the sealed threads", func() bool { // it comes after that of their goroutines
		now := restricted(t)
		maps.DeleteFunc(now, func(thread string, _ bool) bool { return before[thread] })
		if now[fmt.Sprint(os.Getpid())] {
			t.Fatal("the main thread is sealed")
		}
		return len(now) == 0
	})
}

// restricted returns the threads of this process that cannot gain privileges.
func restricted(t *testing.T) map[string]bool {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range threads {
		if status, _ := os.ReadFile(path); strings.Contains(string(status), "NoNewPrivs:\t1") {
			found[filepath.Base(filepath.Dir(path))] = true
		}
	}
	return found
}

func BenchmarkStart(b *testing.B) {
	p := newPlace(b)
	run := func(start func(*exec.Cmd) error) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command("/bin/true")
				if err := start(cmd); err != nil {
					b.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("free", run((*exec.Cmd).Start))
	b.Run("sealed", run(p.seal(b).Start))
	b.Run("sealed, the first of a run", func(b *testing.B) {
		for b.Loop() {
			s := New(func() (Rules, error) { return p.Rules, nil }, nil)
			if err := finish(s, exec.Command("/bin/true")); err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for len(p.Rules.Read) < 100 {
		path := filepath.Join(p.Outside, fmt.Sprint("file", len(p.Rules.Read)))
		write(b, path, "")
		p.Rules.Read = append(p.Rules.Read, path)
	}
	b.Run("sealed by 100 rules", run(p.seal(b).Start))
}
