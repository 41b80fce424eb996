package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/app"
)

// inside reports whether a run has started this command: then the gates of the run's tools hold.
func (d *Deps) inside() bool { return d.RunID() != "" }

// useTool runs a command typed by an agent as the tool of the same purpose, with the same answers.
func (d *Deps) useTool(ctx context.Context, h app.Home, tool string, input any) (string, error) {
	set, err := h.Tools()
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	answer, err := set.Use(ctx, tool, data)
	if err == nil {
		return answer, nil
	}
	if reason, bad := strings.CutPrefix(err.Error(), "bad arguments: "); bad {
		return "", &withStatus{errors.New(reason), statusUsage}
	}
	if as[*tools.Refused](err) {
		return "", fmt.Errorf("%w: %w", app.ErrNotAllowed, err)
	}
	return "", err
}
