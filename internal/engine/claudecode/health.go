package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
)

// askLimit is the time limit of a question to the command. maxReply is the largest part of its answer that is read, in bytes.
const (
	askLimit = 30 * time.Second
	maxReply = 1 << 20
)

// Version returns the command's own version, such as 2.1.197. The error wraps engine.ErrSetup if it cannot be run.
func (e *Engine) Version(ctx context.Context) (string, error) {
	r, err := e.question(ctx, "--version")
	if err == nil {
		err = r.Failure()
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s --version: %w", engine.ErrSetup, e.Command, err)
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(r.Out)), " ")
	return version, nil
}

// Login returns how the command is logged in, such as claude.ai or api_key. The error is engine.ErrNoKey if it is not logged in,
// otherwise it wraps engine.ErrUnavailable.
//
// It does not ask about a token in a file: the command would start to renew one that is about to expire, and exit before it has stored
// the new one (2.1.197), which ends the login.
func (e *Engine) Login(ctx context.Context) (method string, err error) {
	if l, err := e.readLogin(); err == nil && l.OAuth.Access != "" && !e.given() {
		return "claude.ai", nil
	}
	r, err := e.question(ctx, "auth", "status")
	var answer struct {
		LoggedIn *bool  `json:"loggedIn"`
		Method   string `json:"authMethod"`
	}
	if err == nil && (json.Unmarshal(r.Out, &answer) != nil || answer.LoggedIn == nil) { // without a login the exit status is 1
		err = fmt.Errorf("its answer cannot be parsed: %s: %s", r.End, strings.Join(strings.Fields(r.Stderr), " "))
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %s auth status: %w", engine.ErrSetup, e.Command, err)
	case !*answer.LoggedIn:
		return "", engine.ErrNoKey
	}
	return answer.Method, nil
}

func (e *Engine) question(ctx context.Context, args ...string) (process.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return process.Run(ctx, process.Call{Argv: append([]string{e.Command}, args...), Env: e.Env, Dir: "/", Limit: maxReply})
}
