package claudecode

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/engine"
)

// agent is a subagent in the form that the command reads. The command accepts more keys, such as permissions and hooks of the subagent;
// an agent file may not set those.
type agent struct {
	Description string   `json:"description"`
	Prompt      string   `json:"prompt"`
	Tools       []string `json:"tools,omitzero"` // some of the run's tools; an empty list means none
	Model       string   `json:"model,omitempty"`
}

// offered returns the flags that offer a subagent to the agent. The command also has subagents of its own; the policy's patterns decide
// which may be called. The tool uses of a subagent go through the same hook.
func offered(a *engine.Subagent) ([]string, error) {
	if a == nil {
		return nil, nil
	}
	text, err := json.Marshal(map[string]agent{a.Name: {a.Description, a.Prompt, a.Tools, a.Model}})
	return []string{"--agents", string(text)}, err
}

// lacks returns an error if the command does not offer the subagent a. The command drops a subagent that it rejects, and prints nothing.
func (e event) lacks(a *engine.Subagent) error {
	var names []string
	_ = json.Unmarshal(e.Agents, &names) // a list that cannot be parsed has no names
	if a == nil || slices.Contains(names, a.Name) {
		return nil
	}
	return fmt.Errorf("the engine rejected the subagent %s: it needs a description and a prompt", a.Name)
}
