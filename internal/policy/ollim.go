package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ollim is the program whose verbs are looked at one by one.
const ollim = "ollim"

// Access is what an agent may do with a command of ollim.
type Access int

// The accesses.
const (
	Never Access = iota // it may not use it
	Own                 // it may use it for its own run and job; for more a pattern must allow it
	All                 // it may use it where a pattern allows it
)

// OllimAccess names the command that ollim's arguments mean (at least one, options that may stand before it left out), and says what
// an agent may do with it; "" is an unknown command.
type OllimAccess func(args []string) (command string, access Access)

// Verbs maps the commands of ollim, each one word or two ("help", "task list"), to what an agent may do with them. A noun with
// subcommands is a command of its own, which says what those are. A command that is not in the map is for no agent.
type Verbs map[string]Access

// Access is an OllimAccess.
//
// The second word is the subcommand. The command line library looks for it past options and empty words, and takes the word after
// an option that it does not know for that option's value: so where the second word is none of the subcommands, every later one
// counts.
func (v Verbs) Access(args []string) (command string, access Access) {
	named := func(key, sub string) bool {
		noun, name, two := strings.Cut(key, " ")
		return singular(noun) == singular(args[0]) && two && singular(name) == singular(sub)
	}
	keys, rest := slices.Sorted(maps.Keys(v)), args[1:] // a noun comes before its subcommands
	if len(rest) > 0 && slices.ContainsFunc(keys, func(key string) bool { return named(key, rest[0]) }) {
		rest = rest[:1]
	}
	for _, key := range keys {
		if strings.Contains(command, " ") && v[key] >= access {
			continue
		}
		noun := !strings.Contains(key, " ") && singular(key) == singular(args[0])
		if noun || slices.ContainsFunc(rest, func(word string) bool { return named(key, word) }) {
			command, access = key, v[key]
		}
	}
	return command, access
}

// OwnerVerbs returns the commands that no pattern in a file may match. The first six are the ones of the behaviour (9.3); the
// others have the same power by other means: they approve, run commands of a file that an agent may have written, or set the
// owner's limits. What an agent may use is decided when it does, by Policy.Ollim.
func OwnerVerbs() Verbs {
	return Verbs{
		"approve": Never, "routine add": Never, "routine edit": Never, "config": Never, "schedule": Never, "init": Never, "mcp": Never,
		"hook": Never, "webhook add": Never, "webhook edit": Never, "webhook serve": Never, "skill render": Never,
		"budget set": Never, "secret": Never,
	}
}

// quietFlags are the only options that may stand before the command: they have no value.
func quietFlags() []string { return []string{"-q", "-v", "--quiet", "--verbose"} }

// OllimRefusal says why an agent may not run ollim with these arguments, "" if it may. access says which command they name and what an
// agent may do with it.
func OllimRefusal(args []string, access OllimAccess) string {
	if access == nil {
		access = Verbs{}.Access
	}
	for _, word := range args {
		for _, flag := range []string{"--data-dir", "--config", "--engine"} { // whose directory, settings or engine is used
			if strings.HasPrefix(word, flag) {
				return fmt.Sprintf("ollim %s is reserved to the owner", flag)
			}
		}
	}
	args = skipFlags(args)
	switch {
	case len(args) == 0, len(args) == 1 && slices.Contains([]string{"-h", "--help", "--version"}, args[0]):
		return ""
	case args[0] == "" || strings.HasPrefix(args[0], "-"):
		return "ollim: the command comes first, then options (ollim ask for ollim -p)"
	}
	switch command, is := access(args); {
	case command == "":
		return fmt.Sprintf("ollim has no command %s for an agent", quote(args[0]))
	case is == Never:
		return fmt.Sprintf("ollim %s is the owner's command", command)
	}
	after := args[slices.Index(args, "pop")+1:]
	if singular(args[0]) == "update" && len(after) < len(args) &&
		slices.ContainsFunc(after, func(a string) bool { return a == "--" || !strings.HasPrefix(a, "-") }) {
		return "ollim update pop -- runs the given command; call it without one"
	}
	return ""
}

// DecideOllim decides a command of ollim that a program of the run sends: args are its words after ollim. It is allowed where the same
// words as a command of Bash would be, and, with own, where it is one of the run's own doings: then it may show and change only what
// belongs to the run and its job. The error says why it is refused. Files are not looked at: the command opens only those that the run may.
func (p Policy) DecideOllim(args []string) (own bool, err error) {
	if reason := OllimRefusal(args, p.Ollim); reason != "" {
		return false, errors.New(reason)
	}
	words := append([]string{ollim}, args...)
	_, err = pick(p.of("Bash"), "the command", func(pattern Pattern) bool { return matchWords(pattern.words, words) })
	if err != nil && p.ownDoing(args) {
		return true, nil
	}
	return false, err
}

// ownDoing reports whether ollim's arguments are a command that every run may use for itself. Between the words of the command stands
// no option: the command line library could take another word for the command.
func (p Policy) ownDoing(args []string) bool {
	args = skipFlags(args)
	if len(args) == 0 || p.Ollim == nil {
		return false
	}
	if strings.HasPrefix(args[0], "-") {
		return true // --help or --version, by OllimRefusal
	}
	command, access := p.Ollim(args)
	noun, verb, two := strings.Cut(command, " ")
	return access == Own && singular(noun) == singular(args[0]) && (!two || len(args) > 1 && singular(verb) == singular(args[1]))
}

// skipFlags leaves out the options that may stand before the verb.
func skipFlags(args []string) []string {
	for len(args) > 0 && (slices.Contains(quietFlags(), args[0]) || strings.HasPrefix(args[0], "--log-format=")) {
		args = args[1:]
	}
	if len(args) > 1 && args[0] == "--log-format" {
		return skipFlags(args[2:])
	}
	return args
}

func singular(word string) string { return strings.TrimSuffix(strings.ToLower(word), "s") }

// ollimPattern says why no file may hold a pattern of ollim with these words. Its wildcards could become one of the owner's verbs.
func ollimPattern(words [][]string) string {
	begin, literal := heads(words)
	inFile := func(args []string) (string, Access) {
		if command, access := OwnerVerbs().Access(args); command != "" {
			return command, access
		}
		return args[0], All
	}
	if reason := OllimRefusal(begin[1:literal], inFile); reason != "" || literal == len(words) {
		return reason
	}
	args := skipFlags(begin[1:literal])
	if len(args) == 0 {
		return "it would match any command of ollim; name one"
	}
	for verb := range OwnerVerbs() {
		noun, sub, _ := strings.Cut(verb, " ")
		if sub != "" && singular(noun) == singular(args[0]) && (len(args) == 1 || args[1] == "" || strings.HasPrefix(args[1], "-")) {
			return fmt.Sprintf("it would match a command of ollim %s that is reserved to the owner", noun)
		}
	}
	return ""
}
