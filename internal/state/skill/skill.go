// Package skill parses skills, skills/<name>/SKILL.md, strictly and independently of each other. It renders them: their dynamic commands,
// !`command`, are run without a shell and replaced by their output. It also parses subagents, agents/<name>.md.
//
// The format is the public one of Claude Code, with these choices. The frontmatter and its description are required: people and models
// choose by the description, and a file without one is more likely a mistake than a skill. A name, if there is one, must be that of the
// directory. Keys that only affect how a skill is shown or offered elsewhere are ignored. Unsupported keys that would change what a skill
// may do, or how it runs, are errors, because ignoring them would run something else.
//
// A command is the text between !` and the next `, where ! begins a line or follows white space (KEY=!`x` is text). Markdown is not
// parsed: a command in a code fence or in double backticks runs too, as it does in Claude Code, so that a fence can hold output. A block
// that opens with ```! is for a shell and is never run. Rendered text holds no command, whatever a command printed: an engine that looks
// for commands again finds none.
package skill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

const (
	maxFile     = 1 << 20 // the largest SKILL.md or agent file that is read, in bytes
	maxName     = 64      // the longest name, in bytes
	maxCommands = 64      // commands of one skill
)

// skillFile is one SKILL.md.
type skillFile struct {
	Name         string // name of its directory
	Description  string
	AllowedTools []string // tool patterns, of which only the form was checked
	Body         string   // text below the frontmatter, without blank lines around it
	Path         string   // path of SKILL.md
}

// Parse parses a SKILL.md in a directory called name. file stands for it in errors. The error is a yamldoc.Faults with everything that is
// wrong.
func Parse(name, file string, data []byte) (skillFile, error) {
	s := skillFile{Name: name}
	page, faults, err := parse(name, "folder", file, data, s.fields())
	if err != nil {
		return skillFile{}, err
	}
	s.Body = bodyOf(page)
	s.Description = strings.TrimSpace(s.Description) // a block of text ends with a newline
	wrong := func(reason string) { faults = append(faults, page.Doc.Fault("", reason)) }
	if strings.TrimSpace(s.Body) == "" {
		wrong("the text below the frontmatter is empty")
	}
	if n := len(s.Commands()); n > maxCommands {
		wrong(fmt.Sprintf("%d commands, more than %d", n, maxCommands))
	}
	return s, inOrder(faults)
}

func (s *skillFile) fields() []yamldoc.Field {
	return []yamldoc.Field{
		text("description", &s.Description, notBlank),
		tools("allowed-tools", &s.AllowedTools),
		passed("when-to-use"), passed("argument-hint"),
		passed("version"), passed("license"), passed("compatibility"), passed("metadata"),
		passed("model"), passed("effort"), passed("paths"), passed("user-invocable"), passed("disable-model-invocation"),
		refused("disallowed-tools", "a skill cannot remove tools: omit them from the job's allowed-tools"),
		refused("context", "a skill runs in the run that invokes it; a job can have a subagent"),
		refused("agent", "a skill runs in the run that invokes it; a job can have a subagent"),
		refused("background", "a skill runs in the run that invokes it"),
		refused("hooks", "hooks of a skill are not supported"),
		refused("shell", "commands run without a shell"),
		refused("arguments", "named arguments are not supported: write $ARGUMENTS"),
	}
}

// Commands returns the dynamic commands as written, in their order. It includes those that are not run because they need a shell.
func (s skillFile) Commands() []string {
	var list []string
	for _, p := range split(s.Body) {
		if p.kind == command {
			list = append(list, p.text)
		}
	}
	return list
}

func bodyOf(page *yamldoc.Page) string {
	return strings.Trim(strings.ReplaceAll(page.Body, "\r\n", "\n"), "\r\n")
}

// parse parses the fields of a file. name is the name of the file without its extension, or of its directory, as place says ("file" or
// "folder"). A description is required.
func parse(name, place, file string, data []byte, fields []yamldoc.Field) (page *yamldoc.Page, faults yamldoc.Faults, err error) {
	if page, err = yamldoc.ParsePage(file, data); err != nil {
		return nil, nil, err
	}
	var given string
	errors.As(page.Doc.Decode(append(fields, text("name", &given, func(got string) error {
		if got != name {
			return fmt.Errorf("%q is not the name of its %s, %q", got, place, name)
		}
		return nil
	}))), &faults)
	if !page.Doc.Has("description") {
		faults = append(faults, page.Doc.Fault("description", "is missing"))
	}
	return page, faults, nil
}

func inOrder(faults yamldoc.Faults) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b *yamldoc.Fault) int { return cmp.Compare(a.Line, b.Line) })
	return faults
}

func text(key string, at *string, check func(string) error) yamldoc.Field {
	return yamldoc.Field{Key: key, Read: func(v yamldoc.Value) (err error) {
		if *at, err = v.Text(); err == nil && check != nil {
			err = check(*at)
		}
		return err
	}}
}

// tools returns a field that is a list, or text with commas or blanks between the items.
func tools(key string, at *[]string) yamldoc.Field {
	return yamldoc.Field{Key: key, Read: func(v yamldoc.Value) error {
		line, err := v.Text()
		if err != nil {
			*at, err = v.Texts(checkTool)
			return err
		}
		*at = policy.List(line)
		for _, tool := range *at {
			err = cmp.Or(err, checkTool(tool))
		}
		return err
	}}
}

// passed returns a field of the public format that has no effect here and can be ignored safely.
func passed(key string) yamldoc.Field {
	return yamldoc.Field{Key: key, Read: func(yamldoc.Value) error { return nil }}
}

// refused returns a field of the public format that must not be ignored.
func refused(key, why string) yamldoc.Field {
	return yamldoc.Field{Key: key, Read: func(yamldoc.Value) error { return errors.New("is not supported: " + why) }}
}

// checkTool checks the form TOOL or TOOL(SCOPE) only. What a pattern allows is judged where it is used.
func checkTool(tool string) error {
	name, scope, scoped := strings.Cut(tool, "(")
	inner, closed := strings.CutSuffix(scope, ")")
	stem := strings.TrimSuffix(name, "*")
	good := plaintext.IsWord(stem, "_-") && stem != "" && strings.IndexByte("0123456789_-", stem[0]) < 0
	unprintable := strings.ContainsFunc(tool, func(r rune) bool { return r < ' ' || r == 0x7f })
	if !good || unprintable || scoped && (!closed || strings.TrimSpace(inner) == "") {
		return fmt.Errorf("%q is not a tool: want TOOL or TOOL(SCOPE)", tool)
	}
	return nil
}

// checkName returns an error if text is not a valid name of a directory or file of the data directory.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%q is not a name: want 1 to %d characters", name, maxName)
	case !plaintext.IsID(name):
		return fmt.Errorf("%q is not a name: want letters and digits and, after the first character, . _ -", name)
	}
	return nil
}

func notBlank(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty")
	}
	return nil
}
