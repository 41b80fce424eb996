package config

import (
	"slices"
	"strings"
	"testing"
)

func TestAgents(t *testing.T) {
	c := load(t, source(t, `engine: acp:mine
acp:
  opencode: {command: [/usr/local/bin/opencode, acp]}
  mine:
    command: [agent]
    env: [A=b]
    trusted: on
  other: {profile: opencode}
`))
	if c.Engine != "acp:mine" || len(c.Agents) != 3 {
		t.Fatalf("got %q, %+v", c.Engine, c.Agents)
	}
	mine, _ := c.Agents.Find("mine")
	if mine.ProfileName() != NoProfile || !mine.IsTrusted() || !slices.Equal(mine.Env, []string{"A=b"}) {
		t.Errorf("got %+v", mine)
	}
	for _, name := range []string{"opencode", "other"} {
		if a, _ := c.Agents.Find(name); a.ProfileName() != "opencode" || a.IsTrusted() {
			t.Errorf("got %+v", a)
		}
	}
	if item, err := c.Get("acp.mine.env"); err != nil || item.Text() != "A=b" || !strings.HasSuffix(item.Origin, ":6") {
		t.Errorf("got %+v, %v", item, err)
	}
}

func TestAgentsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: {}":                             "a: want a command, or one of the profiles",
		"a: {command: [x], profile: p}":     `a: profile: "p": want`,
		"a: {command: [x], trusted: maybe}": `a: trusted: "maybe": want on or off`,
		"A: {command: [x]}":                 "not the name of an agent",
		"a: {command: [x], args: [y]}":      "args",
		"a: {command: [x], env: [nothing]}": "not KEY=value",
		"a: {command: [\"\"]}":              "an empty word",
	} {
		src := source(t, "acp:\n  "+text+"\n")
		_, err := Load(src)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "acp.", ""), strings.ReplaceAll(want, "a: ", "")) || !strings.HasPrefix(err.Error(), src.Path+":2: ") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
