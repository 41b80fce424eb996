package claudecode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/runlog"
)

// start runs the command with one input, and lets t read its events to the end.
func (e *Engine) start(ctx context.Context, r engine.Request, known Known, from source, in input, t *turn) (err error) {
	if err := e.exposed(r); err != nil {
		return err
	}
	if r, err = command.Reserve(ctx, r); err != nil {
		return err
	}
	at, err := e.place(ctx, r, t.want.session, from)
	defer at.close(ctx)
	if err != nil {
		return err
	}
	if e.AskServers != nil && len(r.Scope.Servers) > 0 && t.compaction.of == "" {
		if err := t.sink.ReportServers(e.AskServers(ctx, r)); err != nil {
			return err
		}
	}
	t.want.version = known.Version
	if at.gate != nil {
		t.cost.gate = &at.gate.Gateway
	}
	t.cost.expect(r, in.bytes())
	flags, err := e.common(r, known)
	if err != nil {
		return err
	}
	said, err := command.OpenLog(e.Home.Run(r.Run.ID, "stderr.log"))
	if err != nil {
		return err
	}
	defer func() {
		leftOut, closeErr := said.Close()
		if err = errors.Join(err, closeErr); leftOut > 0 {
			err = errors.Join(err, t.sink(runlog.Event{Type: runlog.LeftOut, Text: fmt.Sprintf("%d bytes of standard error", leftOut)}))
		}
	}()
	cmd := exec.Command(e.Command, append(flags, from.args...)...) //nolint:noctx // it is stopped by several signals, see stop
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.ExtraFiles = r.Scope.Root, at.env, said, at.secrets
	cmd.Stdin = in.stdin()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a session of its own, without the terminal, whose keys are for this process
	cmd.WaitDelay = e.Grace
	out, end := io.Pipe()
	cmd.Stdout = end // the exec package copies it, and so does not wait for a process that keeps its pipe open
	if err := at.start(cmd, r.Run.Locks); err != nil {
		return err
	}
	defer process.KillAll("OLLIM_RUN=" + r.Run.ID) // kill processes that it left, in any process group: only the engine has the variable
	return e.forgetIf(e.attend(ctx, cmd, out, end, said, t, at.gate))
}

// attend reads events until the command has ended. It stops the command when ctx ends or t asks for it.
func (e *Engine) attend(ctx context.Context, cmd *exec.Cmd, out io.Reader, in io.Closer, said *command.Log, t *turn, g *gate) error {
	enough, give := context.WithCancel(ctx)
	defer give()
	t.stop = give
	read := make(chan error, 1)
	go func() { read <- t.read(bufio.NewReaderSize(out, 64<<10)) }()
	ended := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		e.stop(enough, cmd.Process.Pid, ended)
	}()
	waitErr := cmd.Wait()
	close(ended)
	<-stopped
	readErr := errors.Join(in.Close(), <-read)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), t.fatal, t.cutShort())
	}
	if t.fatal != nil || readErr != nil {
		return errors.Join(t.fatal, readErr)
	}
	err := g.explain(t.judge(waitErr, strings.TrimSpace(said.Last())))
	if g != nil && t.ended.event == nil { // it was killed, and reports nothing
		err = errors.Join(err, t.cutShort())
	}
	return err
}

// stop stops the command when ctx ends: by SIGINT, after which it exits within a tenth of a second with a session that can be
// resumed, then by SIGTERM, then by SIGKILL to its process group.
func (e *Engine) stop(ctx context.Context, pid int, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	for _, s := range []struct {
		pid int
		sig syscall.Signal
	}{{pid, syscall.SIGINT}, {pid, syscall.SIGTERM}, {-pid, syscall.SIGKILL}} {
		_ = syscall.Kill(s.pid, s.sig)
		timer := time.NewTimer(e.Grace)
		select {
		case <-ended:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
