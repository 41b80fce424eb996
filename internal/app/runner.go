package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Runner returns what fires jobs and takes turns. atShell says that a person typed the command: then keys and addresses of
// engines may also come from its environment.
func (h Home) Runner(atShell bool) *runner.Runner {
	return &runner.Runner{
		World: runner.World{
			Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone, Random: h.app.Random, Sleep: h.app.Sleep,
			Process:  sync.OnceValue(func() runner.Process { return runner.Process{ID: process.Self(), Group: syscall.Getpgrp()} }),
			Commands: h.app.Commands, Serve: h.serve, Sealing: h.sealing(),
			Secret: h.secretPaths(), UserHome: h.app.userHome(), Env: h.ProgramEnv(),
		},
		Stores: h.Stores,
		Outbox: h.Post(),
		Names:  h.Config.Names, SetNames: h.SetNames,
		Main:    h.Config.Chat,
		Channel: h.Config.Channels,
		Engine:  h.Config.Engine,
		Engines: h.engines(atShell),
	}
}

// sealing returns what the seals of runs are made of. TMPDIR is that of this process.
func (h Home) sealing() runner.Sealing {
	s := runner.Sealing{Mode: h.Config.Seal, Check: seal.Check, Temp: "/tmp"}
	if h.app.Kernel != nil {
		s.Check = h.app.Kernel
	}
	if dir, _ := h.app.Lookup("TMPDIR"); filepath.IsAbs(dir) {
		s.Temp = dir
	}
	caches, _ := h.app.Lookup("XDG_CACHE_HOME")
	for _, base := range []string{filepath.Join(h.app.userHome(), ".cache"), caches} {
		if filepath.IsAbs(base) {
			s.Cache = filepath.Join(base, "ollim")
		}
	}
	if self, err := os.Executable(); err == nil {
		s.Self = self
	}
	return s
}

// Post returns the delivery of messages to the owner.
func (h Home) Post() outbox.Post {
	secrets, err := h.app.loadSecrets()
	if err != nil && h.Config.Engine != engine.ClaudeCode { // that engine fails with this error
		h.app.warn(err.Error())
	}
	queue, _ := h.app.Lookup("OLLIM_OUTBOX")
	return outbox.Post{
		Home: h.Dir, Disk: h.Disk, Command: h.Config.Delivery.Command, Timeout: h.Config.Delivery.Timeout,
		Env:      append(h.childEnv(), secrets.For("delivery")...),
		Terminal: h.app.Terminal,
		Carriers: h.carriers(secrets), Received: h.Sessions.Received,
		Waits: queue == "queue",
	}
}

// ProgramEnv returns the environment of gates, of commands in skills and of the native engine's: that of all children, with the
// data directory, without the way to secrets.
func (h Home) ProgramEnv() []string {
	env := slices.DeleteFunc(h.childEnv(), func(kv string) bool { return strings.HasPrefix(kv, "CREDENTIALS_DIRECTORY=") })
	return append(env, h.location()...)
}

// location tells an ollim that is started by us which directory and settings to use.
func (h Home) location() []string {
	env := []string{"OLLIM_DATA_DIR=" + string(h.Dir), "OLLIM_CONFIG=" + h.app.ConfigFile(h.Dir)}
	if token, _ := h.app.Lookup(discordVariable); token != "" {
		env = append(env, queueVariable)
	}
	return env
}

// childEnv returns the environment of all commands that are started: what the configuration says, and HOME, PATH and TZ of this
// process where it does not say (an ollim in a run must count the same days). Other variables of cron or of a shell are not
// handed on.
func (h Home) childEnv() []string {
	env := []string{}
	for _, name := range []string{"HOME", "PATH", "XDG_CONFIG_HOME", "TZ", "CREDENTIALS_DIRECTORY"} {
		if value, ok := h.app.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, h.Config.Env...)
}
