package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/policy"
)

// pickOne is the value of --resume without an id.
const pickOne = "?"

// asAsk turns the short spelling of ask into the long one: -p, -c, -r, --session and --no-session before any command word mean ask, as
// people know them from other agents, so that `ollim -p status` asks "status".
func asAsk(root *cobra.Command, args []string) []string {
	if isCompletion(args) {
		end := len(args)
		if isFlag(args[end-1]) { // the flag that is being completed
			end--
		}
		return slices.Concat(args[:1], asAsk(root, args[1:max(end, 1)]), args[max(end, 1):])
	}
	ask, _, err := root.Find([]string{"ask"})
	if err != nil {
		return args
	}
	r := rewriter{flags: ask.Flags()}
	r.flags.AddFlagSet(root.PersistentFlags())
	for r.rest = args; len(r.rest) > 0; {
		word := r.rest[0]
		if !r.meant && (word == "--" || !isFlag(word)) {
			if word != "ask" {
				return args
			}
			r.meant = true
			r.rest = r.rest[1:]
			continue
		}
		if word == "--" {
			break
		}
		r.next()
	}
	if !r.meant {
		return args
	}
	return append(append([]string{"ask"}, r.out...), r.rest...)
}

func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

type rewriter struct {
	flags     *pflag.FlagSet
	rest, out []string
	meant     bool // a question is meant
}

func (r *rewriter) next() {
	word := r.rest[0]
	r.rest = r.rest[1:]
	name, isLong := strings.CutPrefix(word, "--")
	switch {
	case !isFlag(word):
		r.out = append(r.out, word)
	case isLong:
		r.long(word, name)
	default:
		r.short(word[1:])
	}
}

func (r *rewriter) long(word, name string) {
	name, _, hasValue := strings.Cut(name, "=")
	switch name {
	case "print":
		r.meant = true
		return
	case "continue", "session", "no-session":
		r.meant = true
	case "resume":
		r.meant = true
		if !hasValue {
			r.resume()
			return
		}
	}
	r.out = append(r.out, word)
	if f := r.flags.Lookup(name); f != nil && f.NoOptDefVal == "" && !hasValue {
		r.value()
		for range more(name, r.rest) {
			r.out, r.rest = append(r.out, "--"+name+"="+r.rest[0]), r.rest[1:]
		}
	}
}

// more returns how many words are further values of a flag that takes several, as flags of the claude command do. That command takes all
// words up to the next flag, even the question. Here a word must look like a value. The bare name of a tool may begin the question, as in
// Read main.go, so a pattern that allows something is a value only if values alone follow.
func more(name string, words []string) (n int) {
	for _, word := range words {
		switch {
		case name == "add-dir" && (word == ".." || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")):
			n++
		case (grantsTools(name) || restrictsTools(name)) && arePatterns(word):
			n++
		case isFlag(word):
			return n
		default:
			for n > 0 && grantsTools(name) && !strings.ContainsAny(words[n-1], "(_") {
				n--
			}
			return n
		}
	}
	return n
}

// grantsTools reports whether the values of a flag are patterns of tools that the agent may use.
func grantsTools(name string) bool { return name == "allowed-tools" || name == "allowedTools" }

// restrictsTools reports whether the values of a flag are names of tools that limit what the agent may use.
func restrictsTools(name string) bool {
	return name == "disallowed-tools" || name == "disallowedTools" || name == "tools"
}

// short reads a cluster of flags such as -cp letter by letter. The rest of the cluster may be the value of a flag.
func (r *rewriter) short(letters string) {
	kept := ""
	for i, letter := range letters {
		if letter >= utf8.RuneSelf { // not a flag; cobra reports it
			r.keep(kept + letters[i:])
			return
		}
		rest := letters[i+1:]
		f := r.flags.ShorthandLookup(string(letter))
		switch {
		case letter == 'p':
			r.meant = true
		case letter == 'r':
			r.meant = true
			r.keep(kept)
			if rest != "" {
				r.out = append(r.out, "--resume="+strings.TrimPrefix(rest, "="))
			} else {
				r.resume()
			}
			return
		case f != nil && f.NoOptDefVal == "":
			r.keep(kept + string(letter) + rest)
			if rest == "" {
				r.value()
			}
			return
		default:
			r.meant = r.meant || letter == 'c'
			kept += string(letter)
		}
	}
	r.keep(kept)
}

func (r *rewriter) keep(letters string) {
	if letters != "" {
		r.out = append(r.out, "-"+letters)
	}
}

func (r *rewriter) value() {
	if len(r.rest) > 0 {
		r.out, r.rest = append(r.out, r.rest[0]), r.rest[1:]
	}
}

func (r *rewriter) resume() {
	id := pickOne
	if len(r.rest) > 0 && !isFlag(r.rest[0]) {
		id, r.rest = r.rest[0], r.rest[1:]
	}
	r.out = append(r.out, "--resume="+id)
}

// spreadTools repeats --allowed-tools for each pattern after it in a command that adds a job, because the flag of the claude command takes
// several. A word is a pattern if it cannot be anything else, or if the text of the job may still follow.
func spreadTools(args []string) []string {
	const flag = "--allowed-tools"
	at := slices.Index(args, "add")
	if at < 1 || !slices.Contains([]string{"routine", "reminder", "webhook"}, strings.TrimSuffix(args[at-1], "s")) {
		return args
	}
	out, rest := slices.Clone(args[:at+1]), args[at+1:]
	for len(rest) > 0 && rest[0] != "--" {
		word := rest[0]
		out, rest = append(out, word), rest[1:]
		if word == flag && len(rest) > 0 {
			out, rest = append(out, rest[0]), rest[1:]
		} else if !strings.HasPrefix(word, flag+"=") {
			continue
		}
		for len(rest) > 0 && arePatterns(rest[0]) && (strings.ContainsAny(rest[0], "(_") || slices.ContainsFunc(rest[1:], func(w string) bool { return !isFlag(w) })) {
			out, rest = append(out, flag+"="+rest[0]), rest[1:]
		}
	}
	return append(out, rest...)
}

// arePatterns reports whether a word is a list of patterns of tools.
func arePatterns(word string) bool {
	list := policy.List(word)
	return len(list) > 0 && !slices.ContainsFunc(list, func(p string) bool { return !policy.IsTool(p) })
}
