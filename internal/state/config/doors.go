package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/proxy"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Door is a program that connects a messenger, see ollim-door(5). Its secrets are the lines door.NAME.KEY=… of the secrets file.
type Door struct {
	Name    string
	Command []string // argv; empty: ollim-NAME on PATH
	Owner   string   // user id; "": those whom the program names
	Allow   []string // ids of channels and of users that have channel sessions
	Env     []string // KEY=value, added to the program's environment
	Seal    string   // SealOn: the program reads the system and its own files, and writes its private directory only; or SealOff
	Network []string // with SealOn the hosts that it may connect to, as of proxy.Parse; empty: all
}

// Hosts returns Network.
func (d Door) Hosts() (list []proxy.Host) {
	for _, text := range d.Network {
		if h, err := proxy.Parse(text); err == nil { // it was checked
			list = append(list, h)
		}
	}
	return list
}

// Doors are the configured doors, sorted by name.
type Doors []Door

// Find returns the door of a name.
func (d Doors) Find(name string) (Door, bool) {
	i := slices.IndexFunc(d, func(door Door) bool { return door.Name == name })
	if i < 0 {
		return Door{}, false
	}
	return d[i], true
}

// Argv returns the program of a door with its arguments.
func (d Door) Argv() []string {
	if len(d.Command) > 0 {
		return d.Command
	}
	return []string{"ollim-" + d.Name}
}

const (
	doorSection = "doors"
	doorPart    = "door" // of the secrets
	maxUser     = 200    // bytes of a user id
)

// CheckDoorName returns an error if a text is not the name of a door.
func CheckDoorName(name string) error {
	switch {
	case name == ByDiscord:
		return errors.New(`"discord" is built in: see ollim-discord(7)`)
	case name == ByCommand:
		return errors.New(`"command" is the delivery command: name the door otherwise`)
	case name == "" || len(name) > serverNames || !plaintext.IsWord(name, "-") || strings.ToLower(name) != name || strings.Trim(name, "-") != name:
		return fmt.Errorf("%q is not the name of a door: want lower-case letters, digits and hyphens, at most %d", name, serverNames)
	}
	return nil
}

// checkWay returns an error if a text cannot be in delivery.to.
func checkWay(name string) error {
	if name == ByDiscord || name == ByCommand {
		return nil
	}
	return CheckDoorName(name)
}

func checkMessengerID(s string) error {
	if s == "" || len(s) > maxUser || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%q is not the id of a user or a channel", plaintext.Short(s, maxUser))
	}
	return nil
}

func (d *Door) keys() []key {
	return []key{
		{name: "command", at: &d.Command, check: checkWord},
		{name: "owner", at: &d.Owner, check: checkMessengerID},
		{name: "allow", at: &d.Allow, check: checkMessengerID},
		{name: "env", at: &d.Env, check: func(s string) error { return errors.Join(checkVariable(s), checkNUL(s)) }},
		{name: "seal", at: &d.Seal, check: oneOf(SealOn, SealOff)},
		{name: "network", at: &d.Network, check: func(s string) error {
			_, err := proxy.Parse(s)
			return err
		}},
	}
}

func (d *Door) fault() string {
	if len(d.Network) > 0 && d.Seal != SealOn {
		return "network requires seal: on"
	}
	return ""
}

// readDoors returns the field that reads the section doors of a file.
func readDoors(doc *yamldoc.Doc, into *Doors) yamldoc.Field {
	return readNamed(doc, doorSection, CheckDoorName, func(name string, v yamldoc.Value) error {
		d := Door{Name: name, Seal: SealOff}
		err := readEntry(&d, v)
		*into = append(*into, d)
		slices.SortFunc(*into, func(a, b Door) int { return strings.Compare(a.Name, b.Name) })
		return err
	})
}

// Door returns the KEY=value entries of the secrets of one door.
func (s Secrets) Door(name string) (entries []string) {
	for _, entry := range s.For(doorPart) {
		if own, found := strings.CutPrefix(entry, name+"."); found {
			entries = append(entries, own)
		}
	}
	return entries
}

// doorTemplate is the section doors of a new config.yaml.
const doorTemplate = `
doors:
  # Messengers other than Discord, each reached by a program; see ollim-door(5). Its secret: ollim secret set door.NAME.KEY
  # telegram: {command: [ollim-telegram], owner: "123456789", allow: []}
`
