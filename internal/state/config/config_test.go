package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// source is a config.yaml with this text (none if it is empty), and variables as KEY=value.
func source(t *testing.T, text string, variables ...string) Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if text != "" {
		write(t, path, text)
	}
	lookup := func(name string) (string, bool) {
		for _, v := range variables {
			if key, value, _ := strings.Cut(v, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
	return Source{Path: path, Lookup: lookup, Zone: func() string { return "Asia/Tokyo" }}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func load(t *testing.T, src Source) Config {
	t.Helper()
	c, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	c := load(t, source(t, ""))
	if c.Exists {
		t.Error("a file that is not there exists")
	}
	if c.Timezone != "Asia/Tokyo" || c.Zone.String() != "Asia/Tokyo" || c.Engine != "" || len(c.Env) != 0 || len(c.Delivery.Command) != 0 ||
		c.Delivery.Timeout != 30*time.Second {
		t.Errorf("%+v", c)
	}
	want := `timezone Asia/Tokyo default
engine  default
seal auto default
heartbeat  default
claim  default
quiet 22:00-07:00 default
summary off default
env  default
models  default
fallback  default
chat.model  default
chat.thinking off default
chat.fork-thinking adaptive default
chat.permissions dontAsk default
chat.busy queue default
chat.markdown on default
channels.allowed-tools  default
delivery.command  default
delivery.format text default
delivery.to  default
delivery.critical  default
delivery.timeout 30s default
claude-code.command  default
claude-code.effort high default
claude-code.gateway on default
discord.api  default
discord.owner  default
discord.allow  default
transcribe  default
webhook.listen 127.0.0.1:8420 default
webhook.url  default
webhook.max-body 1MiB default
webhook.inbox 10000 default
webhook.jobs 4 default
native.provider anthropic default
native.base-url  default
native.model sonnet default
native.max-tokens 0 default
native.web-search auto default
spend.per-run 1.00 default
spend.per-day 5.00 default
spend.per-month 100.00 default
spend.runs-per-day 500 default
limits.parallel auto default
compact-at 120000 default
keep.runs 90d default
keep.idle 14d default
keep.transcripts 90d default
keep.history 365d default
keep.backups 20 default
names.user  default
names.bot  default
`
	if got := items(c); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// items are all settings, a line each: key, value, origin.
func items(c Config) string {
	var b strings.Builder
	for _, i := range c.Items() {
		fmt.Fprintln(&b, i.Key, i.Text(), i.Origin)
	}
	return b.String()
}

const whole = `# Mine.
timezone: Europe/Paris
engine: script:a.yaml
env: ["PATH=/bin:/usr/bin", "Case_Kept=Mixed CASE", "EMPTY=", "EQ=a=b"]
models: [sonnet-next alias=sonnet window=9, 'Qwen/Qwen3:8b in=0 out=0']
delivery:
  command:
    - sh
    - -c
    - 'echo "$X", y'
  timeout: 1m30s
claude_code:
  command: /opt/Claude
spend: {per-run: 0.5, per_day: none, per-month: 7, runs-per-day: 3}
keep: {runs: 7d}
names: {user: Ada Lovelace, bot: Ollim}
native: {provider: openai, base_url: "http://[::1]:11434/v1", model: Qwen/Qwen3:8b, max-tokens: 16000}
webhook: {url: "https://hooks.example.org/in", max_body: 25MiB}
`

func TestFile(t *testing.T) {
	src := source(t, whole)
	c := load(t, src)
	if !c.Exists || c.Zone.String() != "Europe/Paris" {
		t.Errorf("%+v", c)
	}
	if want := []string{"PATH=/bin:/usr/bin", "Case_Kept=Mixed CASE", "EMPTY=", "EQ=a=b"}; !slices.Equal(c.Env, want) {
		t.Errorf("env %q, want %q", c.Env, want)
	}
	if want := (Service{Provider: "openai", BaseURL: "http://[::1]:11434/v1", Model: "Qwen/Qwen3:8b", MaxTokens: 16000, WebSearch: "auto"}); c.Native != want {
		t.Errorf("native %+v, want %+v", c.Native, want)
	}
	if want := []string{"sonnet-next alias=sonnet window=9", "Qwen/Qwen3:8b in=0 out=0"}; !slices.Equal(c.Models, want) {
		t.Errorf("models %q, want %q", c.Models, want)
	}
	if want := []string{"sh", "-c", `echo "$X", y`}; !slices.Equal(c.Delivery.Command, want) {
		t.Errorf("command %q, want %q", c.Delivery.Command, want)
	}
	want := `timezone Europe/Paris FILE:2
engine script:a.yaml FILE:3
seal auto default
heartbeat  default
claim  default
quiet 22:00-07:00 default
summary off default
env PATH=/bin:/usr/bin Case_Kept=Mixed CASE EMPTY= EQ=a=b FILE:4
models sonnet-next alias=sonnet window=9 Qwen/Qwen3:8b in=0 out=0 FILE:5
fallback  default
chat.model  default
chat.thinking off default
chat.fork-thinking adaptive default
chat.permissions dontAsk default
chat.busy queue default
chat.markdown on default
channels.allowed-tools  default
delivery.command sh -c echo "$X", y FILE:7
delivery.format text default
delivery.to  default
delivery.critical  default
delivery.timeout 1m30s FILE:11
claude-code.command /opt/Claude FILE:13
claude-code.effort high default
claude-code.gateway on default
discord.api  default
discord.owner  default
discord.allow  default
transcribe  default
webhook.listen 127.0.0.1:8420 default
webhook.url https://hooks.example.org/in FILE:18
webhook.max-body 25MiB FILE:18
webhook.inbox 10000 default
webhook.jobs 4 default
native.provider openai FILE:17
native.base-url http://[::1]:11434/v1 FILE:17
native.model Qwen/Qwen3:8b FILE:17
native.max-tokens 16000 FILE:17
native.web-search auto default
spend.per-run 0.5 FILE:14
spend.per-day none FILE:14
spend.per-month 7 FILE:14
spend.runs-per-day 3 FILE:14
limits.parallel auto default
compact-at 120000 default
keep.runs 7d FILE:15
keep.idle 14d default
keep.transcripts 90d default
keep.history 365d default
keep.backups 20 default
names.user Ada Lovelace FILE:16
names.bot Ollim FILE:16
`
	if got := strings.ReplaceAll(items(c), src.Path, "FILE"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A flag beats the environment, which beats the file, which beats the default.
func TestPrecedence(t *testing.T) {
	const file = "timezone: Europe/Paris\ndelivery:\n  timeout: 1m\n"
	for _, tc := range []struct {
		file, variable string
		want           string
	}{
		{"", "", "Asia/Tokyo 30s default default"},
		{file, "", "Europe/Paris 1m0s FILE:1 FILE:3"},
		{"", "OLLIM_TIMEZONE=UTC OLLIM_DELIVERY_TIMEOUT=2m", "UTC 2m0s OLLIM_TIMEZONE OLLIM_DELIVERY_TIMEOUT"},
		{file, "OLLIM_TIMEZONE=UTC OLLIM_DELIVERY_TIMEOUT=2m", "UTC 2m0s OLLIM_TIMEZONE OLLIM_DELIVERY_TIMEOUT"},
		{file, "OLLIM_TIMEZONE=UTC", "UTC 1m0s OLLIM_TIMEZONE FILE:3"},
		{file, "OLLIM_TIMEZONE= TIMEZONE=UTC", "Europe/Paris 1m0s FILE:1 FILE:3"}, // empty is unset
	} {
		src := source(t, tc.file, strings.Fields(tc.variable)...)
		c := load(t, src)
		zone, err1 := c.Get("timezone")
		timeout, err2 := c.Get("delivery.timeout")
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		got := strings.Join([]string{zone.Text(), timeout.Text(), zone.Origin, timeout.Origin}, " ")
		if got = strings.ReplaceAll(got, src.Path, "FILE"); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
		if c.Zone.String() != zone.Text() || c.Delivery.Timeout.String() != timeout.Text() {
			t.Errorf("%+v: %v and %v are in force", tc, c.Zone, c.Delivery.Timeout)
		}
	}
}

// Every key that is not a list has a variable, and no list has one.
func TestVariables(t *testing.T) {
	for key, value := range map[string]string{
		"timezone": "UTC", "engine": "claude-code", "delivery.timeout": "5s", "delivery.format": "json", "delivery.to": "", "claude-code.command": "/x/Y", "spend.per-run": "2",
		"spend.per-day": "none", "spend.per-month": "1.5", "spend.runs-per-day": "9", "native.provider": "openai", "native.base-url": "https://x/y",
		"native.model": "Opus", "native.max-tokens": "9", "native.web-search": "off", "webhook.listen": "[::1]:80", "webhook.max-body": "512KiB", "webhook.jobs": "9", "models": "", "fallback": "", "env": "", "delivery.command": "",
	} {
		name := "OLLIM_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
		given := value
		if value == "" {
			given = "A=1,B=2"
		}
		item, err := load(t, source(t, "", name+"="+given)).Get(key)
		if origin := map[bool]string{true: "default", false: name}[value == ""]; item.Text() != value || item.Origin != origin || err != nil {
			t.Errorf("%s: %q from %s, %v", key, item.Text(), item.Origin, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"timezone: Paris\n":   `FILE:1: timezone: unknown zone "Paris": write one like Europe/Paris`,
		"timezone: Local\n":   `FILE:1: timezone: unknown zone "Local": write one like Europe/Paris`,
		"timezone: ''\n":      `FILE:1: timezone: unknown zone "": write one like Europe/Paris`,
		"timezone:\n":         "FILE:1: timezone: want text, not an empty value",
		"timezone: [UTC]\n":   "FILE:1: timezone: want text, not a list",
		"engine: gpt\n":       `FILE:1: engine: unknown engine "gpt": write claude-code, native, acp:NAME or script:FILE`,
		"engine: 'script:'\n": `FILE:1: engine: unknown engine "script:": write claude-code, native, acp:NAME or script:FILE`,
		"env: A=1\n":          `FILE:1: env: want a list like [a, b], not "A=1"`,
		"env: {A: 1}\n":       "FILE:1: env: want a list like [a, b], not a section",
		"env:\n- A=1\n- B\n":  `FILE:3: env: item 2: "B" is not KEY=value`,
		"env: ['=1']\n":       `FILE:1: env: item 1: "=1" is not KEY=value`,
		"env: ['A B=1']\n":    `FILE:1: env: item 1: "A B=1" is not KEY=value`,
		"env: [\"A=\\0\"]\n":  "FILE:1: env: item 1: a NUL character",
		"env: [A: 1]\n":       "FILE:1: env: item 1: want text, not a section",
		"channels:\n  allowed-tools: [WebSearch, 'Bash(*)']\n": `FILE:2: channels.allowed-tools: item 2: tool pattern "Bash(*)": it allows every command; name one, such as Bash(ollim tasks *)`,
		"delivery: sh\n":                                           "FILE:1: delivery: want a section of `key: value` lines, not \"sh\"",
		"delivery:\n  comand: [a]\n":                               "FILE:2: delivery.comand: unknown key (did you mean command?)",
		"delivery:\n  command: sh\n":                               `FILE:2: delivery.command: want a list like [a, b], not "sh"`,
		"delivery:\n  command: [\"a\\0\"]\n":                       "FILE:2: delivery.command: item 1: a NUL character",
		"delivery:\n  to: [Telegram]\n":                            "FILE:2: delivery.to: item 1: \"Telegram\" is not the name of a door: want lower-case letters, digits and hyphens, at most 32",
		"delivery:\n  format: yaml\n":                              `FILE:2: delivery.format: "yaml": want text or json`,
		"delivery:\n  timeout: 30\n":                               `FILE:2: delivery.timeout: "30" is not a duration: write one like 30s`,
		"delivery:\n  timeout: 0s\n":                               `FILE:2: delivery.timeout: "0s" is not a duration: write one like 30s`,
		"delivery:\n  timeout: -5s\n":                              `FILE:2: delivery.timeout: "-5s" is not a duration: write one like 30s`,
		"delivery.timeout: 30s\n":                                  "FILE:1: delivery.timeout: unknown key",
		"claude-code:\n  command: claude\n":                        `FILE:2: claude-code.command: "claude" is not an absolute path`,
		"discord:\n  api: http://example.org\n":                    `FILE:2: discord.api: "http://example.org" would get the token unencrypted: want https, or http on this machine`,
		"discord:\n  api: https://discord.com/api\n":               `FILE:2: discord.api: "https://discord.com/api" is not scheme and host: write them like https://discord.com`,
		"discord:\n  owner: me\n":                                  `FILE:2: discord.owner: "me" is not an id: copy it in Discord (Settings, Advanced, Developer Mode)`,
		"discord:\n  allow: [12345678901234567]\n  owner: 1\n":     `FILE:3: discord.owner: "1" is not an id: copy it in Discord (Settings, Advanced, Developer Mode)`,
		"native:\n  provider: google\n":                            `FILE:2: native.provider: unknown provider "google": write anthropic or openai`,
		"native:\n  base-url: localhost:11434\n":                   `FILE:2: native.base-url: "localhost:11434" is not the address of a service: write one like http://localhost:11434/v1`,
		"webhook:\n  url: x.org\n":                                 `FILE:2: webhook.url: want the address of the server as senders see it, without a password and a query, such as https://hooks.example.org`,
		"webhook:\n  url: https://me:hush@x.org\n":                 `FILE:2: webhook.url: want the address of the server as senders see it, without a password and a query, such as https://hooks.example.org`,
		"native:\n  base-url: ''\n":                                `FILE:2: native.base-url: "" is not the address of a service: write one like http://localhost:11434/v1`,
		"native:\n  base-url: https://me:secret@x/\n":              `FILE:2: native.base-url: the address of a service must have no password and no query; a key is stored by ollim secret set`,
		"native:\n  base-url: http://:80/v1\n":                     `FILE:2: native.base-url: "http://:80/v1" is not the address of a service: write one like http://localhost:11434/v1`,
		"native:\n  base-url: https://x/?key=1\n":                  `FILE:2: native.base-url: the address of a service must have no password and no query; a key is stored by ollim secret set`,
		"native:\n  model: a b\n":                                  `FILE:2: native.model: "a b" is not the name of a model`,
		"native:\n  max-tokens: 16k\n":                             `FILE:2: native.max-tokens: "16k" is not a number of tokens: write one like 16000`,
		"native:\n  max-tokens: 010\n":                             `FILE:2: native.max-tokens: "010" is not a number of tokens: write one like 16000`,
		"native:\n  max-tokens: -1\n":                              `FILE:2: native.max-tokens: "-1" is not a number of tokens: write one like 16000`,
		"webhook:\n  listen: 8420\n":                               `FILE:2: webhook.listen: "8420" is not an address to listen on: write one like 127.0.0.1:8420`,
		"webhook:\n  listen: 'a:0'\n":                              `FILE:2: webhook.listen: "a:0" is not an address to listen on: write one like 127.0.0.1:8420`,
		"webhook:\n  max-body: 26MiB\n":                            `FILE:2: webhook.max-body: "26MiB": want a size up to 25MiB, such as 1MiB`,
		"webhook:\n  max-body: 1MB\n":                              `FILE:2: webhook.max-body: "1MB": want a size up to 25MiB, such as 1MiB`,
		"webhook:\n  jobs: 0\n":                                    `FILE:2: webhook.jobs: "0": want a number from 1 to 1000`,
		"webhook:\n  inbox: 010\n":                                 `FILE:2: webhook.inbox: "010": want a number from 1 to 1000000`,
		"models: claude in=1\n":                                    `FILE:1: models: want a list like [a, b], not "claude in=1"`,
		"models:\n- sonnet-next window=9\n- sonnet-next windw=9\n": `FILE:3: models: item 2: sonnet-next: "windw": unknown key (did you mean window?)`,
		"models: [x in=1]\n":                                       "FILE:1: models: item 1: x: in without out",
		"models: ['']\n":                                           "FILE:1: models: item 1: want a line such as `claude-sonnet-4-5 window=200000 in=3 out=15`, not an empty one",
		"spend:\n  per-run: lots\n":                                `FILE:2: spend.per-run: "lots" is not an amount: write a number such as 1.50, or none`,
		"spend:\n  per-run: -1\n":                                  `FILE:2: spend.per-run: "-1" is not an amount: write a number such as 1.50, or none`,
		"spend:\n  per-run: .inf\n":                                `FILE:2: spend.per-run: ".inf" is not an amount: write a number such as 1.50, or none`,
		"timezon: UTC\n":                                           "FILE:1: timezon: unknown key (did you mean timezone?)",
		"Timezone: UTC\n":                                          "FILE:1: Timezone: unknown key (did you mean timezone?)",
		"timezone: UTC\n\ntimezone: UTC\n":                         "FILE:3: timezone: given twice (as timezone on line 1)",
		"claude_code:\nclaude-code:\n":                             "FILE:2: claude-code: given twice (as claude_code on line 1)",
		"timezone: * \n":                                           `FILE:1: timezone: a value that starts with * must be quoted: timezone: "*"`,
		"- a\n":                                                    "FILE:1: want `key: value` lines",
		"timezone: UTC\n---\n":                                     "FILE:2: more than one YAML document",
		"timezone: x\nengine: y\ncolor: z\n":                       "FILE:1: timezone: unknown zone \"x\": write one like Europe/Paris (and 2 more)",
	} {
		src := source(t, text, "OLLIM_TIMEZONE=UTC", "OLLIM_ENGINE=claude-code") // which do not heal the file
		_, err := Load(src)
		var faults yamldoc.Faults
		if !errors.As(err, &faults) || strings.ReplaceAll(err.Error(), src.Path, "FILE") != want {
			t.Errorf("%q\n got %v\nwant %s", text, err, want)
		}
	}
}

// A path that is not a file, or far too large, is reported as a fault without blocking.
func TestUnfitFiles(t *testing.T) {
	dir := t.TempDir()
	large, pipe := filepath.Join(dir, "large.yaml"), filepath.Join(dir, "pipe.yaml")
	write(t, large, strings.Repeat("\n", 1<<20+1))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := source(t, "")
	empty.Path = os.DevNull
	if c, err := Load(empty); err != nil || !c.Exists {
		t.Errorf("%s: %v, %v", os.DevNull, c.Exists, err)
	}
	if err := Set(os.DevNull, "timezone", []string{"UTC"}); err == nil {
		t.Error("a device was replaced")
	}
	for path, reason := range map[string]string{large: "larger than 1048576 bytes", pipe: "not a file"} {
		src := source(t, "")
		src.Path = path
		_, loaded := Load(src)
		_, tools := LoadTools(path)
		_, secrets := LoadSecrets(path, false)
		for what, err := range map[string]error{"Load": loaded, "LoadTools": tools, "LoadSecrets": secrets, "Set": Set(path, "timezone", []string{"UTC"})} {
			var faults yamldoc.Faults
			if !errors.As(err, &faults) || !strings.HasPrefix(err.Error(), path+": ") || !strings.HasSuffix(err.Error(), reason) {
				t.Errorf("%s: %v, want %s", what, err, reason)
			}
		}
	}
}

func TestGoodFiles(t *testing.T) {
	for _, text := range []string{
		"# nothing\n", "\n", "---\n", "delivery:\n", "delivery:\n  # timeout: 5s\nspend:\n", "delivery: {}\n", "env: []\n", "\ufefftimezone: UTC\r\nengine: claude-code\r\n",
		"engine: native\nnative:\n  # model: opus\n", "models: [claude-sonnet-5-5 in=2.5, claude-sonnet-5-5 alias=s]\n", "engine: script:/a b/c#d.yaml\n", "env: [A=1]\ndelivery: {command: [], timeout: 1h}\n",
	} {
		c, err := Load(source(t, text))
		if err != nil || !c.Exists {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWrongElsewhere(t *testing.T) {
	for _, tc := range []struct{ variable, want string }{
		{"OLLIM_TIMEZONE=Mars", `OLLIM_TIMEZONE: unknown zone "Mars": write one like Europe/Paris`},
		{"OLLIM_DELIVERY_TIMEOUT=soon", `OLLIM_DELIVERY_TIMEOUT: "soon" is not a duration: write one like 30s`},
		{"OLLIM_SPEND_PER_DAY=x", `OLLIM_SPEND_PER_DAY: "x" is not an amount: write a number such as 1.50, or none`},
	} {
		_, err := Load(source(t, "", tc.variable))
		var wrong *Wrong
		if !errors.As(err, &wrong) || err.Error() != tc.want {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	src := source(t, "")
	src.Zone = func() string { return "Mars" }
	var wrong *Wrong
	if _, err := Load(src); !errors.As(err, &wrong) || wrong.Origin != "default" {
		t.Errorf("a system zone that nobody knows: %v", err)
	}
	src = source(t, "")
	if err := os.Mkdir(src.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(src); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder: %v", err)
	}
}

func TestGetAndKeys(t *testing.T) {
	c := load(t, source(t, whole))
	for _, key := range Keys() {
		for _, name := range []string{key, strings.ReplaceAll(key, "-", "_")} {
			if item, err := c.Get(name); err != nil || item.Key != key {
				t.Errorf("Get(%q): %+v, %v", name, item, err)
			}
		}
	}
	for name, want := range map[string]string{
		"timezon":         `unknown key "timezon" (did you mean timezone?)`,
		"delivery.comand": `unknown key "delivery.comand" (did you mean delivery.command?)`,
		"delivery":        `unknown key "delivery" (did you mean delivery.to?)`,
		"":                `unknown key ""`,
	} {
		_, err := c.Get(name)
		var unknown *UnknownKey
		if !errors.As(err, &unknown) || err.Error() != want {
			t.Errorf("Get(%q): %v, want %s", name, err, want)
		}
	}
}

// The name of a server that cannot be one is the fault, not the key.
func TestSetOfABadServerName(t *testing.T) {
	for _, name := range []string{"mcp-servers.Docs.url", "mcp-servers.ollim.url"} {
		err := Set(filepath.Join(t.TempDir(), "config.yaml"), name, []string{"https://example.com"})
		var wrong *Wrong
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAmount(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "1.50": "1.5", "1e3": "1000", "none": "+Inf", "": "", "-1": "", "None": "", "inf": "", "nan": "", "1,5": "", "1e9": "", "$1": "",
	} {
		got, err := amount(text)
		if (err != nil) != (want == "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("Amount(%q) = %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1000": 1000, "1KiB": 1024, "1MiB": 1 << 20, "25MiB": 25 << 20, "25600KiB": 25 << 20,
		"": 0, "0": 0, "-1": 0, "MiB": 0, "1 MiB": 0, "26MiB": 0, "26214401": 0, "9223372036854775807KiB": 0, "1MB": 0, "1.5MiB": 0,
	} {
		if got, err := size(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, c := range []struct {
		webhook hookServer
		want    string
	}{
		{hookServer{Listen: "127.0.0.1:8420"}, "http://127.0.0.1:8420/hook/a.b"},
		{hookServer{Listen: "127.0.0.1:8420", URL: "https://hooks.example.org/in/"}, "https://hooks.example.org/in/hook/a.b"},
	} {
		if got := c.webhook.Address("a.b"); got != c.want {
			t.Errorf("%+v: %s, want %s", c.webhook, got, c.want)
		}
	}
}
