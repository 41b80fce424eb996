package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/config"
)

// engines returns a function that makes the engine of a name: claude-code, native, or script:FILE.
func (h Home) engines(atShell bool) func(string) (engine.Engine, error) {
	return func(name string) (engine.Engine, error) {
		if err := config.CheckEngine(name); err != nil {
			return nil, &config.Wrong{Reason: err.Error()}
		}
		switch name {
		case config.ClaudeCode:
			return h.claude(atShell)
		case config.Native:
			return h.native(atShell)
		}
		return h.script(strings.TrimPrefix(name, "script:"))
	}
}

// script plays a file, which is looked for in the data directory, then in the working directory.
func (h Home) script(path string) (engine.Engine, error) {
	if inside := h.Dir.Path(path); !filepath.IsAbs(path) && exists(inside) {
		path = inside
	}
	s, err := script.Load(path)
	if faults := (yamldoc.Faults)(nil); errors.As(err, &faults) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s", engine.ErrUnavailable, path, store.Cause(err))
	}
	return &script.Engine{Home: h.Dir, Script: s, Now: h.app.Now, Sleep: h.app.Sleep}, nil
}

// Grace is how long the claude command has for each step of its stop, from a request to the kill.
const Grace = 5 * time.Second

func (h Home) claude(atShell bool) (engine.Engine, error) {
	command := h.Config.Claude.Command
	if command == "" {
		err := &config.Wrong{Reason: "claude-code.command is not set"}
		return nil, Hint(err, "ollim config set claude-code.command \"$(command -v claude)\"")
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
	env := slices.DeleteFunc(c.env(), func(entry string) bool {
		return strings.HasPrefix(entry, "OPENAI_") && !slices.Contains(c.settings, entry)
	})
	var secrets []string
	for _, entry := range slices.Concat(c.secrets, c.shell) {
		name, _, _ := strings.Cut(entry, "=")
		secrets = append(secrets, name)
	}
	return &claudecode.Engine{
		Command: command, Self: self, Secrets: secrets,
		Args:    []string{"--data-dir", string(h.Dir), "--config", h.app.ConfigFile(h.Dir)},
		Env:     append(env, h.location()...),
		Scratch: func(run string) string { return h.Dir.Run(run) },
		Grace:   Grace, Models: table, Now: h.app.Now, Sought: c.sought(h.app, keyName(config.Anthropic)),
	}, nil
}
