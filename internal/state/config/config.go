// Package config resolves the settings: the environment takes precedence over config.yaml, and config.yaml over the default.
// Each value records its origin. A file with an unknown key or an invalid value is refused as a whole, with file, line and key;
// nothing is ignored.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/viper"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/model"
)

// Config is the settings. It has lists of KEY=value instead of maps, because viper folds the case of keys.
type Config struct {
	Timezone string
	Engine   string
	Seal     string // sealAuto, SealOn or SealOff

	Heartbeat string // URL that tick calls; "": none
	Claim     string // absolute path of the command that gives slots to machines; "": none

	Quiet   timeparse.Span // hours in which only critical messages are sent
	Summary string         // SummaryWeekly, or off

	Env      []string
	Models   []string // lines for model.Table.With, which are checked
	Fallback []string // models that are asked in order if a run's own cannot be used
	Chat     Chat
	Channels Channels
	Delivery delivery
	Discord  messenger
	Webhook  hookServer
	Claude   claudeCode
	Native   Service
	Servers  Servers
	Doors    Doors
	Agents   Agents
	Spend    spend
	Keep     keep
	Limits   limits

	CompactAt int // length of a session, in tokens
	Names     Names

	Zone   *time.Location // Timezone, loaded
	Exists bool           // there is a config.yaml
	Items  func() []Item  // returns every setting, in the order of the config file
}

// The values of Config.Summary.
const (
	SummaryWeekly = "weekly"
	summaryOff    = "off"
)

// Chat configures the main conversation.
type Chat struct {
	Model       string // "" is the engine's default
	Thinking    string // as in job files
	Forks       string // thinking in interactive forks, as in job files
	Permissions string // a policy.Mode
	Busy        string // what a message does to a turn in progress
	Markdown    string // whether a terminal shows Markdown styled
}

// ThinkingOr returns a setting of thinking, or for model.LikeMain that of the main conversation.
func (c Chat) ThinkingOr(wish string) string {
	if wish == model.LikeMain {
		return c.Thinking
	}
	return wish
}

// Channels configures the turns of channels.
type Channels struct {
	AllowedTools []string // patterns that policy.Judge has accepted
}

// The values of Chat.Busy.
const (
	busyQueue     = "queue"
	BusyInterrupt = "interrupt"
)

// The values of Chat.Markdown and Claude.Gateway.
const (
	on  = "on"
	Off = "off"
)

// The values of Config.Seal.
const (
	sealAuto = "auto" // programs that agents start are sealed if the kernel supports it
	SealOn   = "on"   // runs are refused if the kernel does not support it
	SealOff  = "off"
)

type delivery struct {
	Command  []string
	Format   string        // FormatText or FormatJSON
	To       []string      // ByCommand, ByDiscord and names of doors, the preferred first
	Critical []string      // the same for critical messages; empty: as To
	Timeout  time.Duration // of one attempt
}

// The values of delivery.format.
const (
	FormatText = "text" // the command gets the text
	FormatJSON = "json" // the command gets a line of JSON, see ollim-messages(7)
)

// The names in delivery.to besides those of doors.
const (
	ByCommand = "command"
	ByDiscord = "discord"
)

type claudeCode struct {
	Command string // absolute path
	Effort  string
	Gateway string // on or Off
}

// Service is the model service of the native engine. The key is a secret, not a setting.
type Service struct {
	Provider  string // protocol: Anthropic or OpenAI
	BaseURL   string // address; "" is the provider's own
	Model     string // any name that model.Table.Resolve accepts
	MaxTokens int    // longest answer, in tokens; 0 is the limit of the model
	WebSearch string // searchAuto, searchOn or searchOff
}

// spend holds the spending limits of automatic runs; +Inf is none.
type spend struct {
	PerRun     float64 // USD
	PerDay     float64
	PerMonth   float64
	RunsPerDay float64 // runs that reach an engine
}

// limits holds limits on the machine's resources.
type limits struct {
	Parallel int // fires of routines in progress; 0: the machine's number of cores decides
}

// keep holds how long data is kept, in days. Backups is a number of files.
type keep struct{ Runs, Idle, Transcripts, History, Backups int }

// Names holds the names of the owner and the agent; "" is unknown.
type Names struct {
	User string `json:"user"`
	Bot  string `json:"bot"`
}

// Source is the sources of settings besides the defaults.
type Source struct {
	Path   string                      // of config.yaml
	Text   []byte                      // content of the file; nil: Load reads it
	Lookup func(string) (string, bool) // the process environment
	Zone   func() string               // returns the system's zone, the default of timezone
}

// Load resolves every key. A missing file counts as empty. The error is a yamldoc.Faults for the file and a *Wrong for
// the rest.
func Load(src Source) (Config, error) {
	var c Config
	text, err := src.Text, error(nil)
	if text == nil {
		text, err = read(src.Path)
	}
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
	all := keys(&c)
	if err = check(&c, all, doc); err != nil {
		return c, err
	}
	v, origins, err := merge(all, doc, src)
	if err != nil {
		return c, err
	}
	for _, k := range all {
		k.fill(v)
	}
	c.Items = func() (items []Item) {
		for _, k := range all {
			items = append(items, Item{k.name, k.value(v.GetString(k.name)), origins[k.name]})
		}
		for _, s := range c.Servers {
			items = append(items, namedItems(serverSection, s.Name, &s, doc, src.Path)...)
		}
		for _, a := range c.Agents {
			items = append(items, namedItems(agentSection, a.Name, &a, doc, src.Path)...)
		}
		for _, d := range c.Doors {
			items = append(items, namedItems(doorSection, d.Name, &d, doc, src.Path)...)
		}
		return items
	}
	c.Zone, err = time.LoadLocation(c.Timezone)
	if err != nil {
		return c, &Wrong{origins["timezone"], "timezone: " + unknownZone(c.Timezone).Error()}
	}
	return c, nil
}

// fill sets the field of a key. check and merge have found the value valid. (Viper's Unmarshal, which uses reflection, took a third
// of the time of Load, and made the binary 0.1 MB larger.)
func (k key) fill(v *viper.Viper) {
	if at, isList := k.at.(*[]string); isList {
		*at = v.GetStringSlice(k.name)
		return
	}
	k.store(v.GetString(k.name))
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
func merge(all []key, doc *yamldoc.Doc, src Source) (v *viper.Viper, origins map[string]string, err error) {
	v, origins = viper.New(), map[string]string{}
	for _, k := range all {
		if k.standard != "" {
			v.SetDefault(k.name, k.standard)
		}
		origins[k.name] = standard
	}
	if err := v.MergeConfigMap(doc.Values()); err != nil {
		return nil, nil, &Wrong{src.Path, err.Error()}
	}
	for _, k := range all {
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
	if origins["timezone"] == standard {
		v.SetDefault("timezone", src.Zone())
	}
	return v, origins, nil
}

// standard is the origin of a default.
const standard = "default"

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

// Set changes one key in the file and leaves the rest as it is; values is one text, or the items of a list. The result
// is checked before it replaces the file. The caller holds the lock of the file.
func Set(path, key string, values []string) error {
	k, err := lookup(key)
	if err != nil {
		return err
	}
	for _, v := range values {
		if err := k.check(v); err != nil {
			return &Wrong{key, err.Error()}
		}
	}
	value := any(values)
	if !k.list() {
		if len(values) != 1 {
			return &Wrong{key, fmt.Sprintf("want one value, got %d", len(values))}
		}
		value = values[0]
	}
	return edit(path, func(doc *yamldoc.Doc) (*yamldoc.Doc, error) { return doc.Set(k.path(), value) })
}

// edit replaces the file by what change makes of it, if the settings are valid then.
func edit(path string, change func(*yamldoc.Doc) (*yamldoc.Doc, error)) error {
	text, err := read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	doc, err := yamldoc.Parse(path, text, 1)
	if err != nil {
		return err
	}
	if doc, err = change(doc); err != nil {
		return err
	}
	c := new(Config)
	if err := check(c, keys(c), doc); err != nil {
		return err
	}
	return store.Replace(path, doc.Text())
}

// MergeModels merges lines in the form of models.txt into the setting models, see model.Merge, and keeps comments and order. name is that
// of the text in errors, which are *model.BadLine if a line is invalid. The caller holds the lock of the file.
func MergeModels(path, name, text string) error {
	return edit(path, func(doc *yamldoc.Doc) (*yamldoc.Doc, error) {
		var own []string
		if v, ok := doc.Root().Get(models); ok {
			var err error
			if own, err = v.Texts(); err != nil {
				return nil, err
			}
		}
		merged, err := model.Merge(name, text, own)
		if err != nil {
			return nil, err
		}
		return doc.SetList([]string{models}, merged)
	})
}

const models = "models"
