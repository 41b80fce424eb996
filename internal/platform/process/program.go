package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/platform/seal"
)

const (
	// StderrLimit is how many bytes at the end of standard error are kept.
	StderrLimit = 2 << 10

	drain   = time.Second // wait for the last output of a program that has exited, if another process keeps its output open
	deathly = 2 * drain   // wait for a killed program: one of another user, or one that waits for a dead disk, does not end
)

// ErrNotFound is the error of a program that is not in the PATH of its environment.
var ErrNotFound = errors.New("not found in PATH")

// Call is one program to run.
type Call struct {
	Argv  []string      // Argv[0] is searched in the PATH of Env, or is a path; a relative path begins at Dir
	Env   []string      // whole environment, KEY=value; of two entries with one name the last counts
	Dir   string        // working directory; "" is that of this process
	Files []*os.File    // files that are inherited from descriptor 3 on, such as locks that the program keeps
	Heard io.Writer     // gets standard error of a Peer as it is written; nil: only its end is kept
	Stdin []byte        // content of standard input: a regular file, which the program can read completely even if this process is killed
	Limit int           // bytes of standard output that are kept; the rest is read and dropped (Cut); 0 sends the output to /dev/null
	Last  bool          // the last Limit bytes are kept, not the first
	Tied  bool          // the program is killed when this process ends, even by SIGKILL; on Linux only, and not if it gains privileges
	Grace time.Duration // time between SIGTERM and SIGKILL to the process group after ctx has ended; 0 kills at once
	Seal  *seal.Seal    // restricts the program, which is then Tied and gets no Files; nil: no restrictions
}

// Result is the result of a program.
type Result struct {
	Out    []byte // standard output, at most Limit bytes
	Cut    bool   // there was more output
	Stderr string // last StderrLimit bytes of standard error
	Status int    // exit status; -1 if it was ended by a signal or by Run
	End    string // the end in words: "exit status 1", "signal: killed"
}

// Failure returns nil for exit status 0, otherwise an error with End and standard error, on one line.
func (r Result) Failure() error {
	if r.Status == 0 {
		return nil
	}
	text := strings.Join(strings.Fields(r.Stderr), " ")
	if text == "" {
		return errors.New(r.End)
	}
	return fmt.Errorf("%s: %s", r.End, text)
}

// Run runs the program. The error is nil for any exit status. It wraps the cause if the program could not be started,
// and is context.Cause(ctx) if ctx ended first: the status of a program that was ended is ignored, because a trap that
// exits 0 has not done the work. After the end of ctx Run takes at most Grace and 2 s.
func Run(ctx context.Context, c Call) (Result, error) {
	none := Result{Status: -1}
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	out, said := &kept{limit: c.Limit, last: c.Last}, &kept{limit: StderrLimit, last: true}
	cmd, done, err := c.begin(out, said)
	for pause := time.Millisecond; errors.Is(err, syscall.ETXTBSY) && pause < busy && ctx.Err() == nil; pause *= 2 {
		time.Sleep(pause)
		cmd, done, err = c.begin(out, said)
	}
	if errors.Is(err, syscall.ETXTBSY) && ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	if err != nil {
		return none, err
	}
	stopped := wait(ctx, cmd.Process, done, c.Grace)
	select {
	case <-done:
	default:
		return none, context.Cause(ctx) // the program has survived SIGKILL
	}
	text, _ := said.all()
	r := Result{Stderr: string(text), Status: -1, End: cmd.ProcessState.String()}
	r.Out, r.Cut = out.all()
	if stopped {
		return r, context.Cause(ctx)
	}
	r.Status = cmd.ProcessState.ExitCode()
	return r, nil
}

// busy is about how long a start is tried again because the program's file is open for writing. One that this process has just
// written and closed stays so while another process looks at the descriptors of this one, as lsof and `ollim doctor` do.
const busy = time.Second

// begin starts the program.
func (c Call) begin(out *kept, said io.Writer) (*exec.Cmd, <-chan struct{}, error) {
	cmd, err := c.command(said)
	if err != nil {
		return nil, nil, err
	}
	if c.Limit > 0 {
		cmd.Stdout = out
	}
	done, err := c.start(cmd)
	return cmd, done, err
}

// start starts a command with the standard input of the call.
func (c Call) start(cmd *exec.Cmd) (done <-chan struct{}, err error) {
	if len(c.Stdin) > 0 {
		in, err := c.input()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd.Path, explain(cmd, c.Seal != nil, err))
		}
		defer func() { _ = in.Close() }()
		cmd.Stdin = in
	}
	return c.launch(cmd, func() {})
}

// command returns the program with everything but its standard input and output.
func (c Call) command(said io.Writer) (*exec.Cmd, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("no program given")
	}
	path, err := LookPath(c.Argv[0], c.Env)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: path, Args: c.Argv, Dir: c.Dir, Stderr: said,
		Env:         append([]string{}, c.Env...), // nil would inherit the environment of this process
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   drain,
	}
	if c.Seal != nil {
		return cmd, nil
	}
	cmd.ExtraFiles = c.Files
	if c.Tied {
		tie(cmd.SysProcAttr)
	}
	return cmd, nil
}

// launch starts a command that inherits only the given descriptors. On another goroutine it waits for the end of the command, calls ended
// and closes done.
func (c Call) launch(cmd *exec.Cmd, ended func()) (<-chan struct{}, error) {
	start := func() error {
		keepDescriptors()
		return cmd.Start()
	}
	if c.Seal != nil {
		start = func() error { return c.Seal.Start(cmd) }
	}
	started, done := make(chan error), make(chan struct{})
	go func() {
		if c.Tied && c.Seal == nil { // the kernel ties the program to the thread that starts it, so the thread must live as long
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		err := start()
		if started <- err; err != nil {
			return
		}
		_ = cmd.Wait() // the error may be one about output that another process keeps open, so only the end counts
		ended()
		close(done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.Path, explain(cmd, c.Seal != nil, err))
	}
	return done, nil
}

// input returns the standard input, open at its beginning. On a full disk it is in memory, because the program may be the one that
// reports the full disk.
func (c Call) input() (*os.File, error) {
	var full error
	if c.Seal == nil {
		f, err := nameless(c.Dir, c.Stdin)
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return f, err
		}
		full = err
	}
	f, err := seal.File()
	if err != nil {
		return nil, cmp.Or(full, err)
	}
	if _, err := f.WriteAt(c.Stdin, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// nameless returns a new file that contains data, open at its beginning. It has a name in dir only while it is empty. The name marks it
// as a draft, so that the daily cleaning removes one that a crash has left.
func nameless(dir string, data []byte) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".stdin.tmp-*")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// keepDescriptors marks the descriptors that this process inherited, except the three streams, as close-on-exec. Inside a run, one of
// them may be the lock of a job or session, which engines inherit and which a background process would hold for ever. Descriptors that Go
// opens are marked already.
func keepDescriptors() {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// wait waits for the program, and ends its whole process group when ctx ends.
func wait(ctx context.Context, p *os.Process, done <-chan struct{}, grace time.Duration) (stopped bool) {
	select {
	case <-done:
		return false
	case <-ctx.Done():
	}
	if !(ID{PID: p.Pid}).Alive() { // possibly not waited for yet
		<-done // it has exited by itself; done follows after at most drain if another process keeps its output open
		return false
	}
	group := -p.Pid
	if grace > 0 {
		_ = syscall.Kill(group, syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(grace):
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // even if the program has ended: its children may still run
	select {
	case <-done:
	case <-time.After(deathly):
	}
	return true
}

// explain makes the error of a failed start precise where the kernel's error is ambiguous.
func explain(cmd *exec.Cmd, sealed bool, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || errors.Is(err, seal.ErrNotSealed) {
		return err
	}
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	switch errno {
	case syscall.ENOEXEC:
		return fmt.Errorf("neither a program for this machine nor a script with a #! line: %w", errno)
	case syscall.ENOENT:
		if _, err := os.Stat(cmp.Or(cmd.Dir, ".")); err != nil {
			return fmt.Errorf("cannot run in %s: %w", cmd.Dir, errno)
		}
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("its interpreter: %w", errno)
		}
	case syscall.EACCES:
		if info, err := os.Stat(path); sealed && err == nil && info.Mode()&0o111 != 0 {
			return fmt.Errorf("the seal does not allow reading it or its interpreter: %w", errno)
		}
	}
	return errno // without "fork/exec" and the path, which the caller adds
}

// Find returns the error that Run would return for a program that does not exist or cannot be executed.
func Find(name, dir string, env []string) error {
	path, err := LookPath(name, env)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, syscall.ENOENT)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s: not an executable file: %w", name, syscall.EACCES)
	}
	return nil
}

// LookPath finds a program in the PATH of env. os/exec would search the PATH of this process, which differs under cron. A name with a
// slash is already a path. Relative directories in PATH are skipped, because they depend on the working directory.
func LookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var list string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			list = v
		}
	}
	for _, dir := range filepath.SplitList(list) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w=%s", name, ErrNotFound, list)
}

// kept keeps the first or the last bytes that are written to it.
type kept struct {
	limit int
	last  bool

	mu   sync.Mutex // because it can be read while it is written
	data []byte
	cut  bool
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := len(k.data) + len(p)
	if k.last {
		k.data = append(k.data, p...)
		k.data = k.data[max(0, size-k.limit):]
	} else {
		k.data = append(k.data, p[:min(len(p), k.limit-len(k.data))]...)
	}
	k.cut = k.cut || size > k.limit
	return len(p), nil
}

func (k *kept) all() (data []byte, cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data, k.cut
}
