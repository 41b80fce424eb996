package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLoadTools(t *testing.T) {
	same := func(a, b []string) bool { return slices.Equal(a, b) && (a == nil) == (b == nil) }
	for text, want := range map[string]Tools{
		"":                              {},
		"# nothing\n":                   {},
		"main:\nbackground:\n":          {},
		"main: {}\n":                    {},
		"background:\n  override: []\n": {Override: []string{}}, // no standard tools at all
		"background:\n  additional_allowed: [WebFetch]\n": {Background: []string{"WebFetch"}},
		"main:\n  additional-allowed:\n    - Bash(git log *)\nbackground:\n  override:\n    - Read(./notes/**)\n    - Bash(ollim tasks *)\n  additional-allowed: [Task]\n": {
			Main: []string{"Bash(git log *)"}, Background: []string{"Task"}, Override: []string{"Read(./notes/**)", "Bash(ollim tasks *)"},
		},
	} {
		path := filepath.Join(t.TempDir(), "tool-policy.yaml")
		write(t, path, text)
		got, err := LoadTools(path)
		if err != nil || !slices.Equal(got.Main, want.Main) || !slices.Equal(got.Background, want.Background) || !same(got.Override, want.Override) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestLoadToolsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"main:\n  additional-allowed:\n    - Read\n    - Bash\n":      `:4: main.additional-allowed: item 2: tool pattern "Bash": it allows every command`,
		"background:\n  override:\n    - Edit(**)\n":                  `:3: background.override: item 1: tool pattern "Edit(**)": writing needs a scope`,
		"background:\n  override: [Read, 'Bash(ollim approve)']\n":    `:2: background.override: item 2: tool pattern "Bash(ollim approve)": ollim approve is the owner's command`,
		"background:\n  additional-allowed: [Read(/etc/passwd)]\n":    `:2: background.additional-allowed: item 1: tool pattern "Read(/etc/passwd)": it leaves`,
		"background:\n  additional-allowed: [Write(./state/**.md)]\n": `:2: background.additional-allowed: item 1: tool pattern "Write(./state/**.md)": it reaches state`,
		"background:\n  override:\n":                                  ":2: background.override: want a list like [a, b], not an empty value",
		"background:\n  override: Read\n":                             `:2: background.override: want a list like [a, b], not "Read"`,
		"main:\n  override: []\n":                                     ":2: main.override: unknown key",
		"main:\n  additional-allow: []\n":                             ":2: main.additional-allow: unknown key (did you mean additional-allowed?)",
		"main: [Read]\n":                                              ":1: main: want a section",
		"tools: {}\n":                                                 ":1: tools: unknown key",
		"- Read\n":                                                    ":1: want `key: value` lines",
		"main: {\n":                                                   ":1: not valid YAML: ",
		"background:\n  override: []\n  override: [Read]\n":           ":3: background.override: given twice (as override on line 2)",
		"main:\n  additional-allowed: [Bash]\nbackgrund: {}\n":        `:2: main.additional-allowed: item 1: tool pattern "Bash": it allows every command; name one, such as Bash(ollim tasks *) (and 1 more)`,
	} {
		path := filepath.Join(t.TempDir(), "tool-policy.yaml")
		write(t, path, text)
		if _, err := LoadTools(path); err == nil || !strings.HasPrefix(err.Error(), path+want) {
			t.Errorf("%q\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestLoadToolsUnreadable(t *testing.T) {
	dir := t.TempDir()
	if got, err := LoadTools(filepath.Join(dir, "none.yaml")); err != nil || got.Main != nil || got.Background != nil || got.Override != nil {
		t.Errorf("a file that is not there: %+v, %v", got, err)
	}
	if _, err := LoadTools(dir); err == nil {
		t.Error("a folder was read")
	}
	// what cannot be followed must not pass for a file that is not there, which would widen what an override has narrowed
	loop := filepath.Join(dir, "loop.yaml")
	if err := os.Symlink("loop.yaml", loop); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTools(loop); err == nil {
		t.Error("a link to itself was read")
	}
}

func TestNamesAndDays(t *testing.T) {
	for name, good := range map[string]bool{
		"Ada": true, "Ada Lovelace": true, "日本語の名前": true, strings.Repeat("é", 60): true, "O'Neill-Smith, Jr.": true, "👩": true,
		"": false, " ": false, " Ada": false, "Ada ": false, "A\nda": false, "A\tda": false, "A\x1bda": false, "A\u202eda": false, "A\u200bda": false,
		strings.Repeat("é", 61): false, "\xff": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
	for text, want := range map[string]int{
		"1d": 1, "90d": 90, "65535d": 65535, "": 0, "d": 0, "0d": 0, "90": 0, "90D": 0, "-1d": 0, "+1d": 0, "1.5d": 0, "1dd": 0, "65536d": 0, "1 d": 0, "3w": 0, "１d": 0,
	} {
		if got, err := days(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
