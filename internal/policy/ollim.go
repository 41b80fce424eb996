package policy

import (
	"fmt"
	"slices"
	"strings"
)

// OwnerVerbs are ollim's verbs that no agent uses, as one or two words in the singular. The first six are the ones of the
// behaviour (9.3). The others give the same power by another door: they approve, run commands of a file that an agent may have
// written, or set the owner's limits.
func OwnerVerbs() []string {
	return []string{
		"approve", "routine add", "routine edit", "config", "schedule", "init", "mcp",
		"hook", "import", "webhook add", "webhook edit", "webhook serve", "skill render", "budget set",
	}
}

// ownerFlags are options that change whose directory, settings or engine is used.
func ownerFlags() []string { return []string{"--data-dir", "--config", "--engine"} }

// quietFlags are the only options that may stand before the verb: the command line library is told that they have no value.
func quietFlags() []string { return []string{"-q", "-v", "--quiet", "--verbose"} }

// ollimRefusal says why no agent may run ollim with these words.
func ollimRefusal(words, verbs []string) string {
	for _, word := range words[1:] {
		for _, flag := range ownerFlags() {
			if strings.HasPrefix(word, flag) {
				return fmt.Sprintf("ollim %s is the owner's to use", flag)
			}
		}
	}
	args := skipFlags(words[1:])
	if len(args) == 0 {
		return ""
	}
	if args[0] == "" || strings.HasPrefix(args[0], "-") {
		if len(args) == 1 && slices.Contains([]string{"-h", "--help", "--version"}, args[0]) {
			return ""
		}
		return "ollim: the verb comes first, options after it (ollim ask for ollim -p)"
	}
	for _, verb := range slices.Concat(OwnerVerbs(), verbs) {
		noun, sub, two := strings.Cut(verb, " ")
		if singular(args[0]) != singular(noun) {
			continue
		}
		// The library looks for the second word past options and empty words, so every later one counts.
		if !two || slices.ContainsFunc(args[1:], func(a string) bool { return singular(a) == singular(sub) }) {
			return fmt.Sprintf("ollim %s is the owner's verb", verb)
		}
	}
	return pipesInto(args)
}

// pipesInto refuses ollim updates pop -- COMMAND.
func pipesInto(args []string) string {
	at := slices.Index(args, "pop")
	if singular(args[0]) != "update" || at < 0 {
		return ""
	}
	if slices.ContainsFunc(args[at+1:], func(a string) bool { return a == "--" || !strings.HasPrefix(a, "-") }) {
		return "ollim updates pop runs the command it is given; call it without one"
	}
	return ""
}

// skipFlags leaves out the options that may stand before the verb.
func skipFlags(args []string) []string {
	for len(args) > 0 {
		switch {
		case slices.Contains(quietFlags(), args[0]), strings.HasPrefix(args[0], "--log-format="):
			args = args[1:]
		case args[0] == "--log-format" && len(args) > 1:
			args = args[2:]
		default:
			return args
		}
	}
	return nil
}

func singular(word string) string { return strings.TrimSuffix(strings.ToLower(word), "s") }

// ownerPattern says which of the owner's verbs a pattern of ollim's words could match.
func ownerPattern(words []wild) string {
	args := words[1:]
	for len(args) > 0 && args[0].literal() && len(skipFlags([]string{args[0][0]})) == 0 {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	if strings.HasPrefix(args[0][0], "-") && !args[0].literal() {
		return "any option"
	}
	for _, verb := range OwnerVerbs() {
		noun, sub, two := strings.Cut(verb, " ")
		could := func(word string) func(wild) bool {
			return func(w wild) bool {
				return w.match(word) || w.match(word+"s") || w.literal() && singular(w[0]) == singular(word)
			}
		}
		if could(noun)(args[0]) && (!two || args[0].any() && len(args) == 1 || slices.ContainsFunc(second(args[1:]), could(sub))) {
			return "ollim " + verb
		}
	}
	return ""
}

// second is the part of a pattern in which a second verb can stand: up to the first literal word that is no option.
func second(words []wild) []wild {
	for i, w := range words {
		if w.literal() && w[0] != "" && !strings.HasPrefix(w[0], "-") {
			return words[:i+1]
		}
	}
	return words
}
