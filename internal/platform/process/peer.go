package process

import (
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Peer is a running program that this process talks to over its standard input and output.
type Peer struct {
	In  io.WriteCloser
	Out io.Reader // reports the end of the file when the program has ended

	cmd  *exec.Cmd
	said *kept
	done <-chan struct{}
}

// Open starts a program as Run does, with pipes for its streams. It ignores Stdin, Limit and Grace. The caller calls Close.
func Open(c Call) (*Peer, error) {
	p := &Peer{said: &kept{limit: StderrLimit, last: true}}
	said := io.Writer(p.said)
	if c.Heard != nil {
		said = io.MultiWriter(p.said, c.Heard)
	}
	cmd, err := c.command(said)
	if err != nil {
		return nil, err
	}
	p.cmd = cmd
	if p.In, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, end := io.Pipe()
	p.Out, cmd.Stdout = out, end // the exec package copies it, and so does not wait for a process that keeps its pipe open
	p.done, err = c.launch(cmd, func() { _ = end.Close() })
	return p, err
}

// Stderr returns the last StderrLimit bytes of standard error, and whether there were more before them.
func (p *Peer) Stderr() (text string, cut bool) {
	data, cut := p.said.all()
	return string(data), cut
}

// End returns how the program has ended, such as "exit status 1"; "" if it has not ended within a time.
func (p *Peer) End(within time.Duration) string {
	select {
	case <-p.done:
		return p.cmd.ProcessState.String()
	case <-time.After(within):
		return ""
	}
}

// Close ends the program: it closes the program's standard input, then sends its process group SIGTERM, then SIGKILL. It waits for grace
// after each of the first two steps. It kills the group even if the program ends by itself, because its children may still run.
func (p *Peer) Close(grace time.Duration) {
	_ = p.In.Close()
	_ = p.Out.(io.Closer).Close() // so that a program that blocks on a write can end
	if p.End(grace) == "" {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		_ = p.End(grace)
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.End(deathly)
}
