// Package cli is the command line: it turns words into calls of the packages below, and values and errors into lines and exit
// statuses. It alone deals with exit statuses, output, the clock, the environment and the terminal.
package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/ui"
)

// Main runs one command line and returns its exit status.
func Main(args []string) int {
	if socket := os.Getenv(engine.SocketVariable); socket != "" {
		return forwardTo(context.Background(), socket, args, os.Stdin, os.Stdout, os.Stderr)
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	d := &deps{
		In: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		App:       &app.App{Machine: app.Machine{Now: time.Now, Lookup: os.LookupEnv, Random: rand.Reader, Sleep: process.Sleep}},
		Automatic: automatic, Temporary: temporary(), Free: debug.FreeOSMemory,
	}
	return execute(ctx, d, args)
}

func execute(ctx context.Context, d *deps, args []string) int {
	out := bufio.NewWriterSize(output{sink{d}}, 32<<10)
	if d.Out = out; isTerminal(d.Stdout) {
		d.Out = clean{out}
		d.Terminal = clean{terminal{d}}
		d.pager = ui.NewPager(d.Stdout, d.Stderr, d.Lookup)
	}
	d.Warn, d.Commands, d.Execute = d.warn, commandAccess(), d.executeForwarded
	cmd, err := d.dispatch(ctx, args, out)
	silent, ok := errors.AsType[*reported](err)
	answer := err == nil || ok && silent.status != statusUnwritten // standard output is an answer, not part of an error
	flushErr := out.Flush()
	if err := d.pager.End(); err != nil {
		flushErr = errors.Join(flushErr, &unwritten{err})
	}
	if flushErr != nil && answer {
		err = &ran{flushErr}
	}
	end := d.conclude(verbOf(cmd), err)
	if end == int(statusInterrupted) { // only then, because context.Cause begins to handle signals, which takes two threads
		if by, ok := errors.AsType[signalled](context.Cause(ctx)); ok {
			end = 128 + int(by) // as in a shell
		}
	}
	return end
}

// beside executes another command line of the same caller in this process, and returns its output and its exit status.
func (d *deps) beside(ctx context.Context, input string, form layout, args []string) (out, errOut string, end int) {
	var written, talk bytes.Buffer
	c := &deps{In: strings.NewReader(input), Stdout: &written, Stderr: &talk, App: d.Another(), Automatic: d.Automatic, layout: form}
	end = execute(ctx, c, args)
	return written.String(), talk.String(), end
}

func (d *deps) dispatch(ctx context.Context, args []string, out io.Writer) (*cobra.Command, error) {
	root := newRoot(d, args...)
	root.SetArgs(append([]string{}, spreadTools(asAsk(root, args))...)) // instead of nil cobra takes the arguments of the process
	root.SetIn(d.In)
	root.SetOut(out)
	root.SetErr(d.Stderr)
	return root.ExecuteContextC(ctx)
}

// untilSignal returns a context that the first terminating signal cancels; the signal is its cause. A second one ends the process.
// Signals are handled from the moment that the context is first asked for its end. Before that, and in a command that waits for
// nothing, a signal ends the process: handling it takes two threads, a tenth of the time of a start.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, end := context.WithCancelCause(parent)
	handle := sync.OnceFunc(func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		go func() {
			select {
			case s := <-signals:
				number, _ := s.(syscall.Signal)
				end(signalled(number))
			case <-ctx.Done():
			}
			signal.Stop(signals)
		}()
	})
	return onDemand{ctx, handle}, func() { end(nil) }
}

// onDemand is a context that calls begin when it is asked whether it has ended.
type onDemand struct {
	context.Context
	begin func()
}

func (c onDemand) Done() <-chan struct{} {
	c.begin()
	return c.Context.Done()
}

func (c onDemand) Err() error {
	c.begin()
	return c.Context.Err()
}

type signalled syscall.Signal

func (s signalled) Error() string { return syscall.Signal(s).String() }

// Is makes a signal a context.Canceled, and SIGINT also a runner.ErrWithdrawn: the owner withdraws what was typed.
func (s signalled) Is(target error) bool {
	return target == context.Canceled || target == run.ErrWithdrawn && syscall.Signal(s) == syscall.SIGINT
}

type output struct{ w io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		err = &unwritten{err}
	}
	return n, err
}

type unwritten struct{ err error }

func (e *unwritten) Error() string { return "standard output: not written: " + store.Cause(e.err) }

func (e *unwritten) Unwrap() error { return e.err }

// outlivePipe makes a write to a closed pipe an error instead of the end of the process. (Children would inherit an ignored signal.)
func outlivePipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// automatic reports whether this process was started by a scheduler, not by a person.
func automatic() bool {
	return process.UnderCron() || process.UnderService(os.Getenv("INVOCATION_ID"))
}

// atShell reports whether a person typed the command, at a terminal or in a script of theirs.
func (d *deps) atShell() bool { return isTerminal(d.In) || !d.Automatic() }

// flush writes out what is buffered, so that it can be known to have arrived.
func (d *deps) flush() error { return flush(d.Out) }

func flush(w io.Writer) error {
	if buffered, ok := w.(interface{ Flush() error }); ok {
		return buffered.Flush()
	}
	return nil
}
