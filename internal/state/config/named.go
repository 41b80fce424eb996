package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// entry is the settings of something that the owner has named, such as one server of mcp-servers.
type entry interface {
	keys() []key   // without section and name
	fault() string // what is wrong with them in combination; "" if nothing is
}

// readNamed returns the field that reads a section whose keys are names.
func readNamed(doc *yamldoc.Doc, section string, check func(name string) error, read func(name string, v yamldoc.Value) error) yamldoc.Field {
	names, _ := doc.Values()[section].(map[string]any)
	return yamldoc.Field{Key: section, Read: func(v yamldoc.Value) error {
		var list []yamldoc.Field
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if err := check(name); err != nil {
				return err
			}
			list = append(list, yamldoc.Field{Key: name, Read: func(v yamldoc.Value) error { return read(name, v) }})
		}
		return v.Decode(list)
	}}
}

func readEntry(e entry, v yamldoc.Value) error {
	var list []yamldoc.Field
	for _, k := range e.keys() {
		list = append(list, yamldoc.Field{Key: k.name, Read: k.read})
	}
	if err := v.Decode(list); err != nil {
		return err
	}
	if reason := e.fault(); reason != "" {
		return v.Wrong(reason)
	}
	return nil
}

// namedItems returns the settings of an entry that the file has.
func namedItems(section, name string, e entry, doc *yamldoc.Doc, file string) (items []Item) {
	for _, k := range e.keys() {
		path, text := []string{section, name, k.name}, ""
		if at, is := k.at.(*string); is {
			text = *at
		}
		if line := doc.Line(path...); line > 0 {
			items = append(items, Item{strings.Join(path, "."), k.value(text), fmt.Sprintf("%s:%d", file, line)})
		}
	}
	return items
}

// lookupNamed returns a setting of an entry by its full name. The error is an *UnknownKey, or a *Wrong for the name of the entry.
func lookupNamed(name string) (key, error) {
	words := strings.Split(name, ".")
	for section, of := range map[string]struct {
		entry

		check func(string) error
	}{serverSection: {new(Server), checkServerName}, doorSection: {new(Door), CheckDoorName}, agentSection: {new(Agent), checkAgentName}} {
		for _, k := range of.keys() {
			if len(words) != 3 || words[0] != section || k.name != words[2] {
				continue
			}
			if err := of.check(words[1]); err != nil {
				return key{}, &Wrong{name, err.Error()}
			}
			k.name = name
			return k, nil
		}
	}
	return key{}, &UnknownKey{name, plaintext.Similar(name, Keys())}
}
