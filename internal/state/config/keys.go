package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/viper"

	"github.com/ollim/ollim/internal/platform/httpget"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/model"
)

// key is one setting. This table is the only list of them.
type key struct {
	name     string
	list     bool
	about    string             // for the commented line in a new config.yaml
	example  string             // the line itself, default value included
	standard any                // a string, an int or a duration; nil: "" or no items
	check    func(string) error // of the text, or of each item of a list
}

// keys returns the table, in the order of a new config.yaml.
func keys() []key {
	return slices.Concat(general(), chat(), programs(), discord(), webhook(), native(), limits())
}

func general() []key {
	return []key{
		{
			name: "timezone", about: "Time zone of schedules and output.", example: "timezone: Europe/Paris",
			check: func(s string) error {
				if _, err := time.LoadLocation(s); err != nil || s == "Local" || s == "" {
					return fmt.Errorf("unknown zone %q: write one like Europe/Paris", s)
				}
				return nil
			},
		},
		{
			name: "engine", example: "engine: claude-code",
			about: "Engine: claude-code runs the claude command; native needs no other program and calls a model\n" +
				"service itself; script:FILE plays a file of turns, without a model.",
			check: CheckEngine,
		},
		{
			name: "seal", example: "seal: auto",
			about: "The seal: the kernel keeps the programs that agents start from reading secrets and state, and from changing files\n" +
				"elsewhere. auto seals where the kernel can, on refuses to run where it cannot, off seals only jobs that say seal: on.\n" +
				"See ollim(7).",
			standard: sealAuto,
			check:    oneOf(sealAuto, SealOn, SealOff),
		},
		{
			name: "heartbeat", example: "heartbeat: https://hc-ping.com/ID",
			about: "URL of an outside monitor, called by every `ollim tick` that worked, so that the monitor notices silence.",
			check: httpget.CheckURL,
		},
		{
			name: "env", list: true, about: "Environment of child processes, as KEY=value; HOME, PATH and TZ are inherited " +
				"unless set here.",
			example: "env: [\"PATH=/usr/local/bin:/usr/bin:/bin\"]",
			check: func(s string) error {
				if name, _, found := strings.Cut(s, "="); !found || name == "" || strings.ContainsAny(name, " \t\n") {
					return fmt.Errorf("%q is not KEY=value", s)
				}
				return checkNUL(s)
			},
		},
		{
			name: "models", list: true, about: "Additions and changes to the table of `ollim model list`: windows in tokens, " +
				"prices in USD per million tokens.",
			example: "models: [\"qwen3:8b window=32768 in=0 out=0\"]",
			check: func(s string) error {
				_, err := model.Known().With([]string{s})
				return err
			},
		},
	}
}

func chat() []key {
	return []key{
		{
			name: "chat.model", about: "Model of the main conversation and its interactive forks; the default is the engine's.", example: "model: opus",
			check: func(s string) error {
				if s == "" { // as it was before
					return nil
				}
				return checkModel(s)
			},
		},
		{
			name: "chat.thinking", about: "Thinking in the main conversation: off, adaptive, true or a number of tokens.", example: "thinking: off",
			standard: "off",
			check:    func(s string) error { _, err := model.ParseThinking(s); return err },
		},
		{
			name: "chat.permissions", example: "permissions: dontAsk",
			about: "Tool uses that no pattern allows: dontAsk refuses them; default asks you, on the terminal of the turn or\n" +
				"in Discord; acceptEdits does the same, but lets the agent write files of the data directory without asking.",
			standard: string(policy.DontAsk),
			check:    policy.CheckMode,
		},
		{
			name: "chat.busy", example: "busy: queue",
			about:    "A message that arrives during a turn: queue lets it wait; interrupt stops the turn.",
			standard: busyQueue,
			check:    oneOf(busyQueue, BusyInterrupt),
		},
		{
			name: "channels.allowed-tools", list: true, example: "allowed-tools: [WebSearch]",
			about: "Tools of channel turns (`ollim chat --channel`), as in the allowed-tools of jobs. Anyone who writes in a\n" +
				"channel can have them used.",
			check: func(s string) error { return policy.Judge(s) },
		},
	}
}

func programs() []key {
	return []key{
		{
			name: "delivery.command", list: true, example: recipes,
			check: checkNUL,
		},
		{
			name: "delivery.timeout", about: "Time limit of one attempt.", example: "timeout: 30s",
			standard: 30 * time.Second,
			check: func(s string) error {
				if d, err := time.ParseDuration(s); err != nil || d <= 0 {
					return fmt.Errorf("%q is not a duration: write one like 30s", s)
				}
				return nil
			},
		},
		{
			name: "claude-code.command", about: "Absolute path of the claude command, because cron has a short PATH.", example: "command: /usr/local/bin/claude",
			check: func(s string) error {
				if !filepath.IsAbs(s) {
					return fmt.Errorf("%q is not an absolute path", s)
				}
				return nil
			},
		},
	}
}

func limits() []key {
	return []key{
		amount("spend.per-run", "Maximum cost of one automatic run in USD; none means no limit.", "1.00"),
		amount("spend.per-day", "Maximum cost per day; at the limit no automatic run starts until the next day.", "5.00"),
		amount("spend.per-month", "Maximum cost per month.", "50.00"),
		amount("spend.runs-per-day", "Maximum number of automatic runs per day that reach an engine.", "500"),
		{
			name: "keep.runs", about: "How long run records are kept.", example: "runs: 90d",
			standard: "90d",
			check:    func(s string) error { _, err := Days(s); return err },
		},
		name("names.user", "Name of the owner.", "user: Ada"),
		name("names.bot", "Name of the agent.", "bot: Ollim"),
	}
}

func name(full, about, example string) key {
	return key{name: full, about: about, example: example, check: CheckName}
}

// CheckName rejects an invalid name: names become part of every prompt.
func CheckName(s string) error {
	if s == "" || utf8.RuneCountInString(s) > 60 || !utf8.ValidString(s) || strings.TrimSpace(s) != s ||
		strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%q is not a name: want at most 60 characters on one line", s)
	}
	return nil
}

// Days parses a retention time, such as 90d, in days.
func Days(s string) (int, error) {
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
	ClaudeCode = "claude-code" // the claude command
	Native     = "native"      // the built-in loop
)

// amount returns the key of a limit.
func amount(name, about, normal string) key {
	_, last, _ := strings.Cut(name, ".")
	return key{
		name: name, about: about, example: last + ": " + normal,
		standard: normal,
		check:    func(s string) error { _, err := Amount(s); return err },
	}
}

// CheckEngine returns an error if the name of an engine is invalid.
func CheckEngine(name string) error {
	if kind, file, found := strings.Cut(name, ":"); name == ClaudeCode || name == Native || found && kind == "script" && file != "" {
		return nil
	}
	return fmt.Errorf("unknown engine %q: write %s, %s or script:FILE", name, ClaudeCode, Native)
}

func (k key) path() []string { return strings.Split(k.name, ".") }

func (k key) last() string { return k.name[strings.LastIndexByte(k.name, '.')+1:] }

// variable returns the environment variable of a key; lists have none, because there is no obvious way to split them.
func (k key) variable() string {
	if k.list {
		return ""
	}
	return "OLLIM_" + strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(k.name, ".", "_"), "-", "_"))
}

// value is the resolved value of a key, in the type of its default.
func (k key) value(v *viper.Viper) any {
	if k.list {
		return append([]string{}, v.GetStringSlice(k.name)...) // [], never null
	}
	switch k.standard.(type) {
	case int:
		return v.GetInt(k.name)
	case time.Duration:
		return v.GetDuration(k.name).String()
	}
	return v.GetString(k.name)
}

// parse converts the arguments of `config set` to a value.
func (k key) parse(values []string) (any, error) {
	for _, v := range values {
		if err := k.check(v); err != nil {
			return nil, err
		}
	}
	if k.list {
		return values, nil
	}
	if len(values) != 1 {
		return nil, fmt.Errorf("want one value, got %d", len(values))
	}
	return values[0], nil
}

func lookup(name string) (key, error) {
	all := keys()
	if i := slices.IndexFunc(all, func(k key) bool { return k.name == yamldoc.Kebab(name) }); i >= 0 {
		return all[i], nil
	}
	return lookupServer(name)
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
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

// Get returns one resolved setting; the error is an *UnknownKey, or a *Wrong of a server's name.
func (c Config) Get(name string) (Item, error) {
	k, err := lookup(name)
	if err != nil {
		return Item{}, err
	}
	items := c.items()
	if i := slices.IndexFunc(items, func(i Item) bool { return i.Key == k.name }); i >= 0 {
		return items[i], nil
	}
	return Item{}, &UnknownKey{Name: name} // of a server that is not configured so
}

// check parses a whole file strictly; the error is a yamldoc.Faults.
func check(doc *yamldoc.Doc) (s Servers, err error) {
	err = doc.Decode(append(fields(keys()), readServers(doc, &s)))
	return s, err
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

func (k key) read(v yamldoc.Value) error {
	if k.list {
		_, err := v.Texts(k.check)
		return err
	}
	text, err := v.Text()
	if err != nil {
		return err
	}
	return k.check(text)
}

// Check returns an error if a value for Template is invalid: the text of a value, or a list as written in the file.
func Check(name, text string) error {
	k, err := lookup(name)
	if err != nil {
		return err
	}
	if !k.list {
		return k.check(text)
	}
	doc, err := yamldoc.Parse(name, []byte(k.last()+": "+text+"\n"), 1)
	if err != nil {
		return err
	}
	return doc.Decode([]yamldoc.Field{{Key: k.last(), Read: k.read}})
}
