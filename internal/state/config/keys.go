package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// key is one setting. This table is the only list of them.
type key struct {
	name     string
	at       any                // a *string, *[]string, *int or *time.Duration of a Config or a Server, or a func that takes the text
	about    string             // comment above the line in a new config.yaml
	example  string             // value in the commented line; "" means the default
	standard string             // the default
	check    func(string) error // checks the text, or each item of a list
}

// CheckName rejects an invalid name: names become part of every prompt.
func CheckName(s string) error {
	if s == "" || utf8.RuneCountInString(s) > 60 || !utf8.ValidString(s) || strings.TrimSpace(s) != s ||
		strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%q is not a name: want at most 60 characters on one line", s)
	}
	return nil
}

// days parses a retention time, such as 90d, in days.
func days(s string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(s, "d"), 10, 16)
	if err != nil || n == 0 || !strings.HasSuffix(s, "d") {
		return 0, fmt.Errorf("%q is not a number of days: write one like 90d", s)
	}
	return int(n), nil
}

// checkNUL rejects text that a process cannot have in an argument or its environment.
func checkNUL(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("a NUL character")
	}
	return nil
}

// oneOf returns the check of a key that has one of these values.
func oneOf(values ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(values, s) {
			return nil
		}
		n := len(values) - 1
		return fmt.Errorf("%q: want %s or %s", s, strings.Join(values[:n], ", "), values[n])
	}
}

// Engines by name; the third, script:FILE, contains a file name.
const (
	engineClaude = "claude-code" // the claude command
	engineNative = "native"      // the built-in loop
)

// amount parses a limit: a number from 0, or none, which is +Inf.
func amount(text string) (float64, error) {
	if text == "none" {
		return math.Inf(1), nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < 1e9) {
		return 0, fmt.Errorf("%q is not an amount: write a number such as 1.50, or none", text)
	}
	return n, nil
}

// CheckEngine returns an error if the name of an engine is invalid.
func CheckEngine(name string) error {
	if agent, is := agentEngine(name); is {
		return checkAgentName(agent)
	}
	if kind, file, found := strings.Cut(name, ":"); name == engineClaude || name == engineNative || found && kind == "script" && file != "" {
		return nil
	}
	return fmt.Errorf("unknown engine %q: write %s, %s, acp:NAME or script:FILE", name, engineClaude, engineNative)
}

func (k key) path() []string { return strings.Split(k.name, ".") }

func (k key) last() string { return k.name[strings.LastIndexByte(k.name, '.')+1:] }

// variable returns the environment variable of a key; lists have none, because there is no obvious way to split them.
func (k key) variable() string {
	if k.list() {
		return ""
	}
	return "OLLIM_" + strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(k.name, ".", "_"), "-", "_"))
}

func (k key) list() bool {
	_, is := k.at.(*[]string)
	return is
}

// store sets the field of a key that is not a list to a checked text.
func (k key) store(text string) {
	switch at := k.at.(type) {
	case *string:
		*at = text
	case *int:
		*at, _ = strconv.Atoi(text)
	case *time.Duration:
		*at, _ = time.ParseDuration(text)
	case func(string):
		at(text)
	}
}

// value returns the resolved value of a key for display. text is the text that it was parsed from.
func (k key) value(text string) any {
	switch at := k.at.(type) {
	case *[]string:
		return append([]string{}, *at...) // never nil, so that JSON has [] and not null
	case *int:
		return *at
	case *time.Duration:
		return at.String()
	}
	return text
}

func lookup(name string) (key, error) {
	all := keys(new(Config))
	if i := slices.IndexFunc(all, func(k key) bool { return k.name == yamldoc.Kebab(name) }); i >= 0 {
		return all[i], nil
	}
	return lookupNamed(name)
}

// UnknownKey is the error of a name that is not a setting.
type UnknownKey struct {
	Name string
	Near []string
}

func (e *UnknownKey) Error() string {
	return fmt.Sprintf("unknown key %q%s", e.Name, plaintext.Suggestion(e.Near[:min(1, len(e.Near))]...))
}

// Keys lists the names of all settings.
func Keys() []string {
	var names []string
	for _, k := range keys(new(Config)) {
		names = append(names, k.name)
	}
	return names
}

// Get returns one resolved setting; the error is an *UnknownKey, or a *Wrong of the name of a server or a door.
func (c Config) Get(name string) (Item, error) {
	k, err := lookup(name)
	if err != nil {
		return Item{}, err
	}
	items := c.Items()
	if i := slices.IndexFunc(items, func(i Item) bool { return i.Key == k.name }); i >= 0 {
		return items[i], nil
	}
	return Item{}, &UnknownKey{Name: name} // the key belongs to the other kind of server
}

// check parses a whole file strictly, into the fields of keys and the named entries of c; the error is a yamldoc.Faults.
func check(c *Config, all []key, doc *yamldoc.Doc) error {
	return doc.Decode(append(fields(all), readServers(doc, &c.Servers), readDoors(doc, &c.Doors), readAgents(doc, &c.Agents)))
}

// fields nests the keys as in the file.
func fields(keys []key) []yamldoc.Field {
	var out []yamldoc.Field
	sections := map[string][]key{}
	for _, k := range keys {
		section, rest, nested := strings.Cut(k.name, ".")
		if !nested {
			out = append(out, yamldoc.Field{Key: k.name, Read: k.read})
			continue
		}
		if len(sections[section]) == 0 {
			out = append(out, yamldoc.Field{Key: section, Read: func(v yamldoc.Value) error {
				return v.Decode(fields(sections[section]))
			}})
		}
		k.name = rest
		sections[section] = append(sections[section], k)
	}
	return out
}

func (k key) read(v yamldoc.Value) (err error) {
	if at, isList := k.at.(*[]string); isList {
		*at, err = v.Texts(k.check)
		return err
	}
	text, err := v.Text()
	if err == nil {
		err = k.check(text)
	}
	if err == nil {
		k.store(text)
	}
	return err
}

// Check returns an error if a value for Template is invalid: the text of a value, or a list as written in the file.
func Check(name, text string) error {
	k, err := lookup(name)
	if err != nil {
		return err
	}
	if !k.list() {
		return k.check(text)
	}
	doc, err := yamldoc.Parse(name, []byte(k.last()+": "+text+"\n"), 1)
	if err != nil {
		return err
	}
	return doc.Decode([]yamldoc.Field{{Key: k.last(), Read: k.read}})
}
