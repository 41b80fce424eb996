package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// isInside says whether a run has called us: then the gates of its tools hold.
func (d *Deps) isInside() bool {
	id, inside := d.Lookup("OLLIM_RUN")
	return inside && id != ""
}

// useTool is a verb typed by an agent: it is one of its tools, and answers alike.
func (d *Deps) useTool(ctx context.Context, h house, tool string, input map[string]any) (string, error) {
	id, _ := d.Lookup("OLLIM_RUN")
	box, err := d.runBox(h, id)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	answer := box.Call(ctx, tool, data)
	if reason, bad := strings.CutPrefix(answer.Text, "bad arguments: "); bad && answer.IsError {
		return "", &withStatus{fmt.Errorf("%s", reason), statusUsage}
	}
	if answer.IsError {
		return "", fmt.Errorf("%w: %s", errNotAllowed, answer.Text)
	}
	return answer.Text, nil
}
