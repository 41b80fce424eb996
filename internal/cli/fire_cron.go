package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"syscall"
)

// asCron fires in another process that has what Debian's cron gives: HOME, LOGNAME, SHELL and a short PATH, the root
// directory, no terminal and no input. Output goes where ours goes.
func (d *Deps) asCron(ctx context.Context, h house, jobs []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	base, err := d.userHome()
	if err != nil {
		return err
	}
	args := append([]string{"--data-dir", string(h.home), "--config", d.configFile(h.home), "fire", "--"}, jobs...)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"HOME=" + base, "SHELL=/bin/sh", "PATH=/usr/bin:/bin"}
	if u, err := user.Current(); err == nil {
		cmd.Env = append(cmd.Env, "LOGNAME="+u.Username)
	}
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
