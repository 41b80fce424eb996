package skill

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// subagent is one agents/<name>.md: an agent to which the agent of a job delegates work.
type subagent struct {
	Name        string // name of its file
	Description string
	// tools and patterns, of which only the form was checked; nil: the key is missing, which differs from an empty list
	Tools  []string
	Model  string // "" is the model of the run
	Prompt string // system prompt
}

// LoadAgent parses the file of one subagent. The error is a *plaintext.Unknown, or the yamldoc.Faults of the file.
func LoadAgent(dir paths.Dir, name string) (subagent, error) {
	unknown := &plaintext.Unknown{What: "agent", Name: name}
	if checkName(name) != nil {
		return subagent{}, unknown
	}
	file := filepath.Join("agents", name+".md")
	data, err := store.ReadText(dir.Agent(name), maxFile, false)
	if errors.Is(err, fs.ErrNotExist) {
		unknown.Near = plaintext.Similar(name, AgentNames(dir))
		return subagent{}, unknown
	}
	if err != nil {
		return subagent{}, yamldoc.Faults{{File: file, Reason: "cannot be read: " + store.Cause(err)}}
	}
	return parseAgent(name, file, data)
}

// AgentNames lists the subagents that have a file, sorted.
func AgentNames(dir paths.Dir) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(dir.Agent("any")))
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".md"); ok {
			names = append(names, name)
		}
	}
	return names
}

// parseAgent parses the file of the subagent called name. file stands for it in errors. The error is a yamldoc.Faults with everything
// that is wrong.
func parseAgent(name, file string, data []byte) (subagent, error) {
	a := subagent{Name: name}
	page, faults, err := parse(name, "file", file, data, a.fields())
	if err != nil {
		return subagent{}, err
	}
	a.Prompt = bodyOf(page)
	a.Description = strings.TrimSpace(a.Description)
	if strings.TrimSpace(a.Prompt) == "" {
		faults = append(faults, page.Doc.Fault("", "the text below the frontmatter, the system prompt, is empty"))
	}
	return a, inOrder(faults)
}

func (a *subagent) fields() []yamldoc.Field {
	const ofRun = "a subagent has what its run has"
	return []yamldoc.Field{
		text("description", &a.Description, notBlank),
		tools("tools", &a.Tools),
		text("model", &a.Model, notBlank),
		passed("color"),
		refused("disallowedTools", "list its tools in tools"),
		refused("permissionMode", "permissions are those of the run"),
		refused("mcpServers", ofRun),
		refused("skills", "name them in the job"),
		refused("hooks", ofRun),
		refused("memory", "a subagent has no memory"),
		refused("maxTurns", "give the job a timeout or max-cost"),
		refused("effort", "the thinking of the job applies"),
		refused("background", "the run waits for its subagent"),
		refused("isolation", "a subagent works in the directory of its run"),
		refused("initialPrompt", "the run gives it the task"),
	}
}
