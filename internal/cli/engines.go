package cli

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

// engines makes the engine of a name: claude-code, native, or script:FILE.
func (d *Deps) engines(h house, atShell bool) func(string) (engine.Engine, error) {
	return func(name string) (engine.Engine, error) {
		if err := config.CheckEngine(name); err != nil {
			return nil, &config.Wrong{Reason: err.Error()}
		}
		switch name {
		case config.ClaudeCode:
			return d.claude(h, atShell)
		case config.Native:
			return d.native(h, atShell)
		}
		return d.script(h, strings.TrimPrefix(name, "script:"))
	}
}

// script plays a file, which is looked for in the data directory, then where we are.
func (d *Deps) script(h house, path string) (engine.Engine, error) {
	if inside := h.home.Path(path); !filepath.IsAbs(path) && exists(inside) {
		path = inside
	}
	s, err := script.Load(path)
	if faults := (yamldoc.Faults)(nil); errors.As(err, &faults) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s", engine.ErrUnavailable, path, store.Cause(err))
	}
	return &script.Engine{Home: h.home, Script: s, Now: d.Now, Sleep: d.Sleep}, nil
}

// grace is how long the engine has for each step of its stop, from a request to the kill.
const grace = 5 * time.Second

func (d *Deps) claude(h house, atShell bool) (engine.Engine, error) {
	command := h.config.Claude.Command
	if command == "" {
		err := &config.Wrong{Reason: "claude-code.command is not set"}
		return nil, hint(err, "ollim config set claude-code.command \"$(command -v claude)\"")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := d.credentials(h, atShell)
	if err != nil {
		return nil, err
	}
	table, err := h.models()
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
		Args:    []string{"--data-dir", string(h.home), "--config", d.configFile(h.home)},
		Env:     append(env, "OLLIM_DATA_DIR="+string(h.home), "OLLIM_CONFIG="+d.configFile(h.home)),
		Scratch: func(run string) string { return h.home.Run(run) },
		Grace:   grace, Models: table, Now: d.Now, Judged: h.runs().Judged, Sought: c.sought(d, keyName(config.Anthropic)),
	}, nil
}

// credential is the name of the secrets as a systemd credential.
const credential = "ollim-secrets"

func (d *Deps) loadSecrets() (config.Secrets, error) {
	path := d.secretsFile()
	return config.LoadSecrets(path, filepath.Base(path) == credential)
}

// secretsFile is where secrets lie: a systemd credential, else a file of the owner's own settings.
func (d *Deps) secretsFile() string {
	if dir, ok := d.Lookup("CREDENTIALS_DIRECTORY"); ok && exists(filepath.Join(dir, credential)) {
		return filepath.Join(dir, credential)
	}
	if dir, ok := d.Lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "ollim", "secrets.env")
	}
	base, err := d.userHome()
	if err != nil {
		return ""
	}
	return filepath.Join(base, ".config", "ollim", "secrets.env")
}

func (d *Deps) secretPaths() []string {
	if path := d.secretsFile(); path != "" {
		return []string{path}
	}
	return nil
}

// secrets are those that can be read; what is wrong with the file is said by whoever cannot do without.
func (d *Deps) secrets() config.Secrets {
	s, err := d.loadSecrets()
	if c, loadErr := d.config(); err != nil && loadErr == nil && c.Engine != config.ClaudeCode { // that engine says it itself
		d.warn(err.Error())
	}
	return s
}
