package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// sinceLayout is the comment above a line that SetSecret has written.
const sinceLayout = "# set " + time.RFC3339

// SecretName describes a line of the secrets file, without its value.
type SecretName struct {
	Name  string    `json:"name"`
	User  string    `json:"user"` // the part of the program that receives it
	Since time.Time `json:"since,omitzero"`
}

// List describes the lines, in the order of the file.
func (s Secrets) List() (names []SecretName) {
	for _, l := range s.lines {
		key, _, _ := strings.Cut(l.entry, "=")
		names = append(names, SecretName{l.part + "." + key, users()[l.part], l.since})
	}
	return names
}

// users maps each part of the program that gets secrets to its description.
func users() map[string]string {
	return map[string]string{
		"engine": "the engine", "delivery": "the delivery command", "discord": "requests to Discord",
		"webhook": "the check of webhook calls", doorPart: "the door of that name", serverPart: "MCP servers that name it",
	}
}

// KnownSecrets lists the names that ollim itself reads. Other keys of the parts engine, delivery, webhook, door and mcp are the owner's.
func KnownSecrets() []string {
	return []string{
		"engine.ANTHROPIC_API_KEY", "engine.ANTHROPIC_AUTH_TOKEN", "engine.ANTHROPIC_BASE_URL", "engine.CLAUDE_CODE_OAUTH_TOKEN",
		"engine.OPENAI_API_KEY", "engine.OPENAI_BASE_URL", "discord.TOKEN",
	}
}

// CheckSecretName returns an error if no part of the program would read a secret of this name. A name that resembles a known one is taken
// for a mistake.
func CheckSecretName(name string) error {
	known := KnownSecrets()
	if slices.Contains(known, name) {
		return nil
	}
	part, key, _ := strings.Cut(name, ".")
	near := plaintext.Similar(name, known)
	for _, k := range known {
		if _, bare, _ := strings.Cut(k, "."); strings.EqualFold(bare, name) || strings.EqualFold(k, name) {
			near = []string{k}
		}
	}
	punctuation := map[string]string{"engine": "_", "delivery": "_", serverPart: "_", "webhook": "._-", doorPart: "._-"}[part]
	if _, own, found := strings.Cut(key, "."); part == doorPart && (!found || own == "") {
		punctuation = ""
	}
	if punctuation == "" || key == "" || !plaintext.IsWord(key, punctuation) || len(near) > 0 {
		return fmt.Errorf("unknown secret %q%s: write engine.NAME, delivery.NAME, discord.TOKEN, webhook.NAME, door.NAME.KEY or mcp.NAME",
			name, plaintext.Suggestion(near[:min(1, len(near))]...))
	}
	return nil
}

// CheckSecretValue returns an error if a value cannot stand in a line. It does not quote the value.
func CheckSecretValue(value string) error {
	switch {
	case strings.TrimSpace(value) == "":
		return errors.New("the value is empty")
	case strings.ContainsAny(value, "\x00\r\n"):
		return errors.New("the value has more than one line")
	}
	return nil
}

// SetSecret gives a secret a value, in place if the file has a line of that name, else in a new line at the end. The rest of the file
// stays as it is. The caller holds the lock of the file, and has checked name and value.
func SetSecret(path, name, value string, now time.Time) error {
	written := []string{now.UTC().Format(sinceLayout) + "\n", name + "=" + strings.TrimSpace(value) + "\n"}
	_, err := editSecrets(path, name, written)
	return err
}

// RemoveSecret deletes the lines of a name, and reports whether there was one. The caller holds the lock of the file.
func RemoveSecret(path, name string) (removed bool, err error) { return editSecrets(path, name, nil) }

// editSecrets replaces the lines of a name, and the comments that SetSecret has written above them. If there is no such line, it appends
// the new ones. found reports whether there was one. The file need not exist, and must be valid.
func editSecrets(path, name string, written []string) (found bool, err error) {
	if _, err := LoadSecrets(path, false); err != nil {
		return false, err
	}
	data, err := readSecret(path, false)
	if err != nil {
		return false, err
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(strings.TrimSpace(line), name+"=") {
			lines = append(lines, strings.TrimRight(line, "\r\n")+"\n")
			continue
		}
		lines = lines[:len(lines)-marks(lines)]
		if !found {
			lines = append(lines, written...)
		}
		found = true
	}
	if !found {
		lines = append(lines, written...)
	}
	if len(written) == 0 && !found {
		return false, nil
	}
	return found, store.Replace(path, []byte(strings.Join(lines, "")))
}

// marks returns how many of the last lines are a comment of SetSecret: 1 or 0.
func marks(lines []string) int {
	if len(lines) > 0 {
		if _, err := time.Parse(sinceLayout, strings.TrimSpace(lines[len(lines)-1])); err == nil {
			return 1
		}
	}
	return 0
}
