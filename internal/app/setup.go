package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
)

// EngineKey returns the variable that holds the key of the configured engine, "" if it needs none, and reports whether automatic runs
// have no key: neither a secret or a setting, nor, with claude, a login. Of several variables of an agent that speaks ACP it is the first.
func (h Home) EngineKey(ctx context.Context) (name string, missing bool, err error) {
	switch h.Config.Engine {
	case engine.Native:
		_, err = h.native(false)
		if missing = errors.Is(err, engine.ErrKey); missing {
			err = nil
		}
		return keyName(h.Config.Native.Provider), missing, err
	case engine.ClaudeCode:
		c, err := h.claude(false)
		if err != nil {
			return "", false, err
		}
		_, err = c.Login(ctx)
		return keyName(config.Anthropic), errors.Is(err, engine.ErrNoKey), nil // the test question reports any other error
	}
	if name, is := strings.CutPrefix(h.Config.Engine, engine.ACP+":"); is {
		a, err := h.agent(name, false)
		if err != nil || len(a.Profile.Keys) == 0 {
			return "", false, err
		}
		return a.Profile.Keys[0], a.NoKey() != "", nil
	}
	return "", false, nil
}

const claudeCommand = "claude-code.command"

// FindClaude returns the absolute path of the claude command; "" if there is none. The settings keep the path, because a fire does not
// search.
func (a *App) FindClaude() string {
	path, _ := a.Lookup("PATH")
	dirs := filepath.SplitList(path)
	if base := a.userHome(); base != "" {
		dirs = append(dirs, filepath.Join(base, ".claude", "local"), filepath.Join(base, ".local", "bin"))
	}
	found, _ := process.LookPath("claude", []string{"PATH=" + strings.Join(dirs, string(filepath.ListSeparator))})
	return found
}

// ClaudeEnv returns what the claude command needs of the environment in which it works now.
func (a *App) ClaudeEnv() (entries []string) {
	for _, name := range []string{"PATH", "HOME", "CLAUDE_CONFIG_DIR"} {
		if value, ok := a.Lookup(name); ok && value != "" {
			entries = append(entries, name+"="+value)
		}
	}
	return entries
}

// UseClaude stores the path of the claude command in the settings, and what it needs of the environment if no environment is configured. It
// returns "" if there is no such command.
func (h Home) UseClaude(ctx context.Context) (command string, err error) {
	if command = h.app.FindClaude(); command == "" {
		return "", nil
	}
	if err = h.Set(ctx, claudeCommand, command); err == nil && len(h.Config.Env) == 0 {
		err = h.Set(ctx, "env", h.app.ClaudeEnv()...)
	}
	return command, err
}

// ServiceAddress returns the address of the service that automatic runs of the configured engine use; "" is the vendor's own.
func (h Home) ServiceAddress() (string, error) {
	keys, err := h.credentials(false)
	switch {
	case err != nil:
		return "", err
	case h.Config.Engine == engine.Native:
		return h.app.address(h.Config.Native, keys)
	case h.Config.Engine == engine.ClaudeCode:
		return keys.get("ANTHROPIC_BASE_URL"), nil
	}
	return "", nil
}

// DeliveryLine returns the delivery command as its owner typed it; "" if there is none.
func (h Home) DeliveryLine() string {
	command := h.Config.Delivery.Command
	if len(command) > 2 && command[0] == "sh" && command[1] == "-c" {
		command = command[2:]
	}
	return strings.Join(command, " ")
}

// seenFile holds the digest of the delivery by which the owner has seen a test message arrive.
const seenFile = "delivery_seen"

// DeliverySeen reports whether the owner has seen a test message of the present delivery.
func (h Home) DeliverySeen() bool {
	text, err := store.Read(h.Dir.State(seenFile))
	return err == nil && strings.TrimSpace(string(text)) == h.way()
}

// SeeDelivery records that the owner has seen a test message.
func (h Home) SeeDelivery() error { return store.Replace(h.Dir.State(seenFile), []byte(h.way()+"\n")) }

// way returns a digest of the delivery: the command, the bot's token and the order of preference.
func (h Home) way() string {
	token, _ := h.DiscordToken()
	text := fmt.Appendf(nil, "%q %q", h.Config.Delivery.Command, token)
	if order := h.DeliveryOrder(); order != "" {
		text = fmt.Appendf(text, " %q", order)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
