// Package config resolves the settings: the environment takes precedence over config.yaml, and config.yaml over the default.
// Each value records its origin. A file with an unknown key or an invalid value is refused as a whole, with file, line and key;
// nothing is ignored.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/viper"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Config is the settings. It has lists of KEY=value instead of maps, because viper folds the case of keys.
type Config struct {
	Timezone string   `mapstructure:"timezone"`
	Engine   string   `mapstructure:"engine"`
	Env      []string `mapstructure:"env"`
	Models   []string `mapstructure:"models"` // lines for model.Table.With, each checked
	Chat     Chat     `mapstructure:"chat"`
	Delivery Delivery `mapstructure:"delivery"`
	Claude   Claude   `mapstructure:"claude-code"`
	Native   Service  `mapstructure:"native"`
	Spend    Spend    `mapstructure:"spend"`
	Keep     Keep     `mapstructure:"keep"`
	Names    Names    `mapstructure:"names"`

	Zone   *time.Location `mapstructure:"-"` // Timezone, loaded
	Exists bool           `mapstructure:"-"` // there is a config.yaml
	items  []Item
}

// Chat configures the main conversation.
type Chat struct {
	Thinking    string `mapstructure:"thinking"`    // as in job files
	Permissions string `mapstructure:"permissions"` // a policy.Mode
}

// Delivery configures how messages reach the owner.
type Delivery struct {
	Command []string      `mapstructure:"command"`
	Timeout time.Duration `mapstructure:"timeout"`
}

// Claude configures the Claude Code engine.
type Claude struct {
	Command string `mapstructure:"command"` // absolute path
}

// Service is the model service of the native engine. The key is a secret, not a setting.
type Service struct {
	Provider  string `mapstructure:"provider"`   // Anthropic or OpenAI: the protocol
	BaseURL   string `mapstructure:"base-url"`   // "": the provider's own
	Model     string `mapstructure:"model"`      // any name that model.Table.Resolve accepts
	MaxTokens int    `mapstructure:"max-tokens"` // of one answer; 0 is the model's own most
}

// Spend holds the spending limits of automatic runs; each is for Amount.
type Spend struct {
	PerRun     string `mapstructure:"per-run"` // USD
	PerDay     string `mapstructure:"per-day"`
	PerMonth   string `mapstructure:"per-month"`
	RunsPerDay string `mapstructure:"runs-per-day"` // runs that reach an engine
}

// Keep holds retention times; each is for Days.
type Keep struct {
	Runs string `mapstructure:"runs"`
}

// Names holds the names of the owner and the agent; "" is unknown.
type Names struct {
	User string `mapstructure:"user"`
	Bot  string `mapstructure:"bot"`
}

// Amount parses a limit: a number from 0, or none, which is +Inf.
func Amount(text string) (float64, error) {
	if text == "none" {
		return math.Inf(1), nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < 1e9) {
		return 0, fmt.Errorf("%q is not an amount: write a number such as 1.50, or none", text)
	}
	return n, nil
}

// Source is the sources of settings besides the defaults.
type Source struct {
	Path   string                      // of config.yaml
	Lookup func(string) (string, bool) // the process environment
	Zone   string                      // the system's zone, default of timezone
}

// Load resolves every key. A missing file counts as empty. The error is a yamldoc.Faults for the file and a *Wrong for
// the rest.
func Load(src Source) (Config, error) {
	var c Config
	text, err := read(src.Path)
	if src.Path == os.DevNull {
		err = nil // an empty file
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	c.Exists = err == nil
	doc, err := yamldoc.Parse(src.Path, text, 1)
	if err != nil {
		return c, err
	}
	if err := check(doc); err != nil {
		return c, err
	}
	v, origins, err := merge(doc, src)
	if err != nil {
		return c, err
	}
	if err := v.UnmarshalExact(&c); err != nil {
		return c, &Wrong{"", err.Error()}
	}
	for _, k := range keys() {
		c.items = append(c.items, Item{k.name, k.value(v), origins[k.name]})
	}
	c.Zone, err = time.LoadLocation(c.Timezone)
	if err != nil {
		return c, &Wrong{origins["timezone"], fmt.Sprintf("timezone: unknown zone %q: write one like Europe/Paris", c.Timezone)}
	}
	return c, nil
}

// maxFile is the maximum size of a file of settings, in bytes.
const maxFile = 1 << 20

// read reads a file of settings; the error names the file. A missing file is fs.ErrNotExist.
func read(path string) ([]byte, error) {
	text, err := store.ReadText(path, maxFile, false)
	if err != nil && !errors.As(err, new(*fs.PathError)) {
		return nil, yamldoc.Faults{{File: path, Reason: err.Error()}}
	}
	return text, err
}

// Wrong is the error of an invalid value from outside the file.
type Wrong struct {
	Origin string
	Reason string
}

func (e *Wrong) Error() string {
	if e.Origin == "" {
		return e.Reason
	}
	return e.Origin + ": " + e.Reason
}

// merge returns the settings, and where each comes from.
func merge(doc *yamldoc.Doc, src Source) (v *viper.Viper, origins map[string]string, err error) {
	v, origins = viper.New(), map[string]string{}
	for _, k := range keys() {
		if k.standard != nil {
			v.SetDefault(k.name, k.standard)
		}
		origins[k.name] = "default"
	}
	v.SetDefault("timezone", src.Zone)
	if err := v.MergeConfigMap(doc.Values()); err != nil {
		return nil, nil, &Wrong{src.Path, err.Error()}
	}
	for _, k := range keys() {
		if line := doc.Line(k.path()...); line > 0 {
			origins[k.name] = fmt.Sprintf("%s:%d", src.Path, line)
		}
		if name := k.variable(); name != "" {
			if value, ok := src.Lookup(name); ok && value != "" {
				v.Set(k.name, value)
				origins[k.name] = name
				if err := k.check(value); err != nil {
					return nil, nil, &Wrong{name, err.Error()}
				}
			}
		}
	}
	return v, origins, nil
}

// Item is one resolved setting.
type Item struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // "default", FILE:LINE or a variable's name
}

// Text returns the value in one line.
func (i Item) Text() string {
	if list, ok := i.Value.([]string); ok {
		return strings.Join(list, " ")
	}
	return fmt.Sprint(i.Value)
}

// Items lists every setting, in the order of the config file.
func (c Config) Items() []Item { return c.items }

// Set changes one key in the file and leaves the rest as it is; values is one text, or the items of a list. The result
// is checked before it replaces the file. The caller holds the lock of the file.
func Set(path, key string, values []string) error {
	k, err := lookup(key)
	if err != nil {
		return err
	}
	value, err := k.parse(values)
	if err != nil {
		return &Wrong{key, err.Error()}
	}
	text, err := read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	doc, err := yamldoc.Parse(path, text, 1)
	if err != nil {
		return err
	}
	if doc, err = doc.Set(k.path(), value); err != nil {
		return err
	}
	if err := check(doc); err != nil {
		return err
	}
	return store.Replace(path, doc.Text())
}
