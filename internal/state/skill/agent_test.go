package skill

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

func TestLoadAgent(t *testing.T) {
	dir := fixture(t, map[string]string{
		"agents/critic.md": "---\nname: critic\ndescription: Finds faults\ntools: Read, Grep, Bash(git diff *)\nmodel: opus\ncolor: red\n---\n\nYou find faults.\n",
		"agents/plain.md":  "---\ndescription: Plain\n---\nYou are plain.",
		"agents/mute.md":   "---\ndescription: Mute\ntools: []\n---\nYou say nothing.",
		"agents/link.md":   "-> plain.md",
		"agents/pipe.md":   "|",
		"secret.md":        good,
	})
	for name, want := range map[string]subagent{
		"critic": {Name: "critic", Description: "Finds faults", Tools: []string{"Read", "Grep", "Bash(git diff *)"}, Model: "opus", Prompt: "You find faults."},
		"plain":  {Name: "plain", Description: "Plain", Prompt: "You are plain."},
		"link":   {Name: "link", Description: "Plain", Prompt: "You are plain."},
		"mute":   {Name: "mute", Description: "Mute", Tools: []string{}, Prompt: "You say nothing."},
	} {
		if got, err := LoadAgent(dir, name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"crtic": `no agent "crtic" (did you mean critic?)`, "xyzzy": `no agent "xyzzy"`, "../secret": `no agent "../secret"`, "": `no agent ""`,
	} {
		var unknown *plaintext.Unknown
		if _, err := LoadAgent(dir, name); !errors.As(err, &unknown) || err.Error() != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if _, err := LoadAgent(dir, "pipe"); lines(err) != "agents/pipe.md: cannot be read: not a file" {
		t.Error(err)
	}
}

func TestParseAgentFaults(t *testing.T) {
	const described = "description: Talks"
	for name, tc := range map[string]struct{ text, want string }{
		"no frontmatter": {"Talk.", "f.md:1: does not open with a --- line (frontmatter)"},
		"no description": {page("model: opus"), "f.md: description: is missing"},
		"no prompt":      {"---\ndescription: a\n---\n", "f.md: the text below the frontmatter, the system prompt, is empty"},
		"other name":     {page(described, "name: x"), `f.md:3: name: "x" is not the name of its file, "daily"`},
		"no model":       {page(described, "model: ''"), "f.md:3: model: is empty"},
		"tools":          {page(described, "tools: Read; Grep"), `f.md:3: tools: "Read;" is not a tool: want TOOL or TOOL(SCOPE)`},
		"permissions":    {page(described, "permissionMode: bypassPermissions"), "f.md:3: permissionMode: is not supported: permissions are those of the run"},
		"hooks":          {page(described, "hooks: {}"), "f.md:3: hooks: is not supported: a subagent has what its run has"},
		"unknown":        {page(described, "tool: Read"), "f.md:3: tool: unknown key (did you mean tools?)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseAgent("daily", "f.md", []byte(tc.text))
			if got := lines(err); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}
