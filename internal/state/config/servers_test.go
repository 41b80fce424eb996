package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestServers(t *testing.T) {
	src := source(t, `mcp-servers:
  github:
    command: [npx, -y, server-github]
    env: ["TOKEN=${mcp.GITHUB}"]
  docs:
    url: https://example.com/mcp
    headers: ["Authorization: Bearer ${mcp.DOCS}"]
    timeout: 5s
`)
	c := load(t, src)
	docs, ok := c.Servers.Find("docs")
	if !ok || docs.URL != "https://example.com/mcp" || docs.Timeout != 5*time.Second {
		t.Errorf("got %+v", docs)
	}
	github, _ := c.Servers.Find("github")
	if github.Timeout != time.Minute || !slices.Equal(github.Command, []string{"npx", "-y", "server-github"}) {
		t.Errorf("got %+v", github)
	}
	if item, err := c.Get("mcp-servers.github.env"); err != nil || item.Text() != "TOKEN=${mcp.GITHUB}" || !strings.HasSuffix(item.Origin, ":4") {
		t.Errorf("got %+v, %v", item, err)
	}
	if _, err := c.Get("mcp-servers.other.url"); err == nil {
		t.Error("a setting of a server that is not configured has a value")
	}
	if err := Set(src.Path, "mcp-servers.time.command", []string{"uvx", "server-time"}); err != nil {
		t.Fatal(err)
	}
	if s, _ := load(t, src).Servers.Find("time"); !slices.Equal(s.Command, []string{"uvx", "server-time"}) {
		t.Errorf("got %+v", s)
	}
}

func TestServersRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: {}": "want a command or a url",
		"a: {command: [x], url: https://example.com}":                      "command and url exclude each other",
		"a: {command: []}":                                                 "want a command or a url",
		"A: {command: [x]}":                                                "not the name of a server",
		"a.b: {command: [x]}":                                              "not the name of a server",
		"ollim: {command: [x]}":                                            "ollim's own tools",
		"a: {command: [x], headers: [\"A: b\"]}":                           "headers are for a url",
		"a: {url: https://example.com, env: [A=b]}":                        "env is for a command",
		"a: {command: [x], env: [\"A=${engine.ANTHROPIC_API_KEY}\"]}":      "${mcp.KEY}",
		"a: {command: [x], env: [\"A=${mcp.B\"]}":                          "${mcp.KEY}",
		"a: {url: \"http://example.com\", headers: [\"A: ${mcp.B}\"]}":     "unencrypted",
		"a: {url: \"http://example.com/?key=${mcp.B}\"}":                   "unencrypted",
		"a: {url: \"ftp://example.com\"}":                                  "not the address",
		"a: {command: [x], timeout: soon}":                                 "not a duration",
		"a: {command: [x], cwd: /tmp}":                                     "unknown key",
		"a: {url: \"https://u:secret-word@example.com\"}":                  "not the address",
		"a: {url: https://example.com, headers: [\"A: b\\nC: d\"]}":        "not Name: value",
		"a: {url: \"http://127.0.0.1:1/mcp\", headers: [\"A: ${mcp.B}\"]}": "",
	} {
		src := source(t, "mcp-servers:\n  "+text+"\n")
		_, err := Load(src)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%s: the error quotes a password: %v", text, err)
		}
	}
}

func TestExpand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.env")
	if err := os.WriteFile(path, []byte("mcp.TOKEN=abc$def\nengine.KEY=never\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadSecrets(path, false)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"A=${mcp.TOKEN}, ${mcp.TOKEN}!": "A=abc$def, abc$def!", "A=$HOME": "A=$HOME"} {
		if got, err := s.Expand(text); got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"${mcp.KEY}", "${engine.KEY}", "${mcp.}", "${mcp.TOKEN"} {
		if got, err := s.Expand(text); err == nil || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
