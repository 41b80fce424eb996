package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
)

const (
	defaultTimeout = 30 * time.Second
	maxGrace       = 5 * time.Second // between SIGTERM and SIGKILL
	drain          = time.Second     // for the last words of a command that has exited, if somebody keeps its stderr open
	refusal        = 77              // EX_NOPERM of sysexits.h
	tailSize       = 2 << 10
	maxValue       = 4 << 10 // bytes of one variable: beyond 128 KiB the kernel would not start the command at all
)

// command starts the command once. The reason, one line, says why the message was not sent.
func (p Post) command(ctx context.Context, m Message) (fate Fate, reason string) {
	path, err := lookPath(p.Command[0], p.Env)
	if err != nil {
		return Queued, oneLine(err.Error())
	}
	timeout := cmp.Or(p.Timeout, defaultTimeout)
	grace := min(maxGrace, timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %s", timeout))
	defer cancel()
	var said tail
	cmd := &exec.Cmd{
		Path: path, Args: p.Command, Env: p.environment(m), Dir: p.Home.Path(),
		Stdin: strings.NewReader(body(m)), Stderr: &said,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay:   min(drain, grace),
	}
	if err := cmd.Start(); err != nil {
		return Queued, oneLine(err.Error())
	}
	if stopped := wait(ctx, cmd, grace); stopped {
		return Queued, oneLine(context.Cause(ctx).Error() + ": " + said.String())
	}
	// The status alone counts. Wait's error would also speak of a stdin that nobody read or a stderr that somebody kept.
	switch cmd.ProcessState.ExitCode() {
	case 0:
		return Sent, ""
	case refusal:
		return Refused, oneLine(cmd.ProcessState.String() + ": " + said.String())
	}
	return Queued, oneLine(cmd.ProcessState.String() + ": " + said.String())
}

// wait waits for the command, and ends its whole process group when ctx does. A command that was ended is not asked for
// its status: a trap that exits 0 has not sent anything.
func wait(ctx context.Context, cmd *exec.Cmd, grace time.Duration) (stopped bool) {
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
		return false
	case <-ctx.Done():
	}
	if errors.Is(cmd.Process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		<-done // it has exited by itself, and only somebody who keeps its pipes open is waited for: no longer than drain
		return false
	}
	group := -cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(grace):
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // also when the command is gone: what it started may not be
	<-done
	return true
}

// body ends in one newline, however many the text has.
func body(m Message) string { return strings.TrimRight(m.Text, "\n") + "\n" }

func (p Post) environment(m Message) []string {
	env := make([]string, 0, len(p.Env)+6)
	for _, kv := range p.Env {
		if !strings.HasPrefix(kv, "OLLIM_RUN=") {
			env = append(env, kv)
		}
	}
	critical := "0"
	if m.Critical {
		critical = "1"
	}
	return append(env, // of two with the same name os/exec takes the last
		"OLLIM_MESSAGE_ID="+m.ID,
		"OLLIM_MESSAGE_RUN="+value(m.Run),
		"OLLIM_JOB="+value(m.Job),
		"OLLIM_LABEL="+value(m.Label),
		"OLLIM_KIND="+value(string(m.Kind)),
		"OLLIM_CRITICAL="+critical,
	)
}

// value makes s fit a variable that scripts read line by line.
func value(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
	return strings.ToValidUTF8(s[:min(len(s), maxValue)], "")
}

// lookPath finds a command in the PATH it will run under. exec.LookPath would search ours, which under cron is another.
func lookPath(name string, env []string) (string, error) {
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
	return "", fmt.Errorf("%s: not found in PATH=%s", name, list)
}

// tail keeps the end of what is written to it.
type tail struct{ data []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	t.data = t.data[max(0, len(t.data)-tailSize):]
	return len(p), nil
}

func (t *tail) String() string { return string(t.data) }

// oneLine makes what a program said fit a line of a listing: no control characters (it may be shown on a terminal), no
// cut character at its start, no colon with nothing behind it.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, ""))
	return strings.TrimSuffix(strings.Join(strings.Fields(s), " "), ":")
}
