package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/platform/process"
)

// program returns the path of this program as it was called. It does not resolve a link, which may lead to another version tomorrow.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return calledAs(os.Args[0], self), nil
}

// calledAs returns the absolute path of a command's first word if it leads to the program self, else self.
func calledAs(word, self string) string {
	path, err := exec.LookPath(word)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil || !sameFile(path, self) {
		return self
	}
	return path
}

// vanishes returns why a program will probably be deleted soon; "" if it will not.
func (d *deps) vanishes(path string) string {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	temporary := d.Temporary
	if dir, ok := d.Lookup("TMPDIR"); ok && filepath.IsAbs(dir) {
		temporary = append(slices.Clone(temporary), filepath.Clean(dir))
	}
	for _, p := range []string{path, resolved} {
		switch {
		// Before Go 1.24 these programs were in a directory of their own, and are since in the build cache if they have been run before.
		case regexp.MustCompile(`/go-build\d+/.*/exe/|/[0-9a-f]{64}-d/[^/]+$`).MatchString(p):
			return "go run has built it and deletes it"
		case slices.ContainsFunc(temporary, func(dir string) bool { return strings.HasPrefix(p, dir+"/") }):
			if p != path { // the target of a link is named
				return p + ", to which it leads, is in a temporary directory"
			}
			return "it is in a temporary directory"
		}
	}
	return ""
}

// asCron runs the command line of cmd in another process that has what Debian's cron gives: HOME, LOGNAME, SHELL and a short PATH, the root
// directory, no terminal and no input. Its output goes to the streams of this process.
func (d *deps) asCron(cmd *cobra.Command, args []string) error {
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
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &reported{status(exit.ExitCode())}
	}
	return err
}
