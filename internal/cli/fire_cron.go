package cli

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/platform/process"
)

// asCron runs the command line of cmd in another process that has what Debian's cron gives: HOME, LOGNAME, SHELL and a short PATH, the
// root directory, no terminal and no input. Output goes where ours goes.
func (d *Deps) asCron(cmd *cobra.Command, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	base, err := d.UserHome()
	if err != nil {
		return err
	}
	dir, err := d.Dir()
	if err != nil {
		return err
	}
	words := []string{cmd.Name(), "--data-dir", string(dir), "--config", d.ConfigFile(dir)}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"as-cron", "data-dir", "config"}, f.Name) {
			words = append(words, "--"+f.Name+"="+f.Value.String())
		}
	})
	child := exec.CommandContext(cmd.Context(), self, slices.Concat(words, []string{"--"}, args)...)
	child.Dir = "/"
	child.Env = process.CronEnv(base)
	child.Stdout, child.Stderr = d.Stdout, d.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	err = child.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &reported{status(exit.ExitCode())}
	}
	return err
}
