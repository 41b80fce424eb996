package app

import (
	"context"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/door"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Post returns the delivery of messages to the owner.
func (h Home) Post() outbox.Post {
	secrets, err := h.app.loadSecrets()
	if err != nil && h.Config.Engine != engine.ClaudeCode { // the claude-code engine fails with this error
		h.app.warn(err.Error())
	}
	queue, _ := h.app.Lookup("OLLIM_OUTBOX")
	p := outbox.Post{
		Home: h.Dir, Disk: h.Disk, Command: h.Config.Delivery.Command, Timeout: h.Config.Delivery.Timeout,
		JSON:     h.Config.Delivery.Format == config.FormatJSON,
		Env:      append(h.childEnv(), secrets.For("delivery")...),
		Terminal: h.app.Terminal,
		Carriers: h.carriers(secrets), Received: h.Sessions.Received,
		Order: h.Config.Delivery.To, Urgent: h.Config.Delivery.Critical,
		Waits: queue == "queue",
	}
	if len(p.Order)+len(p.Command)+len(p.Carriers) == 0 {
		for _, d := range h.Config.Doors {
			p.Order = append(p.Order, d.Name)
		}
	}
	for _, name := range DoorsOf(p) {
		p.Doors = append(p.Doors, h.doorCarrier(name))
	}
	return p
}

// DoorsOf returns the names of the doors by which messages may be sent.
func DoorsOf(p outbox.Post) (names []string) {
	for _, name := range slices.Concat(p.Order, p.Urgent) {
		if name != config.ByCommand && name != config.ByDiscord && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// DeliveryOrder returns the ways of messages in words, the preferred first; "" if all that exist are used.
func (h Home) DeliveryOrder() string { return strings.Join(h.Post().Order, ", else ") }

// carriers returns the ways to the owner besides the delivery command and doors.
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

// doorCarrier returns a door that is started for each message, unless it is served.
func (h Home) doorCarrier(name string) outbox.Carrier {
	return door.Carrier(name, func(ctx context.Context, do func(to messenger.Messenger, channel string) error) error {
		return h.UseDoor(ctx, name, func(string) {}, do) // an error has the end of what the door writes
	})
}

// UseDoor starts a door, calls do with it and the channel of the owner's direct messages, "" if that is not known, and ends it. warn gets
// what the door writes on standard error. The error is an *outbox.Elsewhere while the door is served, or as of Door.
func (h Home) UseDoor(ctx context.Context, name string, warn func(string), do func(to messenger.Messenger, channel string) error) error {
	settings, err := h.DoorSettings(name)
	if err != nil {
		return err
	}
	program, end, err := h.Door(name, warn)
	if err != nil {
		return err
	}
	defer func() {
		if err := end(); err != nil {
			h.app.warn(err.Error())
		}
	}()
	return door.Once{Program: program, Home: h.Dir, Disk: h.Disk, Owner: settings.Owner}.Use(ctx, do)
}
