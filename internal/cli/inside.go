package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/agent/tools"
)

// isInside says whether a run has called us: then the gates of its tools hold.
func (d *Deps) isInside() bool {
	id, inside := d.Lookup("OLLIM_RUN")
	return inside && id != ""
}

// useTool is a verb typed by an agent: it is one of its tools, and answers alike.
func (d *Deps) useTool(ctx context.Context, h house, tool string, input any) (string, error) {
	id, _ := d.Lookup("OLLIM_RUN")
	box, err := d.runBox(h, id)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	answer, err := box.Use(ctx, tool, data)
	if err == nil {
		return answer, nil
	}
	if reason, bad := strings.CutPrefix(err.Error(), "bad arguments: "); bad {
		return "", &withStatus{errors.New(reason), statusUsage}
	}
	if as[*tools.Refused](err) {
		return "", fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	return "", err
}
