package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/state/config"
)

// credentials is where an engine's key and address may come from, as KEY=value entries.
type credentials struct {
	settings []string // env in config.yaml, and what every child of ours gets
	secrets  []string // engine.* of the secrets file, which win over those
	shell    []string // from the environment of a command typed at a shell, what the other sources do not have
	atShell  bool
}

// shellVariables are the variables that a command typed at a shell takes from its environment, as claude does.
func shellVariables() []string {
	return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
}

// credentials collects the sources. Only commands typed at a shell use its environment.
func (d *Deps) credentials(h house, atShell bool) (credentials, error) {
	secrets, err := d.loadSecrets()
	if err != nil {
		return credentials{}, &configFault{err}
	}
	c := credentials{settings: d.childEnv(h.config), secrets: secrets.For("engine"), atShell: atShell}
	for _, name := range shellVariables() {
		if value, _ := d.Lookup(name); value != "" && atShell && c.get(name) == "" {
			c.shell = append(c.shell, name+"="+value)
		}
	}
	return c, nil
}

// env is the entries of all sources; of two with one name the last counts.
func (c credentials) env() []string { return slices.Concat(c.settings, c.secrets, c.shell) }

// get is the value of a variable, "" when no source has one.
func (c credentials) get(name string) string { return value(c.env(), name) }

// value is the last value of a variable that is not empty.
func value(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if v, found := strings.CutPrefix(entry, name+"="); found && v != "" {
			return v
		}
	}
	return ""
}

// place says where the value of a variable is kept.
func (c credentials) place(d *Deps, name string) string {
	switch {
	case value(c.secrets, name) != "":
		return fmt.Sprintf("engine.%s in %s", name, d.secretsFile())
	case value(c.settings, name) != "":
		return fmt.Sprintf("%s of env in config.yaml", name)
	case value(c.shell, name) != "":
		return name + " of this environment"
	}
	return fmt.Sprintf("engine.%s in %s", name, d.secretsFile())
}

// sought says where a key was looked for.
func (c credentials) sought(d *Deps, name string) string {
	places := fmt.Sprintf("there is no engine.%s in %s, and no %s in env of config.yaml", name, d.secretsFile(), name)
	if c.atShell {
		return places + " or in this environment"
	}
	return places + "; only ask, chat and session compact, typed at a shell, also look in their environment"
}

// keyHint names both ways to give a key.
func (d *Deps) keyHint(err error, name string) error {
	return hint(err, "put the line engine.%s=… into %s, mode 600; or, for ask and chat only: export %s=…", name, d.secretsFile(), name)
}

// keyName is the variable of a provider's key.
func keyName(provider string) string {
	if provider == config.OpenAI {
		return "OPENAI_API_KEY"
	}
	return "ANTHROPIC_API_KEY"
}

// shellFirer is firer for ask, chat and session compact: typed at a shell they take keys and addresses from its environment too.
func (d *Deps) shellFirer(h house) *runner.Firer {
	f := d.firer(h)
	f.Engines = d.engines(h, d.atShell())
	return f
}
