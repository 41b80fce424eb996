package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Secrets are values that must not be in the data directory, because an agent may read it. Each is for one part of the
// program only: the line engine.ANTHROPIC_API_KEY=… reaches the engine, delivery.TOKEN=… the delivery command, discord.TOKEN=…
// the requests to Discord, webhook.NAME=… the check of the calls of webhooks, door.NAME.TOKEN=… the program of that door.
type Secrets struct{ lines []secret }

type secret struct {
	part, entry string
	since       time.Time // when `ollim secret set` wrote it; zero if unknown
}

// LoadSecrets reads a file of PART.KEY=value lines, in which # begins a comment line. A missing file is empty. A file that others can
// read is refused, except that the group of this process may read a credential from a service manager. The error is a yamldoc.Faults,
// which never quotes a value.
func LoadSecrets(path string, credential bool) (Secrets, error) {
	var s Secrets
	data, err := readSecret(path, credential)
	if err != nil {
		return s, err
	}
	number := 0
	var since time.Time
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			since, _ = time.Parse(sinceLayout, line)
			continue
		}
		name, value, isPair := strings.Cut(line, "=")
		part, key, named := strings.Cut(name, ".")
		if !isPair || !named || part == "" || key == "" || strings.ContainsAny(name, " \t") {
			return s, yamldoc.Faults{{File: path, Line: number, Reason: "want PART.KEY=value, such as engine.ANTHROPIC_API_KEY=…"}}
		}
		s.lines = append(s.lines, secret{part, key + "=" + value, since})
		since = time.Time{}
	}
	return s, nil
}

// LoadCredential reads a credential from a service manager whose whole content is one secret. A missing file is empty.
func LoadCredential(path string) (string, error) {
	data, err := readSecret(path, true)
	return strings.TrimSpace(string(data)), err
}

// readSecret reads a file that others must not be able to read. A missing file is empty.
func readSecret(path string, credential bool) ([]byte, error) {
	open := fs.FileMode(0o077)
	if credential {
		open = 0o007 // systemd and Kubernetes grant access through our group
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Mode().Perm()&open != 0 {
		return nil, yamldoc.Faults{{File: path, Reason: fmt.Sprintf("others can read it (%#o): chmod 600 %s", info.Mode().Perm(), path)}}
	}
	data, err := store.ReadText(path, maxFile, false)
	if err != nil {
		return nil, yamldoc.Faults{{File: path, Reason: "cannot be read: " + store.Cause(err)}}
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil // some editors begin a file with a byte order mark
}

// Values returns the values. For a value with spaces it also returns each word, because the value may be two secrets that are used
// together. Addresses (…BASE_URL) are not secrets.
func (s Secrets) Values() (values []string) {
	for _, l := range s.lines {
		name, value, _ := strings.Cut(l.entry, "=")
		if !strings.HasSuffix(name, "BASE_URL") {
			values = append(append(values, value), strings.Fields(value)...)
		}
	}
	return values
}

// serverPart is the part of the secrets for MCP servers.
const serverPart = "mcp"

// Expand replaces each ${mcp.KEY} in a text by that secret. The error names the missing secret, and quotes no value.
func (s Secrets) Expand(text string) (string, error) {
	return references(text, func(key string) (string, error) {
		for _, entry := range s.For(serverPart) {
			if value, found := strings.CutPrefix(entry, key+"="); found {
				return value, nil
			}
		}
		return "", fmt.Errorf("the secret %s.%s is missing: ollim secret set %s.%s", serverPart, key, serverPart, key)
	})
}

// checkReferences returns an error if a text has a reference that Expand could not replace.
func checkReferences(text string) error {
	_, err := references(text, func(string) (string, error) { return "", nil })
	return err
}

// references replaces each ${mcp.KEY} of a text by the value of KEY.
func references(text string, value func(key string) (string, error)) (string, error) {
	var done strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		done.WriteString(before)
		if !found {
			return done.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		key, ours := strings.CutPrefix(name, serverPart+".")
		if !closed || !ours || key == "" || !plaintext.IsWord(key, "_") {
			return "", errors.New("a reference to a secret is ${mcp.KEY}")
		}
		v, err := value(key)
		if err != nil {
			return "", err
		}
		done.WriteString(v)
		text = after
	}
}

// For returns the KEY=value entries of one part.
func (s Secrets) For(part string) (entries []string) {
	for _, l := range s.lines {
		if l.part == part {
			entries = append(entries, l.entry)
		}
	}
	return entries
}
