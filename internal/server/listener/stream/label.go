package stream

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Sizes of what a line quotes, in characters.
const (
	maxQuote  = 60
	maxReason = 300
)

// toolLabel describes a use of a tool, such as "reading notes.md…". What a command is given may be secret, so it is left out.
func toolLabel(tool string, input json.RawMessage) string {
	var in struct {
		File        string `json:"file_path"`
		Notebook    string `json:"notebook_path"`
		Pattern     string `json:"pattern"`
		Command     string `json:"command"`
		Description string `json:"description"`
		URL         string `json:"url"`
		Query       string `json:"query"`
	}
	_ = json.Unmarshal(input, &in) // a value of another type leaves its field empty
	about := ""
	verb := map[string]string{
		"Read": "reading", "Write": "writing", "Edit": "editing", "MultiEdit": "editing", "NotebookEdit": "editing", "Glob": "looking for",
		"Grep": "searching for", "Bash": "running", "WebFetch": "fetching", "WebSearch": "searching the web for", "Task": "asking a subagent:",
		"Agent": "asking a subagent:",
	}[tool]
	switch verb {
	case "reading", "writing", "editing":
		if path := in.File + in.Notebook; path != "" {
			about = filepath.Base(path)
		}
	case "looking for", "searching for":
		about = in.Pattern
	case "running":
		about = program(in.Command)
	case "fetching":
		if address, err := url.Parse(in.URL); err == nil {
			about = address.Hostname()
		}
	case "searching the web for":
		about = in.Query
	case "asking a subagent:":
		about = in.Description
	}
	if about == "" {
		name := strings.Split(tool, "__") // such as mcp__server__tool
		verb, about = "using", name[len(name)-1]
	}
	return verb + " " + plaintext.Short(plaintext.Line(about), maxQuote) + "…"
}

func program(command string) string {
	for _, word := range strings.Fields(command) {
		if !strings.Contains(word, "=") { // else it sets a variable
			return filepath.Base(strings.Trim(word, `'"`))
		}
	}
	return ""
}

// InShort returns a reason in one line of at most 300 characters.
func InShort(reason string) string { return plaintext.Short(plaintext.Line(reason), maxReason) }
