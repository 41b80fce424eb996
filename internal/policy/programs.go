package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// usage is what patterns give of a program where nothing is sealed. Its zero value is nothing.
type usage struct {
	known   bool
	verbs   string // what the arguments begin with, + between two words; "": anything
	options string // that no word may be: they run another program, or use files that the pattern does not name
	exactly bool   // no wildcard: the arguments say what it does
	service bool   // its work is done by a process that no seal holds: this is in force in sealed runs as well
}

// readers returns the programs that only read, whatever their arguments are.
func readers() []string {
	return strings.Fields(`basename cal cat cksum cmp comm cut date df dirname echo free head id md5sum nproc sha256sum stat tail tr uname
		uptime who whoami`)
}

// usageOf says it of a program. Nobody can list what all programs do with their arguments: few are here, and the owner writes a script
// for the others, which runs only as it was approved.
func usageOf(program string) usage {
	if slices.Contains(readers(), program) {
		return usage{known: true}
	}
	switch program {
	case "awk", "bun", "cargo", "cmake", "deno", "dotnet", "go", "gradle", "just", "make", "mvn", "ninja", "node", "npm", "perl", "php",
		"pip", "pnpm", "poetry", "psql", "python", "ruby", "sed", "sqlite", "uv", "yarn":
		return usage{known: true, exactly: true}
	case "git":
		return usage{known: true, verbs: `add annotate blame branch cat-file check-ignore checkout cherry cherry-pick clean commit
			count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref grep log ls-files ls-remote ls-tree merge
			merge-base mv name-rev pull push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show
			show-ref stash status switch tag whatchanged worktree`, options: `-c -O -x --config-env --exec-path --exec --extcmd
			--upload-pack --receive-pack --ext-diff --textconv --open-files-in-pager --output --no-index`}
	case "gh":
		return usage{known: true, verbs: `issue pr search status workflow gist+list gist+view release+list release+view repo+list
			repo+view run+list run+view run+watch`}
	case "docker":
		return usage{known: true, service: true, verbs: "ps images inspect logs stats top port version info diff history events"}
	case "systemctl":
		return usage{known: true, service: true, verbs: `status show cat is-active is-enabled is-failed list-units list-unit-files
			list-timers list-sockets list-jobs list-dependencies`, options: "-H -M --host --machine --root --image"}
	case "crontab":
		return usage{known: true, service: true, verbs: "-l", options: "-e -r -i -n -T -u -s"}
	}
	return usage{}
}

// program is what a command's name is called above: without directory, version and capitals.
func program(name string) string {
	base := strings.TrimSuffix(strings.ToLower(path.Base(name)), ".exe")
	return cmp.Or(strings.TrimRight(base, "0123456789.-"), base)
}

// isScript reports whether a command is a script that is named by its path.
func isScript(name string) bool {
	return strings.Contains(name, "/") && slices.Contains([]string{".sh", ".py", ".js", ".rb", ".pl"}, path.Ext(name))
}

// refusal says why no agent may run a command with these words, or no pattern have words that begin with them, of which so many are
// literal before the first wildcard; "" if nothing is against it.
func refusal(words []string, literal int, sealed bool) string {
	name := words[0]
	base, called := program(name), plaintext.Short(name, 80)
	given := usageOf(base)
	switch {
	case strings.HasPrefix(name, "-"), strings.HasSuffix(name, "/"):
		return called + " is not a command"
	case name == ollim:
		return ""
	case base == ollim, strings.HasPrefix(strings.ToLower(path.Base(name)), ollim+"."):
		return called + " is not ollim; write ollim"
	case sealed && !given.service, isScript(name):
		return ""
	case !given.known:
		return called + " is not one of the programs that run without a seal; write a script and name it by its path, such as ./tools/report.sh"
	}
	if verbs := strings.Fields(given.verbs); len(verbs) > 0 && !hasVerb(base, verbs, words[1:literal]) {
		return fmt.Sprintf("%s must be followed by one of these words: %s", called, strings.ReplaceAll(strings.Join(verbs, ", "), "+", " "))
	}
	for _, word := range words[1:] {
		for option := range strings.FieldsSeq(given.options) {
			if isOption(word, option) {
				return fmt.Sprintf("%s %s can run other programs, or read or write files that the pattern does not name", called, option)
			}
		}
	}
	if given.exactly && literal < len(words) {
		return called + " does what its arguments say; without a seal, write them out without wildcards"
	}
	return ""
}

// hasVerb reports whether arguments begin with one of the verbs, perhaps after what says where.
func hasVerb(program string, verbs, args []string) bool {
	for program == "git" && len(args) > 2 && args[0] == "-C" {
		args = args[2:]
	}
	if program == "systemctl" && len(args) > 0 && args[0] == "--user" {
		args = args[1:]
	}
	return slices.ContainsFunc(verbs, func(verb string) bool {
		words := strings.Split(verb, "+")
		return len(args) >= len(words) && slices.Equal(args[:len(words)], words)
	})
}

// isOption reports whether word is the option, perhaps with its value, abbreviated, or within a cluster of short ones.
func isOption(word, option string) bool {
	head, _, _ := strings.Cut(word, "=")
	if strings.HasPrefix(option, "--") {
		return len(head) > len("--") && strings.HasPrefix(option, head)
	}
	return strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, option[1:])
}
