package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/ollim/ollim/internal/platform/process"
)

// asCron runs a command line of ollim in another process that has what Debian's cron gives: HOME, LOGNAME, SHELL and a short PATH,
// the root directory, no terminal and no input. Output goes where ours goes.
func (d *Deps) asCron(ctx context.Context, words ...string) error {
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
	cmd := exec.CommandContext(ctx, self, append([]string{"--data-dir", string(dir), "--config", d.ConfigFile(dir)}, words...)...)
	cmd.Dir = "/"
	cmd.Env = process.CronEnv(base)
	cmd.Stdout, cmd.Stderr = d.Stdout, d.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &reported{status(exit.ExitCode())}
	}
	return err
}

// words is the options as they were typed, except for --as-cron.
func (o *fireOptions) words(quiet bool) (words []string) {
	for flag, on := range map[string]bool{"--dry-run": o.dryRun, "--print": o.print, "--json": o.json, "--scheduled": o.scheduled, "--quiet": quiet} {
		if on {
			words = append(words, flag)
		}
	}
	for flag, value := range map[string]string{"--engine": o.engine, "--model": o.model, "--wait": o.wait, "--now": o.now, "--slot": o.slot} {
		if value != "" {
			words = append(words, flag+"="+value)
		}
	}
	return append(append(words, "--"), o.jobs...)
}
