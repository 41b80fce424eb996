package config

import (
	"errors"
	"io/fs"

	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

// Tools is tool-policy.yaml: the tool patterns that the owner gives to everything.
type Tools struct {
	Text       string   // the file as it was read
	Main       []string // added to those of the main conversation
	Background []string // added to those of background runs
	Override   []string // takes the place of the standard ones of background runs; nil: the standard ones stay
}

// LoadTools reads a tool-policy.yaml; one that is not there adds nothing. The error is a yamldoc.Faults, or why it cannot be read.
func LoadTools(path string) (Tools, error) {
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Tools{}, nil
	}
	if err != nil {
		return Tools{}, err
	}
	return ParseTools(path, text)
}

// ParseTools reads the text of a tool-policy.yaml. The error is a yamldoc.Faults that names path.
func ParseTools(path string, text []byte) (Tools, error) {
	t := Tools{Text: string(text)}
	doc, err := yamldoc.Parse(path, text, 1)
	if err != nil {
		return t, err
	}
	return t, doc.Decode([]yamldoc.Field{
		section("main", yamldoc.Field{Key: "additional-allowed", Read: patterns(&t.Main)}),
		section("background", yamldoc.Field{Key: "additional-allowed", Read: patterns(&t.Background)},
			yamldoc.Field{Key: "override", Read: patterns(&t.Override)}),
	})
}

func section(key string, fields ...yamldoc.Field) yamldoc.Field {
	return yamldoc.Field{Key: key, Read: func(v yamldoc.Value) error { return v.Decode(fields) }}
}

func patterns(into *[]string) func(yamldoc.Value) error {
	return func(v yamldoc.Value) error {
		list, err := v.Texts(func(text string) error { return policy.Judge(text) })
		if list == nil {
			list = []string{} // an empty override takes everything away
		}
		*into = list
		return err
	}
}
