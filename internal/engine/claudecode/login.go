package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
)

// A sealed process cannot read the login that the command stores for its owner. It gets only the access token, by descriptor, as a key is
// passed. It never gets the refresh token: the service accepts that once, so a process that used it and could not store the new one would
// end the owner's login. The command itself renews an access token that is about to expire, outside the seal and before the run.

// login is the part of a stored login that ollim reads (2.1.197).
type login struct {
	OAuth struct {
		Access  string `json:"accessToken"`
		Expires int64  `json:"expiresAt"` // milliseconds since 1970
	} `json:"claudeAiOauth"` // in .credentials.json
	Key string `json:"primaryApiKey"` // in .claude.json
}

// renewal is how long before its expiry the command renews an access token.
const renewal = 5 * time.Minute

// stored returns the owner's login as a variable. It returns none if the environment has a credential or nobody is logged in. A run that
// outlasts the token ends with the error of the service.
func (e *Engine) stored(ctx context.Context) ([]string, error) {
	if e.given() {
		return nil, nil
	}
	l, err := e.readLogin()
	if err == nil && l.expired(e.Disk.Now().Add(renewal)) {
		// Of the subcommands that use no model, only this one waits until a renewed token is stored (2.1.197). It starts no server.
		_, _ = e.question(ctx, "mcp", "get", "ollim")
		l, err = e.readLogin()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the login of claude: %w", engine.ErrKey, err)
	case l.expired(e.Disk.Now()):
		return nil, fmt.Errorf("%w: the login of claude has expired, and %s did not renew it: log in again with claude auth login; or store a "+
			"token of claude setup-token, which is valid for a year, as engine.CLAUDE_CODE_OAUTH_TOKEN", engine.ErrKey, e.Command)
	case l.OAuth.Access != "":
		return []string{"CLAUDE_CODE_OAUTH_TOKEN=" + l.OAuth.Access}, nil
	case l.Key != "":
		return []string{"ANTHROPIC_API_KEY=" + l.Key}, nil
	}
	return nil, nil
}

// given reports whether the environment has a credential, which the command prefers to a stored login.
func (e *Engine) given() bool {
	names := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"}
	return slices.ContainsFunc(names, func(name string) bool { return e.variable(name) != "" })
}

// expired reports whether there is a token that expires before a time.
func (l login) expired(by time.Time) bool {
	return l.OAuth.Access != "" && l.OAuth.Expires > 0 && l.OAuth.Expires < by.UnixMilli()
}

// LoginFiles returns the paths at which the command stores its owner's login: two files, and copies of the second.
func (e *Engine) LoginFiles() []string {
	dir := e.shared()
	settings := dir
	if e.variable(configVariable) == "" {
		settings = filepath.Dir(dir)
	}
	return []string{filepath.Join(dir, ".credentials.json"), filepath.Join(settings, ".claude.json"), filepath.Join(dir, "backups")}
}

func (e *Engine) readLogin() (l login, err error) {
	for _, path := range e.LoginFiles()[:2] {
		text, readErr := os.ReadFile(path)
		if readErr == nil {
			readErr = json.Unmarshal(text, &l)
		}
		if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("%s: %w", path, readErr))
		}
	}
	return l, err
}
