package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/acp"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

// credentials is the sources of an engine's key and address, as KEY=value entries.
type credentials struct {
	settings []string // env in config.yaml, and what every child gets
	secrets  []string // engine.* of the secrets file, which win over those
	shell    []string // from the environment of a command typed at a shell, what the other sources do not have
	atShell  bool
}

// credentials collects the sources. Only commands typed at a shell use its environment.
func (h Home) credentials(atShell bool) (credentials, error) {
	secrets, err := h.app.loadSecrets()
	if err != nil {
		return credentials{}, &ConfigFault{err}
	}
	c := credentials{settings: h.childEnv(), secrets: secrets.For("engine"), atShell: atShell}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"} { // as claude does
		if value, _ := h.app.Lookup(name); value != "" && atShell && c.get(name) == "" {
			c.shell = append(c.shell, name+"="+value)
		}
	}
	return c, nil
}

// env returns the entries of all sources; of two with one name the last counts.
func (c credentials) env() []string { return slices.Concat(c.settings, c.secrets, c.shell) }

// only returns the credentials without secrets and variables of the shell that are not named.
func (c credentials) only(names []string) credentials {
	other := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(names, name)
	}
	c.secrets, c.shell = slices.DeleteFunc(slices.Clone(c.secrets), other), slices.DeleteFunc(slices.Clone(c.shell), other)
	return c
}

// get returns the value of a variable, "" when no source has one.
func (c credentials) get(name string) string { return value(c.env(), name) }

// value returns the last value of a variable that is not empty.
func value(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if v, found := strings.CutPrefix(entry, name+"="); found && v != "" {
			return v
		}
	}
	return ""
}

// place describes where the value of a variable is kept.
func (c credentials) place(a *App, name string) string {
	switch {
	case value(c.secrets, name) != "": // they win
	case value(c.settings, name) != "":
		return fmt.Sprintf("%s of env in config.yaml", name)
	case value(c.shell, name) != "":
		return name + " of this environment"
	}
	return fmt.Sprintf("engine.%s in %s", name, a.SecretsFile())
}

// sought describes where a key was looked for.
func (c credentials) sought(a *App, name string) string {
	places := fmt.Sprintf("no engine.%s in %s, and no %s in env of config.yaml", name, a.SecretsFile(), name)
	if c.atShell {
		return places + " or in this environment"
	}
	return places + "; only ask, chat and session compact, typed at a shell, also use their environment"
}

// KeyHint adds to an error both ways to give a key for the service of the configured engine.
func (a *App) KeyHint(err error) error {
	name := keyName(config.Anthropic)
	c, configErr := a.Config()
	if agent, is := strings.CutPrefix(c.Engine, engine.ACP+":"); configErr == nil && is {
		own, _ := c.Agents.Find(agent)
		if keys := acp.Profiles()[own.ProfileName()].Keys; len(keys) > 0 {
			name = keys[0]
		}
	} else if configErr == nil && c.Engine == engine.Native {
		name = keyName(c.Native.Provider)
	}
	return keyHint(err, name)
}

func keyHint(err error, name string) error {
	return Hint(err, "ollim secret set engine.%s; or, for ask and chat only: export %s=…", name, name)
}

// keyName returns the variable of a provider's key.
func keyName(provider string) string {
	if provider == config.OpenAI {
		return "OPENAI_API_KEY"
	}
	return "ANTHROPIC_API_KEY"
}

// credential is the name of the secrets as a systemd credential.
const credential = "ollim-secrets"

// SecretsFile returns where secrets are kept: a systemd credential, else a file among the owner's own settings; "" when no home
// is known.
func (a *App) SecretsFile() string {
	if dir, ok := a.Lookup("CREDENTIALS_DIRECTORY"); ok && store.Exists(filepath.Join(dir, credential)) {
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

// locatesSecrets names the variables by which SecretsFile finds the file.
func locatesSecrets() []string { return []string{"CREDENTIALS_DIRECTORY", "XDG_CONFIG_HOME", "HOME"} }

// located returns those variables of this process.
func (a *App) located() map[string]string {
	env := map[string]string{}
	for _, name := range locatesSecrets() {
		if value, ok := a.Lookup(name); ok {
			env[name] = value
		}
	}
	return env
}

// secretPaths returns what no agent may reach outside the data directory: the secrets, the login of claude, and settings that are
// elsewhere. It omits paths below a file, which cannot exist.
func (h Home) secretPaths() []string {
	paths := append([]string{h.app.SecretsFile(), h.app.discordCredential(), h.app.ConfigFile(h.Dir)}, h.ClaudeArchive().LoginFiles()...)
	return slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Lstat(path)
		return !filepath.IsAbs(path) || path == h.Dir.Config() || errors.Is(err, syscall.ENOTDIR)
	})
}

func (a *App) loadSecrets() (config.Secrets, error) {
	path := a.SecretsFile()
	return config.LoadSecrets(path, filepath.Base(path) == credential)
}

// CheckSecrets returns what is wrong with the secrets file and the credentials of a service manager.
func (a *App) CheckSecrets() error {
	secrets, err := a.loadSecrets()
	if err == nil {
		_, err = a.discordToken(secrets)
	}
	return err
}

// HookKeys returns the keys that the calls of a webhook may be signed with. It reads the secrets file each time, so a changed secret takes
// effect at once.
func (h Home) HookKeys(hook job.Hook) ([][]byte, error) {
	secrets, err := h.app.loadSecrets()
	if err != nil {
		return nil, &ConfigFault{err}
	}
	return hook.Keys(secrets.For("webhook"))
}

// keyNames names the variables that hold the key of an engine.
func keyNames() []string {
	names := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"}
	for _, profile := range acp.Profiles() {
		names = append(names, profile.Keys...)
	}
	return names
}

// HoldsSecret reports whether a text has the value of a secret in it.
func (h Home) HoldsSecret(text string) bool { return h.hidden().Hide(text) != text }

// hidden returns the values of all secrets, and those of the keys that an engine may get from elsewhere. Commands that need the secrets
// report an invalid file.
func (h Home) hidden() plaintext.Secrets {
	secrets, err := h.app.loadSecrets()
	if err != nil {
		secrets = config.Secrets{}
	}
	values := secrets.Values()
	if token, err := h.app.discordToken(secrets); err == nil {
		values = append(values, token)
	}
	entries := slices.Clone(h.Config.Env)
	for _, agent := range h.Config.Agents {
		entries = append(entries, agent.Env...)
	}
	for _, name := range keyNames() {
		value, _ := h.app.Lookup(name)
		values = append(values, value)
		for _, entry := range entries {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				values = append(values, value)
			}
		}
	}
	return plaintext.NewSecrets(values...)
}

// discordVariable is the environment variable of the bot's token, discordCredential the name of its systemd credential.
const (
	discordVariable   = "OLLIM_DISCORD_TOKEN"
	discordCredential = "discord-token"
)

// queueVariable is set for programs that are started by a process with the bot's token in its environment. They do not get the token, so
// their messages wait in the outbox for that process.
const queueVariable = "OLLIM_OUTBOX=queue"

// errNoToken is the error of a home without a bot's token.
var errNoToken = errors.New("no Discord token")

// discordToken returns the bot's token, "" if there is none. secrets are those of the secrets file.
func (a *App) discordToken(secrets config.Secrets) (string, error) {
	if token, _ := a.Lookup(discordVariable); strings.TrimSpace(token) != "" {
		return bare(token), nil
	}
	if path := a.discordCredential(); path != "" {
		token, err := config.LoadCredential(path)
		if err != nil || token != "" {
			return bare(token), err
		}
	}
	return bare(value(secrets.For("discord"), "TOKEN")), nil
}

// bare returns a token without the word Bot, which precedes it in a request.
func bare(token string) string { return strings.TrimPrefix(strings.TrimSpace(token), "Bot ") }

// discordCredential returns the file that a service manager has put the token into, "" if there is none.
func (a *App) discordCredential() string {
	dir, ok := a.Lookup("CREDENTIALS_DIRECTORY")
	if path := filepath.Join(dir, discordCredential); ok && store.Exists(path) {
		return path
	}
	return ""
}

// Discord returns the client of Discord's API. The error is a *ConfigFault, also if there is no token.
func (h Home) Discord() (*api.Client, error) {
	token, err := h.DiscordToken()
	switch {
	case err != nil:
		return nil, err
	case token == "":
		return nil, Hint(&ConfigFault{errNoToken}, "ollim secret set discord.TOKEN")
	}
	return h.discord(token), nil
}

// DiscordToken returns the bot's token, for the gateway; "" if there is none. The error is a *ConfigFault.
func (h Home) DiscordToken() (token string, err error) {
	secrets, err := h.app.loadSecrets()
	if err == nil {
		token, err = h.app.discordToken(secrets)
	}
	if err != nil {
		return "", &ConfigFault{err}
	}
	return token, nil
}

// discord returns the client for a token, the same one as long as the address is the same.
func (h Home) discord(token string) *api.Client {
	a := h.app.whole()
	a.mu.Lock()
	defer a.mu.Unlock()
	key := h.Config.Discord.API + " " + token
	if a.memory.discord == nil || a.memory.discordOf != key {
		a.memory.discord = api.New(api.Options{Base: h.Config.Discord.API, Token: token, Now: a.Now, Sleep: a.Sleep})
		a.memory.discordOf = key
	}
	return a.memory.discord
}
