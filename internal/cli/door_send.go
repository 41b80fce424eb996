package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/server/door"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

func newDoorSend(d *deps) *cobra.Command {
	return withJSON(d, command(agentNever(refused), "send NAME", "Send the owner the message on standard input, by a door that is started for it",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error { return runDoorSend(ctx, d, h, args[0]) })), "print one JSON object")
}

func runDoorSend(ctx context.Context, d *deps, h app.Home, name string) error {
	if _, err := h.DoorSettings(name); err != nil {
		return err
	}
	text, err := readInput(d.In)
	if err != nil {
		return err
	}
	m, err := letter(name, text)
	if err != nil {
		return &withStatus{fmt.Errorf("standard input: %w", err), statusData}
	}
	ctx, cancel := context.WithTimeout(ctx, h.Config.Delivery.Timeout)
	defer cancel()
	m.nonce = cmp.Or(m.nonce, rand.Text())
	var ids []string
	err = h.UseDoor(ctx, name, d.warn, func(to messenger.Messenger, channel string) error {
		if m.channel != "" {
			channel = m.channel
		}
		if channel == "" {
			return &withStatus{door.ErrNoDirect, statusConfig}
		}
		return messenger.Carry(m.Outgoing, m.nonce, to.Able(), nil, func(id string) { ids = append(ids, id) },
			func(part messenger.Outgoing) (messenger.Sent, error) { return to.Send(ctx, channel, part) })
	})
	for i, id := range ids {
		ids[i] = strings.TrimPrefix(id, name+".")
	}
	switch {
	case err != nil:
		return sendFault(name, err)
	case d.json:
		return d.emit(struct {
			ID  string   `json:"id"` // of the last message
			IDs []string `json:"ids"`
		}{ids[len(ids)-1], ids})
	}
	return d.answer(strings.Join(ids, "\n"), nil)
}

// sendFault returns the error of a message that was not sent, with its exit status.
func sendFault(name string, err error) error {
	switch {
	case as[*outbox.Elsewhere](err):
		return &withStatus{fmt.Errorf("ollim door serve %s is running: ollim ping sends by it, if delivery.to names %s", name, name), statusTempFail}
	case as[*app.ConfigFault](err), as[*withStatus](err):
		return err
	case messenger.IsRefused(err):
		return &withStatus{err, statusRefused}
	case messenger.After(err) > 0:
		return &withStatus{err, statusTempFail}
	}
	return &withStatus{err, statusUnavailable}
}

// sendLine is a message as a line of the protocol of doors.
type sendLine struct {
	messenger.Outgoing

	channel, nonce string
}

// letter reads a message: one JSON object as the line "send" of ollim-door(5), or else plain text.
func letter(name, text string) (m sendLine, err error) {
	if strings.TrimSpace(text) == "" {
		return m, errors.New("the message is empty")
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		m.Text = strings.TrimRight(text, "\n")
		return m, nil
	}
	var r door.Request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return m, fmt.Errorf("it begins with { and is not a JSON object as in ollim-door(5): %w", err)
	}
	err = m.read(name, r)
	return m, err
}

// read takes the parts of a line.
func (m *sendLine) read(name string, r door.Request) error {
	if r.Type != "" && r.Type != door.TypeSend {
		return fmt.Errorf("type: want %s", door.TypeSend)
	}
	m.channel, m.nonce, m.Silent = r.Channel, r.Nonce, r.Silent
	if r.Text != nil {
		m.Text = *r.Text
	}
	if r.ReplyTo != "" {
		m.ReplyTo = name + "." + r.ReplyTo
	}
	if r.Buttons != nil {
		for _, b := range *r.Buttons {
			m.Buttons = append(m.Buttons, outbox.Button{ID: b.ID, Label: b.Label, Style: b.Style, Disabled: b.Disabled})
		}
	}
	for i, f := range r.Files {
		if err := outbox.CheckFile(f.Path); err != nil {
			return fmt.Errorf("files[%d].path: %w", i, err)
		}
		data, err := os.ReadFile(f.Path)
		if err != nil {
			return fmt.Errorf("files[%d].path: %w", i, err)
		}
		m.Files = append(m.Files, messenger.File{Name: cmp.Or(f.Name, filepath.Base(f.Path)), Type: f.Type, Data: data})
	}
	if m.Text == "" && len(m.Files) == 0 {
		return errors.New("text: it is empty")
	}
	return nil
}
