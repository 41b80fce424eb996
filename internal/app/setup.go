package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
)

// EngineKey returns the variable that holds the key of the configured engine, "" if it needs none, and reports whether automatic runs
// have no key: neither a secret or a setting, nor, with claude, a login.
func (h Home) EngineKey(ctx context.Context) (name string, missing bool, err error) {
	switch h.Config.Engine {
	case engine.Native:
		keys, err := h.credentials(false)
		if err != nil {
			return "", false, err
		}
		name = keyName(h.Config.Native.Provider)
		address, err := h.app.address(h.Config.Native, keys)
		return name, err == nil && keys.get(name) == "" && !isLocal(address), err
	case engine.ClaudeCode:
		c, err := h.claude(false)
		if err != nil {
			return "", false, err
		}
		_, err = c.Login(ctx)
		return keyName(config.Anthropic), errors.Is(err, engine.ErrNoKey), nil // another error is the test question's
	}
	return "", false, nil
}

// seenFile keeps the digest of the way on which the owner has seen a test message arrive.
const seenFile = "delivery_seen"

// DeliverySeen reports whether the owner has seen a test message that took the present way.
func (h Home) DeliverySeen() bool {
	text, err := store.Read(h.Dir.State(seenFile))
	return err == nil && strings.TrimSpace(string(text)) == h.way()
}

// SeeDelivery records that the owner has seen a test message.
func (h Home) SeeDelivery() error { return store.Replace(h.Dir.State(seenFile), []byte(h.way()+"\n")) }

// way is a digest of how messages reach the owner: the command and the bot's token.
func (h Home) way() string {
	token, _ := h.DiscordToken()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", h.Config.Delivery.Command, token))
	return hex.EncodeToString(sum[:])
}
