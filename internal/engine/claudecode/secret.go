package claudecode

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
)

// The command's children, such as the agent's Bash, inherit its variables but not its descriptors. The seal does not change that: they
// are in the domain of the command, and may read its environment. CLAUDE_CODE_SUBPROCESS_ENV_SCRUB would remove some variables, but it
// needs bubblewrap and sets another permission mode than ollim needs.

// descriptor is a secret that the command can read from a file descriptor. The variable as has the descriptor's number.
type descriptor struct{ name, as string }

func (e *Engine) descriptors() []descriptor {
	if e.through { // the values are placeholders. With the socket the command takes a login's token from its environment only
		return nil
	}
	return []descriptor{
		{"ANTHROPIC_API_KEY", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"},
		{"CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR"},
	}
}

// secrets returns a pipe for each secret that is passed by descriptor, in order. The caller closes them.
func (e *Engine) secrets() (files []*os.File, err error) {
	for _, by := range e.descriptors() {
		secret := e.variable(by.name)
		if secret == "" {
			continue
		}
		read, write, err := os.Pipe()
		if err != nil {
			return files, err
		}
		files = append(files, read)
		_, err = write.WriteString(secret) // a secret is far shorter than a pipe's buffer
		if err = errors.Join(err, write.Close()); err != nil {
			return files, err
		}
	}
	return files, nil
}

// exposed returns an error if the request's Bash tool could read a secret from its environment. The commands of ollim print none, so a
// policy that allows only those is accepted.
func (e *Engine) exposed(r engine.Request) error {
	if !slices.ContainsFunc(r.Scope.Allow, runsOthers) {
		return nil
	}
	for _, name := range e.Secrets {
		handed := slices.ContainsFunc(e.descriptors(), func(by descriptor) bool { return by.name == name }) ||
			e.gated() && slices.Contains(keyVariables(), name)
		if !handed && !strings.HasSuffix(name, "_BASE_URL") && e.variable(name) != "" {
			return fmt.Errorf("%w: claude would pass the secret engine.%s on to the commands that this run may use; use a "+
				"login, engine.ANTHROPIC_API_KEY or engine.CLAUDE_CODE_OAUTH_TOKEN, which commands do not inherit, or allow "+
				"no Bash pattern",
				engine.ErrSetup, name)
		}
	}
	return nil
}

// runsOthers reports whether a pattern allows a command other than ollim's.
func runsOthers(pattern string) bool {
	command, bash := strings.CutPrefix(pattern, "Bash")
	return bash && !strings.HasPrefix(command, "(ollim ")
}
