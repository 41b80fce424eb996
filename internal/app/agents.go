package app

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/acp"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/config"
)

// agent returns the engine acp:NAME.
func (h Home) agent(name string, atShell bool) (*acp.Engine, error) {
	a, known := h.Config.Agents.Find(name)
	profile, tested := acp.Profiles()[a.ProfileName()]
	if !known {
		err := &config.Wrong{Reason: fmt.Sprintf("engine acp:%s: there is no acp.%s in config.yaml", name, name)}
		return nil, Hint(err, "add it: `acp: {%s: {command: [/path/to/program]}}`, with the arguments that it needs; see ollim help engines", name)
	}
	if !tested {
		profile = acp.Unknown()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := h.credentials(atShell)
	if err != nil {
		return nil, err
	}
	table, err := h.Models()
	if err != nil {
		return nil, err
	}
	if tested { // it does not get the keys of other engines
		c = c.only(profile.Variables())
	}
	env := slices.Concat(c.env(), a.Env, h.location())
	command := slices.Clone(a.Command)
	if len(command) == 0 {
		command = slices.Clone(profile.Default)
	}
	if len(command) == 0 {
		return nil, &config.Wrong{Reason: "acp." + name + ".command is not set"}
	}
	if found, err := process.LookPath(command[0], env); err == nil {
		command[0] = found
	} else {
		remedy := profile.Install
		if tested {
			remedy += "; if it is installed: add its directory to PATH in env of config.yaml"
		}
		err = fmt.Errorf("%w: acp.%s.command: %w", engine.ErrSetup, name, err)
		return nil, Hint(err, "%s", cmp.Or(remedy, "install it, and write its absolute path"))
	}
	return &acp.Engine{
		Name: name, Command: command, Profile: profile, Trusted: a.IsTrusted(), Self: self,
		Args: []string{"--data-dir", string(h.Dir), "--config", h.app.ConfigFile(h.Dir)},
		Env:  env, Home: h.Dir, Grace: grace, Models: table, Disk: h.Disk, Client: Version(), Located: h.app.located(), AskServers: h.askServers,
		Sought: c.sought(h.app, cmp.Or(strings.Join(profile.Keys, " or "), "KEY")),
	}, nil
}
