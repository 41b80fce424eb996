package config

import (
	"errors"
	"io/fs"

	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

// Tools is the content of tool-policy.yaml: the owner's additional tool patterns for all runs.
type Tools struct {
	Text       string   // the file as it was read
	Main       []string // added to those of the main conversation
	Background []string // added to those of background runs
	Override   []string // replaces the standard tools of background runs; nil: they stay
}

// LoadTools reads a tool-policy.yaml; a missing file adds no tools. The error is a yamldoc.Faults or the read error.
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

// ParseTools parses the text of a tool-policy.yaml. The error is a yamldoc.Faults that names path.
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
			list = []string{} // an empty override removes all tools
		}
		*into = list
		return err
	}
}
