package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

func TestSet(t *testing.T) {
	for name, tc := range map[string]struct {
		before, key string
		values      []string
		after       string
	}{
		"no file":         {"", "timezone", []string{"UTC"}, "timezone: UTC\n"},
		"no file, nested": {"", "delivery.timeout", []string{"5s"}, "delivery:\n  timeout: 5s\n"},
		"comments only":   {"# mine\n", "engine", []string{"claude-code"}, "# mine\nengine: claude-code\n"},
		"replaced":        {"timezone: UTC # home\nengine: claude-code\n", "timezone", []string{"Europe/Paris"}, "timezone: Europe/Paris # home\nengine: claude-code\n"},
		"hostile":         {"", "engine", []string{"script:a: b #c'\".yaml"}, "engine: 'script:a: b #c''\".yaml'\n"},
		"whole number":    {"", "native.max-tokens", []string{"16000"}, "native:\n  max-tokens: \"16000\"\n"},
		"lines":           {"", "models", []string{"a/b:1 alias=x in=1 out=2", "c window=9"}, "models:\n  - a/b:1 alias=x in=1 out=2\n  - c window=9\n"},
		"number":          {"", "spend.per-run", []string{"2"}, "spend:\n  per-run: \"2\"\n"},
		"list":            {"# mine\nenv: [A=1] # old\n", "env", []string{"A=1", "B=x y", "C="}, "# mine\nenv: # old\n  - A=1\n  - B=x y\n  - C=\n"},
		"empty list":      {"env: [A=1]\n", "env", nil, "env: []\n"},
		"nested list":     {"delivery:\n  # how\n  timeout: 5s\n", "delivery.command", []string{"sh", "-c", "a 'b' \"c\""}, "delivery:\n  # how\n  timeout: 5s\n  command:\n    - sh\n    - -c\n    - a 'b' \"c\"\n"},
		"snake":           {"claude_code:\n  command: /a\n", "claude_code.command", []string{"/b"}, "claude_code:\n  command: /b\n"},
		"null section":    {"delivery:\n  # timeout: 30s\n\nengine: claude-code\n", "delivery.timeout", []string{"5s"}, "delivery:\n  timeout: 5s\n  # timeout: 30s\n\nengine: claude-code\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if tc.before != "" {
				write(t, path, tc.before)
			}
			if err := Set(path, tc.key, tc.values); err != nil {
				t.Fatal(err)
			}
			if got := content(t, path); got != tc.after {
				t.Errorf("\n got %q\nwant %q", got, tc.after)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

func TestSetRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		before, key string
		values      []string
		want        string
	}{
		"unknown":        {"", "timezon", []string{"UTC"}, `unknown key "timezon" (did you mean timezone?)`},
		"bad value":      {"timezone: UTC\n", "timezone", []string{"Mars"}, `timezone: unknown zone "Mars": write one like Europe/Paris`},
		"no value":       {"timezone: UTC\n", "timezone", nil, "timezone: want one value, got 0"},
		"two values":     {"timezone: UTC\n", "timezone", []string{"UTC", "UTC"}, "timezone: want one value, got 2"},
		"bad item":       {"env: [A=1]\n", "env", []string{"A=1", "B"}, `env: "B" is not KEY=value`},
		"not utf-8":      {"", "env", []string{"A=\xff"}, "env: not valid UTF-8"},
		"broken file":    {"timezone: [\n", "timezone", []string{"UTC"}, "FILE:1: not valid YAML: did not find expected node content"},
		"faulty file":    {"colour: red\n", "timezone", []string{"UTC"}, "FILE:1: colour: unknown key"},
		"other is wrong": {"timezone: Mars\n", "engine", []string{"claude-code"}, `FILE:1: timezone: unknown zone "Mars": write one like Europe/Paris`},
		"twice":          {"timezone: UTC\ntimezone: UTC\n", "timezone", []string{"Europe/Paris"}, "FILE:2: timezone: given twice (as timezone on line 1)"},
		"no section":     {"delivery: hello\n", "delivery.timeout", []string{"5s"}, "delivery.timeout: delivery is not a section: edit it by hand"},
		"braces":         {"delivery: {timeout: 5s}\n", "delivery.timeout", []string{"6s"}, "delivery.timeout: written in one line with braces: edit it by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if tc.before != "" {
				write(t, path, tc.before)
			}
			err := Set(path, tc.key, tc.values)
			if err == nil || strings.ReplaceAll(err.Error(), path, "FILE") != tc.want {
				t.Errorf("%v, want %s", err, tc.want)
			}
			if tc.before == "" {
				if _, err := os.Stat(path); err == nil {
					t.Error("a file was made")
				}
				return
			}
			if got := content(t, path); got != tc.before {
				t.Errorf("the file changed to %q", got)
			}
		})
	}
}

// values are one good value for every key, as Check and Template take it, and as Set does.
func values() map[string][]string {
	return map[string][]string{
		"timezone": {"America/New_York"}, "engine": {"script:a: b.yaml"}, "seal": {"on"}, "heartbeat": {"https://hc-ping.com/a?b=c"}, "claim": {"/opt/claim slot"}, "quiet": {"23:30-06:15"}, "summary": {"weekly"}, "env": {"A=1", "B=x, y"}, "delivery.command": {"sh", "-c", "cat # it's"},
		"delivery.format": {"json"}, "delivery.to": {"telegram", "discord", "command"}, "delivery.critical": {"discord"}, "delivery.timeout": {"5s"}, "claude-code.command": {"/opt/c l"}, "claude-code.effort": {"low"}, "claude-code.gateway": {"off"}, "discord.api": {"https://example.org"}, "discord.owner": {"123456789012345678"},
		"discord.allow": {"123456789012345678", "12345678901234567890"}, "transcribe": {"sh", "-c", "cat"}, "webhook.listen": {"[::1]:80"}, "webhook.url": {"https://h/x"}, "webhook.max-body": {"9KiB"}, "webhook.inbox": {"9"}, "webhook.jobs": {"9"}, "models": {"a/b:1 alias=x,y in=1 out=2", "c"}, "fallback": {"sonnet", "a/b:1"},
		"native.provider": {"openai"}, "native.base-url": {"http://h:1/v1"}, "native.model": {"a/b:1"}, "native.max-tokens": {"9"}, "native.web-search": {"on"},
		"spend.per-run": {"0.1"}, "spend.per-day": {"none"}, "spend.per-month": {"9"}, "spend.runs-per-day": {"7"}, "compact-at": {"90000"}, "limits.parallel": {"12"}, "keep.runs": {"8d"}, "keep.idle": {"3d"}, "keep.transcripts": {"9d"}, "keep.history": {"99d"}, "keep.backups": {"4"}, "chat.model": {"opus"}, "chat.thinking": {"adaptive"}, "chat.fork-thinking": {"main"}, "chat.permissions": {"acceptEdits"}, "chat.busy": {"interrupt"}, "chat.markdown": {"off"}, "channels.allowed-tools": {"WebSearch", "Bash(date *)"}, "names.user": {"Ada L"}, "names.bot": {"Bo"},
	}
}

// raw is a list as it stands in a file.
func raw(list []string) string {
	var items []string
	for _, item := range list {
		items = append(items, "'"+strings.ReplaceAll(item, "'", "''")+"'")
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func isList(key string) bool {
	return slices.Contains([]string{"env", "models", "delivery.command", "delivery.to", "delivery.critical", "channels.allowed-tools", "discord.allow", "transcribe", "fallback"}, key)
}

func TestTemplate(t *testing.T) {
	src := source(t, Template(nil))
	if got, want := items(load(t, src)), items(load(t, source(t, ""))); got != want {
		t.Errorf("as it is, it sets something:\n%s", got)
	}
	set := map[string]string{}
	for key, value := range values() {
		if set[key] = value[0]; isList(key) {
			set[key] = raw(value)
		}
		if err := Check(key, set[key]); err != nil {
			t.Errorf("Check(%s): %v", key, err)
		}
	}
	write(t, src.Path, Template(set))
	c := load(t, src)
	for _, key := range Keys() {
		item, err := c.Get(key)
		if err != nil || item.Text() != strings.Join(values()[key], " ") || item.Origin == "default" {
			t.Errorf("%s is %q from %s, %v", key, item.Text(), item.Origin, err)
		}
		one := source(t, Template(map[string]string{key: set[key]}))
		if item, err := load(t, one).Get(key); err != nil || item.Text() != strings.Join(values()[key], " ") {
			t.Errorf("%s alone is %q, %v", key, item.Text(), err)
		}
	}
}

// Whoever takes the # away from a line of the template has a file that works, whichever line, and also if they do so for
// every key.
func TestTemplateUncommented(t *testing.T) {
	text := Template(nil)
	lines := strings.Split(text, "\n")
	examples := map[string][]int{} // by key, where its examples stand
	section := ""
	for i, line := range lines {
		if m := regexp.MustCompile(`^([a-z-]+):$`).FindStringSubmatch(line); m != nil {
			section = m[1] + "."
		}
		if m := regexp.MustCompile(`^( *)# *([a-z-]+):.*$`).FindStringSubmatch(line); m != nil {
			key := map[bool]string{true: section}[m[1] != ""] + m[2]
			examples[key] = append(examples[key], i)
		}
	}
	keys := Keys()
	for _, name := range []string{"github", "docs"} { // whose settings are on one line
		at := examples["mcp-servers."+name]
		delete(examples, "mcp-servers."+name)
		c := load(t, source(t, strings.Replace(text, lines[at[0]], strings.Replace(lines[at[0]], "# ", "", 1), 1)))
		if _, found := c.Servers.Find(name); !found || len(c.Servers) != 1 {
			t.Errorf("%s: got servers %v", name, c.Servers)
		}
	}
	at := examples["doors.telegram"]
	delete(examples, "doors.telegram")
	c := load(t, source(t, strings.Replace(text, lines[at[0]], strings.Replace(lines[at[0]], "# ", "", 1), 1)))
	if d, found := c.Doors.Find("telegram"); !found || d.Owner != "123456789" || len(c.Doors) != 1 {
		t.Errorf("got doors %v", c.Doors)
	}
	at = examples["acp.opencode"]
	delete(examples, "acp.opencode")
	c = load(t, source(t, strings.Replace(text, lines[at[0]], strings.Replace(lines[at[0]], "# ", "", 1), 1)))
	if a, found := c.Agents.Find("opencode"); !found || a.ProfileName() != "opencode" || len(c.Agents) != 1 {
		t.Errorf("got agents %v", c.Agents)
	}
	if got := slices.Sorted(maps.Keys(examples)); !slices.Equal(got, slices.Sorted(slices.Values(keys))) {
		t.Fatalf("it shows %q, want every key", got)
	}
	without := func(at ...int) Config {
		some := slices.Clone(lines)
		for _, i := range at {
			some[i] = strings.Replace(some[i], "# ", "", 1)
		}
		return load(t, source(t, strings.Join(some, "\n")))
	}
	for key, all := range examples {
		for _, i := range all {
			if item, err := without(i).Get(key); err != nil || item.Origin == "default" {
				t.Errorf("%q sets nothing: %+v, %v", lines[i], item, err)
			}
			at := []int{i}
			for other, list := range examples {
				if other != key {
					at = append(at, list[0])
				}
			}
			for _, item := range without(at...).Items() {
				if item.Origin == "default" {
					t.Errorf("%s is not set when all are", item.Key)
				}
			}
		}
	}
}

// Setting every key of a new file, one after the other, keeps each of its lines.
func TestSetInTemplate(t *testing.T) {
	text := Template(nil)
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, text)
	for _, key := range Keys() {
		for range 2 {
			if err := Set(path, key, values()[key]); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
		}
	}
	rest := content(t, path)
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(rest, line)
		if !found || strings.Contains(before, "\n#") {
			t.Fatalf("%q is gone, or out of order:\n%s", line, content(t, path))
		}
		rest = after
	}
	src := source(t, content(t, path))
	c := load(t, src)
	for key, value := range values() {
		if item, err := c.Get(key); err != nil || item.Text() != strings.Join(value, " ") {
			t.Errorf("%s is %q, %v", key, item.Text(), err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct{ key, text, want string }{
		{"timezone", "UTC", ""},
		{"timezone", "Mars", `unknown zone "Mars": write one like Europe/Paris`},
		{"timezon", "UTC", `unknown key "timezon" (did you mean timezone?)`},
		{"env", "[A=1]", ""},
		{"env", "[A=1, B]", `env:1: env: item 2: "B" is not KEY=value`},
		{"env", "A=1", `env:1: env: want a list like [a, b], not "A=1"`},
		{"delivery.command", "[sh, -c, 'a'", "delivery.command:1: not valid YAML: did not find expected ',' or ']'"},
		{"delivery.command", "[a]\nmore: b", "delivery.command:2: more: unknown key"},
	} {
		err := Check(tc.key, tc.text)
		if got := map[bool]string{true: ""}[err == nil]; err != nil && err.Error() != tc.want || err == nil && got != tc.want {
			t.Errorf("Check(%q, %q): %v, want %q", tc.key, tc.text, err, tc.want)
		}
	}
}

func TestSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.env")
	s, err := LoadSecrets(path, false)
	if got := s.For("engine"); got != nil || err != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
	write(t, path, "# mine\n\nengine.KEY=a=b c\r\ndelivery.TOKEN=\n  engine.Other=x # y\n")
	s, err = LoadSecrets(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.For("engine"); !slices.Equal(got, []string{"KEY=a=b c", "Other=x # y"}) {
		t.Errorf("engine %q", got)
	}
	if got := s.For("delivery"); !slices.Equal(got, []string{"TOKEN="}) {
		t.Errorf("delivery %q", got)
	}
	if got := s.For("gate"); got != nil {
		t.Errorf("gate %q", got)
	}
	for _, line := range []string{"KEY=topsecret", "engine.KEY", ".KEY=topsecret", "engine.=topsecret", "export engine.KEY=topsecret", "engine.A B=topsecret", "topsecret"} {
		write(t, path, "# mine\n"+line+"\n")
		_, err := LoadSecrets(path, false)
		if err == nil || !strings.HasPrefix(err.Error(), path+":2: want PART.KEY=value") || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o610} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var faults yamldoc.Faults
		if _, err := LoadSecrets(path, false); !errors.As(err, &faults) || !strings.Contains(err.Error(), "others can read it") {
			t.Errorf("%v: %v", mode, err)
		}
	}
}
