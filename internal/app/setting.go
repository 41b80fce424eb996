package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/config"
)

// Setting is a setting as it is stored.
type Setting struct {
	Key    string
	Values []string
	Shell  bool // Values are sh -c LINE, made of one line
}

// String returns how a command is stored.
func (s Setting) String() string {
	if s.Shell {
		return "a line for the shell: " + s.Values[len(s.Values)-1]
	}
	return "a program and its arguments: " + strings.Join(s.Values, " | ")
}

// IsCommand reports whether the value of a setting is a command.
func (s Setting) IsCommand() bool {
	return slices.Contains([]string{"delivery.command", "transcribe"}, yamldoc.Kebab(s.Key))
}

// ReadSetting returns a setting as it is stored, from the words that a person gives for it. A command is a list of words, one text of a
// YAML list, or one line for the shell. The error says why the setting cannot work on this machine. No message is sent and no
// model is asked.
func (h Home) ReadSetting(key string, words []string, atShell bool) (Setting, error) {
	s := Setting{Key: key, Values: words}
	var err error
	switch {
	case s.IsCommand():
		s = readCommand(key, words)
		err = h.findCommand(s.Values)
	case yamldoc.Kebab(key) == "engine" && len(words) == 1:
		if err = config.CheckEngine(words[0]); err == nil {
			return s, h.tryEngine(words[0], atShell)
		}
	case yamldoc.Kebab(key) == "claude-code.command" && len(words) == 1 && words[0] != "":
		if err = config.Check(key, words[0]); err == nil {
			err = h.findProgram(words[0])
		}
	}
	return s, wrong(key, err)
}

// wrong returns the error of a value that cannot work as a setting, with its hint; nil if there is none.
func wrong(key string, err error) error {
	hinted := (*Hinted)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &hinted):
		return Hint(&config.Wrong{Origin: key, Reason: hinted.Error()}, "%s", hinted.Hint)
	}
	return &config.Wrong{Origin: key, Reason: err.Error()}
}

// inShell are characters that a command line needs a shell for, and that the name of a program does not have.
const inShell = " \t\n|&;<>()$`\\\"'*?~{}!#"

// readCommand distinguishes words, a YAML list and a line for the shell.
func readCommand(key string, words []string) Setting {
	s := Setting{Key: key, Values: words}
	if len(words) != 1 {
		return s
	}
	line := strings.TrimSpace(words[0])
	if list, ok := yamlList(line); ok {
		s.Values = list
	} else if strings.ContainsAny(line, inShell) && process.Find(line, "/", nil) != nil {
		s.Values, s.Shell = []string{"sh", "-c", line}, true
	}
	return s
}

// yamlList reads a list as it stands in config.yaml, such as [mail, -s, ollim, me].
func yamlList(text string) (list []string, ok bool) {
	if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
		return nil, false
	}
	doc, err := yamldoc.Parse("", []byte("list: "+text+"\n"), 1)
	if err == nil {
		err = doc.Decode([]yamldoc.Field{{Key: "list", Read: func(v yamldoc.Value) (err error) { list, err = v.Texts(); return err }}})
	}
	return list, err == nil
}

// findCommand returns an error if the program of a command does not exist, or the first one of its line for the shell.
func (h Home) findCommand(words []string) error {
	if len(words) == 0 {
		return nil // none
	}
	if words[0] == "" {
		return errors.New("it has no program: write [] for no command")
	}
	if err := h.findProgram(words[0]); err != nil || len(words) < 3 || filepath.Base(words[0]) != "sh" || words[1] != "-c" {
		return err
	}
	name, err := shell.Program(words[2])
	if err != nil || name == "" || slices.Contains(strings.Fields(builtins), name) {
		return err
	}
	return h.findProgram(name)
}

// builtins are the commands of the shell that need no program.
const builtins = ". : alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs kill printf pwd read readonly " +
	"return set shift test times trap true type ulimit umask unalias unset wait"

// findProgram returns an error if a program is not found in PATH, or is not executable.
func (h Home) findProgram(name string) error {
	err := process.Find(name, string(h.Dir), h.childEnv())
	if errors.Is(err, process.ErrNotFound) {
		err = Hint(fmt.Errorf("%s: %w", name, process.ErrNotFound), "install %s; or write its absolute path, which `command -v %s` prints where it is found", name, name)
	}
	return err
}

// tryEngine returns an error if an engine cannot be used: its program, its file or its key is missing. No model is asked. The claude
// command need not be configured if UseClaude finds it.
func (h Home) tryEngine(name string, atShell bool) error {
	if name == engine.ClaudeCode && h.Config.Claude.Command == "" && h.app.FindClaude() != "" {
		return nil
	}
	if _, err := h.engines(atShell)(name); err != nil || name != engine.ClaudeCode {
		return err
	}
	return wrong(claudeCommand, h.findProgram(h.Config.Claude.Command))
}

// CarryOver is a session that another engine continues.
type CarryOver struct {
	Name   string // of the conversation: main, routine:ID or fork
	ID     string // of the session, which is kept
	Holder string // the engine that it belongs to
}

func (c CarryOver) String() string {
	return fmt.Sprintf("%s will continue in a new session that begins with the last messages of %s; that session, of the %s engine, is kept", c.Name, c.ID, c.Holder)
}

// CarriedOver returns the sessions that their next turn carries over if the configured engine becomes another one. Sessions of routines
// whose file names an engine are not among them.
func (h Home) CarriedOver(ctx context.Context, name string) (list []CarryOver, err error) {
	kind := engine.Kind(name)
	add := func(conversation, id string) {
		if holder := (archive{h}).Holder(id); holder != "" && holder != kind {
			list = append(list, CarryOver{conversation, id, holder})
		}
	}
	names, err := h.SessionNames()
	if err != nil {
		return nil, err
	}
	files, err := h.Jobs.Load()
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		j, known := files.ByID(n.Routine)
		if id, err := n.ID(h.Sessions); err == nil && (n.Routine == "" || known && j.Engine == "") {
			add(n.Text, id)
		}
	}
	f, open, err := h.Sessions.Fork(ctx)
	if open && f.Engine == "" && f.Session != "" {
		add("fork", f.Session)
	}
	return list, err
}
