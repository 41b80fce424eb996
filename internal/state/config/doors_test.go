package config

import (
	"slices"
	"strings"
	"testing"
)

func TestDoors(t *testing.T) {
	src := source(t, `doors:
  telegram:
    owner: 42
    allow: [room-1, ann@example.org]
    env: [MODE=long]
    seal: on
  mail: {command: [python3, mail.py]}
`)
	c := load(t, src)
	telegram, ok := c.Doors.Find("telegram")
	if !ok || telegram.Owner != "42" || !slices.Equal(telegram.Allow, []string{"room-1", "ann@example.org"}) || telegram.Seal != SealOn {
		t.Errorf("got %+v", telegram)
	}
	if got := telegram.Argv(); !slices.Equal(got, []string{"ollim-telegram"}) {
		t.Errorf("it runs %q", got)
	}
	mail, _ := c.Doors.Find("mail")
	if got := mail.Argv(); !slices.Equal(got, []string{"python3", "mail.py"}) || mail.Seal != SealOff {
		t.Errorf("it runs %q, sealed %s", got, mail.Seal)
	}
	if item, err := c.Get("doors.telegram.owner"); err != nil || item.Text() != "42" || !strings.HasSuffix(item.Origin, ":3") {
		t.Errorf("got %+v, %v", item, err)
	}
	if err := Set(src.Path, "doors.irc.command", []string{"irc.sh"}); err != nil {
		t.Fatal(err)
	}
	if c := load(t, src); len(c.Doors) != 3 || c.Doors[0].Name != "irc" {
		t.Errorf("got %+v", c.Doors)
	}
}

func TestDoorsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"discord: {}":                    `config.yaml:2: doors: "discord" is built in`,
		"Telegram: {}":                   "not the name of a door",
		"telegram: {token: x}":           "config.yaml:2: doors.telegram.token: unknown key",
		"telegram: {command: [\"\"]}":    "doors.telegram.command: item 1: an empty word",
		"telegram: {seal: maybe}":        `doors.telegram.seal: "maybe": want on or off`,
		"telegram: {env: [TOKEN]}":       "is not KEY=value",
		"telegram: {owner: \"a\\nb\"}":   "is not the id of a user or a channel",
		"telegram: {allow: [\"a\", []]}": "doors.telegram.allow",
	} {
		_, err := Load(source(t, "doors:\n  "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestDoorSecrets: a door gets its own secrets, and none of another door or part.
func TestDoorSecrets(t *testing.T) {
	path := t.TempDir() + "/secrets.env"
	write(t, path, "engine.TOKEN=no\ndoor.telegram.TOKEN=yes\ndoor.telegram-2.TOKEN=other\ndoor.telegram.KEY=a=b\n")
	s, err := LoadSecrets(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Door("telegram"); !slices.Equal(got, []string{"TOKEN=yes", "KEY=a=b"}) {
		t.Errorf("it gets %q", got)
	}
}
