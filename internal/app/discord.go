package app

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/outbox"
)

// discordVariable has the bot's token in the environment, discordCredential is its name as a systemd credential.
const (
	discordVariable   = "OLLIM_DISCORD_TOKEN"
	discordCredential = "discord-token"
)

// queueVariable is set for programs that a process starts whose own environment has the bot's token, which they do not get: what
// they send waits in the outbox for that process.
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

// bare returns a token without the word that goes before it in a request.
func bare(token string) string { return strings.TrimPrefix(strings.TrimSpace(token), "Bot ") }

// discordCredential returns the file that a service manager has put the token into, "" if there is none.
func (a *App) discordCredential() string {
	dir, ok := a.Lookup("CREDENTIALS_DIRECTORY")
	if path := filepath.Join(dir, discordCredential); ok && exists(path) {
		return path
	}
	return ""
}

// Discord returns the client of Discord's API. The error is ErrNoToken, or a *ConfigFault.
func (h Home) Discord() (*api.Client, error) {
	secrets, err := h.app.loadSecrets()
	if err != nil {
		return nil, &ConfigFault{err}
	}
	token, err := h.app.discordToken(secrets)
	switch {
	case err != nil:
		return nil, &ConfigFault{err}
	case token == "":
		return nil, Hint(&ConfigFault{errNoToken}, "put the line discord.TOKEN=… into %s, mode 600", h.app.SecretsFile())
	}
	return h.discord(token), nil
}

// DiscordToken returns the bot's token, for the gateway; "" if there is none.
func (h Home) DiscordToken() (string, error) {
	secrets, err := h.app.loadSecrets()
	if err != nil {
		return "", &ConfigFault{err}
	}
	return h.app.discordToken(secrets)
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

// carriers returns the ways to the owner besides the delivery command.
func (h Home) carriers(secrets config.Secrets) []outbox.Carrier {
	token, err := h.app.discordToken(secrets)
	if err != nil {
		h.app.warn(err.Error())
	}
	if token == "" {
		return nil
	}
	return []outbox.Carrier{api.Carrier{
		Client: h.discord(token), Home: h.Dir, Disk: h.Disk, Owner: h.Config.Discord.Owner, Bot: h.Config.Discord.API + " " + token,
	}}
}
