package process

import (
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Peer is a running program that this process talks to over its standard input and output.
type Peer struct {
	In  io.WriteCloser
	Out io.Reader // ends when the program has ended

	cmd  *exec.Cmd
	said safeTail
	done chan struct{} // closed when the program has ended
}

// Open starts a program as Run does, with pipes for its streams; Stdin, Limit and Grace do not count. The caller calls Close.
func Open(c Call) (*Peer, error) {
	p := &Peer{done: make(chan struct{})}
	cmd, err := c.command(&p.said)
	if err != nil {
		return nil, err
	}
	p.cmd = cmd
	if p.In, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, end := io.Pipe()
	p.Out, cmd.Stdout = out, end // the exec package copies it, so that a process that keeps the pipe open is not waited for
	started := make(chan error)
	go func() {
		if c.Tied && c.Seal == nil { // as in Run
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		err := c.launch(cmd)
		if started <- err; err != nil {
			return
		}
		_ = cmd.Wait() // only the end counts
		_ = end.Close()
		close(p.done)
	}()
	return p, <-started
}

// Stderr returns the last StderrLimit bytes of standard error, and whether there were more before them.
func (p *Peer) Stderr() (text string, cut bool) {
	p.said.mu.Lock()
	defer p.said.mu.Unlock()
	return string(p.said.data), p.said.cut
}

// End returns how the program has ended, such as "exit status 1"; "" if it has not ended within the time.
func (p *Peer) End(within time.Duration) string {
	select {
	case <-p.done:
		return p.cmd.ProcessState.String()
	case <-time.After(within):
		return ""
	}
}

// Close ends the program: it closes its standard input, then sends its process group SIGTERM, then SIGKILL, with grace after each of
// the first two. The group is killed even if the program ends by itself, because its children may still run.
func (p *Peer) Close(grace time.Duration) {
	_ = p.In.Close()
	_ = p.Out.(io.Closer).Close() // a program that cannot write any more is not waited for
	if p.End(grace) == "" {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		_ = p.End(grace)
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.End(deathly)
}

// safeTail is a tail that is read while it is written.
type safeTail struct {
	mu sync.Mutex
	tail
}

func (t *safeTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tail.Write(p)
}
