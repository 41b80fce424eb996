package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

// Server is one MCP server, whose tools agents may use where a pattern mcp__NAME__TOOL allows it. It has a Command or a URL. In Env,
// URL and Headers ${mcp.KEY} stands for the line mcp.KEY=… of the secrets file.
type Server struct {
	Name    string        `json:"-"`
	Command []string      `json:"command,omitempty"` // argv; run in the data directory, it speaks the protocol on its standard streams
	Env     []string      `json:"env,omitempty"`     // KEY=value, added to the environment that all commands have
	URL     string        `json:"url,omitempty"`
	Headers []string      `json:"headers,omitempty"` // "Name: value"
	Timeout time.Duration `json:"-"`                 // limit of the start, and of each call
}

// Servers are the configured servers, sorted by name.
type Servers []Server

// Find returns the server of a name.
func (s Servers) Find(name string) (Server, bool) {
	i := slices.IndexFunc(s, func(server Server) bool { return server.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return s[i], true
}

// Definition returns what the owner approves of a server, on one line: every setting that decides what it is and what it receives.
// Secrets appear as references.
func (s Server) Definition() string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings can always be encoded
	return s.Name + ": " + strings.TrimSpace(text.String())
}

// Definitions returns the definitions of the servers whose tools the patterns name, sorted. For a server that is not configured, the
// definition says so.
func (s Servers) Definitions(patterns []string) (list []string) {
	for _, name := range policy.Servers(patterns) {
		if server, ok := s.Find(name); ok {
			list = append(list, server.Definition())
		} else {
			list = append(list, name+": not in mcp-servers of config.yaml")
		}
	}
	return list
}

const (
	serverSection = "mcp-servers"
	serverTimeout = time.Minute
	serverNames   = 32 // longest name of a server, in bytes: a tool's name together with its server's has at most 64
)

func checkServerName(name string) error {
	switch {
	case name == policy.OwnServer:
		return fmt.Errorf("%q is the server of ollim's own tools", name)
	case name == "" || len(name) > serverNames || !plaintext.IsWord(name, "-") || strings.ToLower(name) != name || strings.Trim(name, "-") != name:
		return fmt.Errorf("%q is not the name of a server: want lower-case letters, digits and hyphens, at most %d", name, serverNames)
	}
	return nil
}

// serverKeys returns the settings of one server, without the section in their names.
func (s *Server) keys() []key {
	return []key{
		{name: "command", at: &s.Command, check: checkWord},
		{name: "env", at: &s.Env, check: func(s string) error {
			return errors.Join(checkVariable(s), checkNUL(s), checkReferences(s))
		}},
		{name: "url", at: &s.URL, check: checkServerURL},
		{name: "headers", at: &s.Headers, check: func(s string) error {
			name, value, found := strings.Cut(s, ":")
			if !found || name == "" || !plaintext.IsWord(name, "-") || strings.ContainsAny(value, "\r\n\x00") {
				return fmt.Errorf("%q is not Name: value", name)
			}
			return checkReferences(s)
		}},
		{name: "timeout", at: &s.Timeout, check: checkDuration("60s")},
	}
}

// checkWord returns an error if a word of a command is invalid.
func checkWord(s string) error {
	if s == "" {
		return errors.New("an empty word")
	}
	return checkNUL(s)
}

// checkVariable returns an error if a text is not KEY=value. The error does not quote the value.
func checkVariable(s string) error {
	if name, _, found := strings.Cut(s, "="); !found || name == "" || strings.ContainsAny(name, " \t\n$") {
		return fmt.Errorf("%q is not KEY=value", name)
	}
	return nil
}

// checkServerURL returns an error if the address of a server is invalid. The error does not quote the address, which may hold a secret.
func checkServerURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return errors.New("not the address of a server: write one like https://example.com/mcp")
	}
	return checkReferences(s)
}

// readServers returns the field that reads the section mcp-servers of a file.
func readServers(doc *yamldoc.Doc, into *Servers) yamldoc.Field {
	return readNamed(doc, serverSection, checkServerName, func(name string, v yamldoc.Value) error {
		s := Server{Name: name, Timeout: serverTimeout}
		err := readEntry(&s, v)
		*into = append(*into, s)
		slices.SortFunc(*into, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
		return err
	})
}

// fault returns what is wrong with the settings of a server in combination; "" if nothing is.
func (s *Server) fault() string {
	switch {
	case len(s.Command) == 0 && s.URL == "":
		return "want a command or a url"
	case len(s.Command) > 0 && s.URL != "":
		return "command and url exclude each other"
	case s.URL != "" && len(s.Env) > 0:
		return "env is for a command; a url has headers"
	case s.URL == "" && len(s.Headers) > 0:
		return "headers are for a url; a command has env"
	case strings.HasPrefix(s.URL, "http:") && (len(s.Headers) > 0 || strings.Contains(s.URL, "${")) && !loopback(s.URL):
		return "the headers would be sent unencrypted: want https, or http on this machine"
	}
	return ""
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// serverTemplate is the section mcp-servers of a new config.yaml.
const serverTemplate = `
mcp-servers:
  # MCP servers, whose tools jobs may use as mcp__NAME__TOOL or mcp__NAME__* in allowed-tools; see ollim-mcp(7). A reference
  # such as ${mcp.KEY} stands for a secret: ollim secret set mcp.KEY
  # github: {command: [npx, -y, "@modelcontextprotocol/server-github"], env: ["GITHUB_PERSONAL_ACCESS_TOKEN=${mcp.GITHUB_TOKEN}"]}
  # docs: {url: https://example.com/mcp, headers: ["Authorization: Bearer ${mcp.DOCS_TOKEN}"], timeout: 60s}
`
