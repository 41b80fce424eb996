package claudecode

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/engine"
)

// agent is a subagent as the command wants it. The command would take more, such as permissions and hooks of the subagent's
// own; those are not an agent file's to give.
type agent struct {
	Description string   `json:"description"`
	Prompt      string   `json:"prompt"`
	Tools       []string `json:"tools,omitzero"` // of those that the run has; an empty list is none
	Model       string   `json:"model,omitempty"`
}

// offered is the flags that offer a subagent to the agent, beside those that the command has itself: the policy's patterns
// say which of them may be called. What a subagent does goes through the same hook.
func offered(a *engine.Subagent) ([]string, error) {
	if a == nil {
		return nil, nil
	}
	text, err := json.Marshal(map[string]agent{a.Name: {a.Description, a.Prompt, a.Tools, a.Model}})
	return []string{"--agents", string(text)}, err
}

// lacks says why the subagent is not there, although it was offered: one that the command does not like it drops without a
// word.
func (e event) lacks(name string) error {
	var names []string
	_ = json.Unmarshal(e.Agents, &names) // a list that cannot be read has no names
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("the engine did not take the subagent %s: it needs a description and a prompt", name)
}

func nameOf(a *engine.Subagent) string {
	if a == nil {
		return ""
	}
	return a.Name
}
