package app

import (
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/config"
)

// credential is the name of the secrets as a systemd credential.
const credential = "ollim-secrets"

// SecretsFile returns where secrets are kept: a systemd credential, else a file among the owner's own settings; "" when no home
// is known.
func (a *App) SecretsFile() string {
	if dir, ok := a.Lookup("CREDENTIALS_DIRECTORY"); ok && exists(filepath.Join(dir, credential)) {
		return filepath.Join(dir, credential)
	}
	if dir, ok := a.Lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "ollim", "secrets.env")
	}
	base, err := a.UserHome()
	if err != nil {
		return ""
	}
	return filepath.Join(base, ".config", "ollim", "secrets.env")
}

func (a *App) secretPaths() []string {
	if path := a.SecretsFile(); path != "" {
		return []string{path}
	}
	return nil
}

func (a *App) loadSecrets() (config.Secrets, error) {
	path := a.SecretsFile()
	return config.LoadSecrets(path, filepath.Base(path) == credential)
}

// readableSecrets returns the secrets that can be read, and warns of a file that cannot.
func (h Home) readableSecrets() config.Secrets {
	s, err := h.app.loadSecrets()
	if err != nil && h.Config.Engine != config.ClaudeCode { // that engine fails with this error
		h.app.warn(err.Error())
	}
	return s
}

// hidden returns the values of all secrets, and those of the keys that an engine may get from elsewhere. A file that is wrong is
// reported by the commands that need it.
func (h Home) hidden() plaintext.Secrets {
	secrets, err := h.app.loadSecrets()
	if err != nil {
		secrets = config.Secrets{}
	}
	values := secrets.Values()
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"} {
		value, _ := h.app.Lookup(name)
		values = append(values, value)
		for _, entry := range h.Config.Env {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				values = append(values, value)
			}
		}
	}
	return plaintext.NewSecrets(values...)
}
