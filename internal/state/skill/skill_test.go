package skill

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// lines is everything that is wrong, a line each.
func lines(err error) string {
	var faults yamldoc.Faults
	if err != nil && !errors.As(err, &faults) {
		return "no faults: " + err.Error()
	}
	var list []string
	for _, f := range faults {
		list = append(list, f.Error())
	}
	return strings.Join(list, "\n")
}

func page(head ...string) string { return "---\n" + strings.Join(head, "\n") + "\n---\nDo it.\n" }

func TestParse(t *testing.T) {
	minimal := skillFile{Name: "daily", Description: "Talks", Body: "Do it."}
	with := func(change func(*skillFile)) skillFile {
		s := minimal
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		text string
		want skillFile
	}{
		"minimal": {page("description: Talks"), minimal},
		"named":   {page("name: daily", "description: Talks"), minimal},
		"public keys": {page("description: Talks", "license: MIT", "version: 1.0", "compatibility: any", "metadata: {author: me, v: [1]}",
			"model: opus", "effort: high", "paths: [src/**]", "user-invocable: false", "disable-model-invocation: true"), minimal},
		"when to use": {page("description: Talks", "when_to_use: Mornings"), minimal},
		"folded":      {page("description: >", "  Talks", "  a lot"), with(func(s *skillFile) { s.Description = "Talks a lot" })},
		"hint":        {page("description: Talks", "argument-hint: [file, depth]"), minimal},
		"hint text":   {page("description: Talks", `argument-hint: "[file] [depth]"`), minimal},
		"tools": {page("description: Talks", "allowed-tools: Read, Grep  Bash(git diff *),mcp__a__b* Bash(x (y) z)"),
			with(func(s *skillFile) {
				s.AllowedTools = []string{"Read", "Grep", "Bash(git diff *)", "mcp__a__b*", "Bash(x (y) z)"}
			})},
		"tools in a list": {page("description: Talks", "allowed_tools:", "  - Read", "  - Bash(git diff, *)"),
			with(func(s *skillFile) { s.AllowedTools = []string{"Read", "Bash(git diff, *)"} })},
		"no tools": {page("description: Talks", "allowed-tools: []"), with(func(s *skillFile) { s.AllowedTools = []string{} })},
		"windows":  {"\ufeff---\r\ndescription: Talks\r\n---\r\n\r\nDo\r\nit.\r\n", with(func(s *skillFile) { s.Body = "Do\nit." })},
		"fences":   {"---\ndescription: Talks\n---\na\n---\nb", with(func(s *skillFile) { s.Body = "a\n---\nb" })},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("daily", "f.md", []byte(tc.text))
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tc.want)
			}
		})
	}
}

func TestParseFaults(t *testing.T) {
	const described = "description: Talks"
	for name, tc := range map[string]struct{ text, want string }{
		"no frontmatter": {"Do it.\n", "f.md:1: does not open with a --- line (frontmatter)"},
		"never closed":   {"---\ndescription: a\nDo it.\n", "f.md:1: the frontmatter that opens here is never closed by a --- line"},
		"no description": {page("name: daily"), "f.md: description: is missing"},
		"blank":          {page("description: ' '"), "f.md:2: description: is empty"},
		"nothing":        {page("description:"), "f.md:2: description: want text, not an empty value"},
		"other name":     {page(described, "name: Daily"), `f.md:3: name: "Daily" is not the name of its folder, "daily"`},
		"no body":        {"---\ndescription: a\n---\n \n\n", "f.md: the text below the frontmatter is empty"},
		"unknown":        {page(described, "allowd-tools: Read"), "f.md:3: allowd-tools: unknown key (did you mean allowed-tools?)"},
		"twice":          {page(described, "allowed-tools: []", "allowed_tools: []"), "f.md:4: allowed_tools: given twice (as allowed-tools on line 3)"},
		"colon":          {page("description: Use when: always"), `f.md:2: description: a value with a colon must be quoted: description: "Use when: always"`},
		"hooks":          {page(described, "hooks:", "  Stop: []"), "f.md:4: hooks: is not supported: hooks of a skill are not supported"},
		"context":        {page(described, "context: fork"), "f.md:3: context: is not supported: a skill runs in the run that invokes it; a job can have a subagent"},
		"shell":          {page(described, "shell: bash"), "f.md:3: shell: is not supported: commands run without a shell"},
		"taken away": {page(described, "disallowed-tools: Bash"),
			"f.md:3: disallowed-tools: is not supported: a skill cannot remove tools: omit them from the job's allowed-tools"},
		"tools":      {page(described, "allowed-tools: Read, 2x"), `f.md:3: allowed-tools: "2x" is not a tool: want TOOL or TOOL(SCOPE)`},
		"open":       {page(described, "allowed-tools: Bash(git *"), `f.md:3: allowed-tools: "Bash(git *" is not a tool: want TOOL or TOOL(SCOPE)`},
		"no scope":   {page(described, "allowed-tools: [Read, Bash( )]"), `f.md:3: allowed-tools: item 2: "Bash( )" is not a tool: want TOOL or TOOL(SCOPE)`},
		"any tool":   {page(described, "allowed-tools: '*'"), `f.md:3: allowed-tools: "*" is not a tool: want TOOL or TOOL(SCOPE)`},
		"tool map":   {page(described, "allowed-tools: {a: b}"), "f.md:3: allowed-tools: want a list like [a, b], not a section"},
		"all of it":  {page("name: x", "hooks: y"), "f.md: description: is missing\nf.md:2: name: \"x\" is not the name of its folder, \"daily\"\nf.md:3: hooks: is not supported: hooks of a skill are not supported"},
		"many":       {page(described) + strings.Repeat("!`a`\n", 65), "f.md: 65 commands, more than 64"},
		"one letter": {page(described, "allowed-tools: 'Re\x01ad'"), `f.md:3: not valid YAML: control characters are not allowed`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("daily", "f.md", []byte(tc.text))
			if got := lines(err); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want []string
	}{
		"none":            {"Just text, `code` and !bang.", nil},
		"a line":          {"!`git status`", []string{"git status"}},
		"inline":          {"Branch: !`git branch`, files:\t!`git ls-files`.", []string{"git branch", "git ls-files"}},
		"in a row":        {"!`a` !`b`\n!`c`", []string{"a", "b", "c"}},
		"in a fence":      {"```\n!`git diff`\n```", []string{"git diff"}},
		"in double ticks": {"as in `` !`date` ``", []string{"date"}},
		"behind text":     {"KEY=!`a` wow!`b` (!`c`)", nil},
		"adjacent":        {"!`a`!`b`", []string{"a"}},
		"never closed":    {"say !`date", nil},
		"empty":           {"!`` x", nil},
		"two lines":       {"!`a\nb`", []string{"a\nb"}},
		"other spaces":    {"\u00a0!`a`\u2003!`b`", []string{"a", "b"}},
		"a block":         {"```!\n!`a`\nls | wc\n```\n!`b`", []string{"b"}},
		"an open block":   {"```!\nx", nil},
		"with a shell":    {"!`a | b`", []string{"a | b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (skillFile{Body: tc.body}).Commands(); !slices.Equal(got, tc.want) {
				t.Errorf("%q: %q, want %q", tc.body, got, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\nname: daily\ndescription: a\nallowed-tools: Read, Bash(git *)\nargument-hint: [a]\nmetadata: {b: c}\n---\n!`date`\n")
	f.Add("---\ndescription: a\ntools: [x(]\nhooks: 1\n---\n```!\nx\n```")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("daily", "f.md", []byte(text))
		if err == nil && (s.Name != "daily" || strings.TrimSpace(s.Description) == "" || strings.TrimSpace(s.Body) == "" || len(s.Commands()) > 64) {
			t.Errorf("%q is no skill: %+v", text, s)
		}
		a, agentErr := parseAgent("daily", "f.md", []byte(text))
		if agentErr == nil && (a.Description == "" || a.Prompt == "") {
			t.Errorf("%q is no agent: %+v", text, a)
		}
		for _, err := range []error{err, agentErr} {
			var faults yamldoc.Faults
			if err != nil && (!errors.As(err, &faults) || len(faults) == 0) {
				t.Errorf("%q: not faults: %v", text, err)
			}
		}
	})
}
