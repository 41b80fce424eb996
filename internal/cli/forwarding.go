package cli

// This file carries commands out of a sealed run, whose processes cannot read the data directory: the client is what such a process
// starts, and the server is the process that executes the run.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/forward"
	"github.com/ollim/ollim/internal/policy"
)

// forwardPatience is how long a hook waits for its answer: longer than the server may take, and shorter than the engine's wait, after which
// the engine allows what it asked about.
const forwardPatience = hookPatience + 10*time.Second

// forwardTo lets the server at a socket execute a command line. It never falls back to files: a hook that is not answered makes
// the engine refuse what it asked about.
func forwardTo(ctx context.Context, socket string, args []string, in io.Reader, out *os.File, errOut io.Writer) int {
	failed := statusUnavailable
	if n := len(args); n > 1 && args[n-2] == "hook" {
		failed = hookError
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, forwardPatience, errors.New("no answer in time"))
		defer cancel()
	}
	dir, _ := os.Getwd() // the server reports a missing directory if the command needs one
	status, err := forward.Run(ctx, socket, forward.Call{Dir: dir, Args: args}, in, probed{out}, errOut)
	switch {
	case errors.Is(err, forward.ErrTooLong):
		failed = statusUsage
		fallthrough
	case err != nil:
		_, _ = fmt.Fprintf(errOut, "ollim: the process of this run at %s does not answer: %v\n", socket, err)
		return int(failed)
	}
	return status
}

// probed is standard output. An empty write to it fails if it has no reader.
type probed struct{ *os.File }

func (p probed) Write(data []byte) (int, error) {
	if len(data) == 0 && readerGone(p.File) {
		return 0, syscall.EPIPE
	}
	return p.File.Write(data)
}

// executeForwarded executes a command line that a process of a sealed run has sent. The process may be the agent's engine or any program
// that the agent has started. It may use the commands that the engine calls, those that a pattern of the run allows, and those that a run
// may use without a pattern.
func (d *deps) executeForwarded(ctx context.Context, run app.Sealed, r forward.Request) (status int) {
	defer func() {
		if p := recover(); p != nil { // a panic ends the command, not the run
			_, _ = fmt.Fprintf(r.Stderr, "panic: %v\n\n%s", p, debug.Stack())
			status = int(hookError)
		}
	}()
	c := &deps{
		In: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, App: run.App(), Automatic: d.Automatic, caller: r.Dir, forwarded: true,
	}
	args, err := c.agentsOwn(run, r.Args)
	if err != nil {
		return c.conclude("", &ran{err})
	}
	return execute(ctx, c, args)
}

// agentsOwn returns the arguments that a process of a run may use, without the flags with which its engine names files.
func (d *deps) agentsOwn(run app.Sealed, args []string) ([]string, error) {
	dir, err := d.Dir()
	if err != nil {
		return nil, err
	}
	located := []string{"--data-dir", string(dir), "--config", d.ConfigFile(dir)}
	if len(args) > len(located) && slices.Equal(args[:len(located)], located) {
		args = args[len(located):]
	}
	if forEngine(args, run.Servers) {
		return args, nil
	}
	d.Commands = commandAccess()
	set, err := d.insideTools()
	if err != nil {
		return nil, err
	}
	if d.own, err = set.MaySend(args); err != nil {
		return nil, fmt.Errorf("%w: %w", app.ErrNotAllowed, err)
	}
	return args, nil
}

// forEngine reports whether the engine of a run starts a command. servers are the patterns of the tools of MCP servers that the engine has.
func forEngine(args, servers []string) bool {
	if len(args) < 2 {
		return false
	}
	switch verb, rest := args[0]+" "+args[1], args[2:]; verb {
	case "hook pre-tool", "hook post-tool", "hook stop", "mcp serve":
		return len(rest) == 0
	case "mcp connect":
		return len(rest) > 0 && slices.Contains(policy.Servers(servers), rest[0]) &&
			!slices.ContainsFunc(rest[1:], func(pattern string) bool { return !slices.Contains(servers, pattern) })
	}
	return false
}
