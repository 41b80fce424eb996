package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/ollim/ollim/internal/server/discord/api"
)

// The errors that end Run, with api.ErrToken. They stay until a setting is changed, at Discord or here.
var (
	ErrIntents = errors.New("the application may not use an intent")
	ErrRefused = errors.New("the gateway refuses this bot")
)

// How a connection ends, other than by a fault of the network.
var (
	errReconnect = errors.New("the gateway asks for a new connection")
	errForgotten = errors.New("the session is over")
	errZombie    = errors.New("a heartbeat was not acknowledged")
	errSilent    = errors.New("the gateway does not answer")
)

// later is an error after which the next attempt has its own time.
type later struct {
	error
	after time.Duration
}

func (l later) Unwrap() error { return l.error }

func fatal(err error) bool {
	return errors.Is(err, api.ErrToken) || errors.Is(err, ErrIntents) || errors.Is(err, ErrRefused)
}

// closed returns what the end of a connection means, by Discord's table of close codes. A code that is not in the table can be
// resumed after: if it cannot, Discord says so when it is tried.
func closed(err error, intents int) error {
	var by *websocket.CloseError
	if !errors.As(err, &by) {
		return err
	}
	switch by.Code {
	case 4004:
		return api.ErrToken
	case 4007, 4009:
		return fmt.Errorf("%w: %d %q", errForgotten, by.Code, by.Text)
	case 4010, 4011:
		return fmt.Errorf("%w: it is in more servers than one connection may serve: remove the bot from some of them", ErrRefused)
	case 4012:
		return fmt.Errorf("%w: version %s of the gateway is no longer offered: update ollim", ErrRefused, version)
	case 4013, 4014:
		return fmt.Errorf("%w: in the Developer Portal, page Bot, section Privileged Gateway Intents, turn on %s", ErrIntents, switches(intents))
	}
	return fmt.Errorf("the gateway closed the connection: %d %q", by.Code, by.Text)
}

// switches names the switches of the portal that intents need.
func switches(intents int) string {
	var names []string
	for _, s := range []struct {
		bit  int
		name string
	}{{1, "Server Members Intent"}, {8, "Presence Intent"}, {15, "Message Content Intent"}} {
		if intents&(1<<s.bit) != 0 {
			names = append(names, s.name)
		}
	}
	if names == nil {
		return fmt.Sprintf("what intents %d need", intents)
	}
	return strings.Join(names, " and ")
}
