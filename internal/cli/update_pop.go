package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/update"
)

func newUpdatesPop(d *deps) *cobra.Command {
	var keep bool
	cmd := command(agentNever(nested), "pop [-- COMMAND ARG...]", "Print pending updates and remove them",
		func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && cmd.ArgsLenAtDash() != 0:
				return usage("want: ollim update pop [-- COMMAND ARG...]")
			case len(args) > 0 && !keep:
				return d.popApart(cmd, args)
			case keep:
				ctx, stop := stoppedBy(cmd.Context(), d.In)
				defer stop()
				return runUpdatesPop(ctx, d, args)
			}
			return runUpdatesPop(cmd.Context(), d, nil)
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().BoolVar(&keep, keepFlag, false, "feed COMMAND and wait for it, as the process that pop starts")
	_ = cmd.Flags().MarkHidden(keepFlag) // the flag exists
	return withJSON(d, cmd, jsonLines)
}

const keepFlag = "keep"

// popApart has another process feed the updates to the command and remove them. Only the parent of a command learns how it ended, so that
// process continues if this one is killed, and the command does not get the same updates twice. A byte in its standard input is the number
// of the signal that ends both.
func (d *deps) popApart(cmd *cobra.Command, command []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	words := []string{"update", "pop", "--" + keepFlag}
	cmd.Flags().Visit(func(f *pflag.Flag) { words = append(words, "--"+f.Name+"="+f.Value.String()) })
	keeper := exec.Command(self, slices.Concat(words, []string{"--"}, command)...) //nolint:noctx // a signal is passed on to it
	keeper.Stdout, keeper.Stderr = d.Stdout, d.Stderr
	end, err := keeper.StdinPipe()
	if err != nil {
		return err
	}
	if err := keeper.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- keeper.Wait() }()
	ctx := cmd.Context()
	select {
	case err = <-ended:
	case <-ctx.Done():
		by, _ := errors.AsType[signalled](context.Cause(ctx))
		_, _ = end.Write([]byte{byte(by)}) // unless it has just ended
		err = <-ended
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok && ctx.Err() != nil:
		return &reported{statusInterrupted}
	case ok && exit.ExitCode() > 0:
		return &reported{status(exit.ExitCode())}
	case ok:
		return fmt.Errorf("%s was not waited for: %w", command[0], err)
	}
	return err
}

// stoppedBy returns a context that ends with the signal whose number is read. The end of the input has no effect.
func stoppedBy(parent context.Context, in io.Reader) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		number := make([]byte, 1)
		if n, _ := in.Read(number); n == 1 {
			cancel(signalled(syscall.Signal(number[0])))
		}
	}()
	return ctx, func() { cancel(nil) }
}

func runUpdatesPop(ctx context.Context, d *deps, command []string) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	claim, err := h.Updates.Pop(ctx, update.Owner{})
	if err != nil || len(claim.Updates) == 0 {
		return err
	}
	if err := d.hand(ctx, claim.Updates, command); err != nil {
		return errors.Join(err, claim.Return(context.WithoutCancel(ctx)))
	}
	return claim.Deliver(context.WithoutCancel(ctx))
}

// hand writes the updates to standard output or to the command's standard input, and returns when they have been taken.
func (d *deps) hand(ctx context.Context, updates []update.Update, command []string) error {
	if out, isFile := d.Stdout.(*os.File); isFile && len(command) == 0 && process.WasClosed(out) {
		return hint(&unwritten{errors.New("it is closed")}, "ollim update clear")
	}
	var text bytes.Buffer
	to := *d
	to.pager = nil // they are removed once they have been written
	if len(command) > 0 {
		to.Out, to.Stdout = &text, &text
	}
	if err := records(&to, updateColumns, rowsOf(updates, ""), updateRow.cells); err != nil {
		return err
	}
	if len(command) == 0 {
		return d.flush()
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &text, d.Stdout, d.Stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: the updates stay pending", context.Cause(ctx))
		}
		return fmt.Errorf("%s: %w: the updates stay pending", command[0], err)
	}
	return nil
}
