package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ollim is the program whose verbs are looked at one by one.
const ollim = "ollim"

// runners are programs that run the command or the text they are given, and the builtins of shells (which bash, reading
// a[$(id)] as a subscript, makes runners too). No pattern gives them.
func runners() []string {
	return strings.Fields(`
		sh bash rbash dash ash zsh ksh mksh pdksh yash fish csh tcsh pwsh powershell elvish xonsh nu busybox toybox
		env sudo sudoedit doas su runuser pkexec setpriv capsh chroot unshare nsenter setarch linux linux32 linux64 firejail bwrap
		xargs parallel nohup timeout nice ionice chrt taskset setsid stdbuf unbuffer script expect watch time
		strace ltrace gdb lldb valgrind perf flock entr at batch crontab systemd-run start-stop-daemon daemonize runcon sg
		ssh rsh mosh docker podman kubectl tmux screen socat nc ncat netcat telnet vi vim nvim ex ed emacs nano less more man
		claude codex init systemctl service dbus-send
		eval exec command builtin source . : alias unalias bind caller cd compgen complete compopt coproc declare dirs disown
		enable export fc fg bg getopts hash help history jobs let local logout mapfile popd pushd printf read readarray
		readonly return select set shift shopt suspend test [ [[ trap type typeset ulimit umask unset until wait while
		autoload emulate functions noglob nocorrect repeat sched vared whence zcompile zmodload zparseopts zstyle - float integer
		if then else elif fi for foreach end do done case esac in function break continue exit times`)
}

// languages run a text or a file as a program: a pattern with wildcards must give the first argument, literally.
func languages() []string {
	return strings.Fields(`python pypy perl ruby irb node nodejs php lua luajit tclsh wish awk gawk mawk nawk guile scheme racket
		julia Rscript osascript java groovy runghc ocaml elixir escript`)
}

// builders run what a file, an option or a later argument tells them to, wherever it stands: their patterns have no wildcard.
func builders() []string {
	return strings.Fields(`sed bc dc sqlite psql mysql mariadb duckdb hg jj ghc swipl jshell iex erl
		make gmake bmake ninja cmake just meson bazel gradle mvn ant rake scons task npm npx pnpm pnpx yarn bun
		bunx deno corepack uv uvx pip pipx poetry cargo go gem bundle composer dotnet apt apt-get dpkg dnf yum brew nix nix-shell
		ansible terraform vagrant`)
}

// verbs are, for programs that are another one with each verb, those that do not run what their arguments say; nil for other
// programs. A verb of two words, written with a + here, counts with both.
func verbs(program string) (list []string) {
	table := map[string]string{
		"git": `add annotate blame branch cat-file check-ignore checkout cherry cherry-pick clean commit count-objects
			describe diff diff-files diff-index diff-tree fetch for-each-ref grep log ls-files ls-remote ls-tree merge merge-base mv
			name-rev pull push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show show-ref
			stash status switch tag whatchanged worktree`,
		"gh": `api issue label pr search status workflow gist+list gist+view release+list release+view repo+list repo+view
			run+list run+view run+watch`,
		"docker": "ps images inspect logs stats top port version info diff history events",
		"systemctl": `status show cat is-active is-enabled is-failed list-units list-unit-files list-timers list-sockets
			list-jobs list-dependencies`,
		"crontab": "-l",
	}
	for verb := range strings.FieldsSeq(table[program]) {
		list = append(list, strings.ReplaceAll(verb, "+", " "))
	}
	return list
}

// hasVerb reports whether the words of a command name one of the verbs of its program. Only what says where may come before it.
func hasVerb(words []string) bool {
	args := words[1:]
	switch {
	case program(words[0]) == "git":
		for len(args) > 2 && args[0] == "-C" {
			args = args[2:]
		}
	case program(words[0]) == "systemctl" && len(args) > 1 && args[0] == "--user":
		args = args[1:]
	}
	return slices.ContainsFunc(verbs(program(words[0])), func(verb string) bool {
		want := strings.Fields(verb)
		return len(args) >= len(want) && slices.Equal(args[:len(want)], want)
	})
}

// unpackers write wherever what they read says.
func unpackers() []string {
	return strings.Fields(`unzip bsdtar cpio pax 7z 7za 7zr 7zz unar unrar patch`)
}

// walkers go through the working directory when no argument says otherwise.
func walkers() []string {
	return strings.Fields(`find fd fdfind rg ag ack tree du ncdu`)
}

// runningOptions are the options by which a program that is no runner runs another one. A short option is also found with its
// value attached; a long one also abbreviated.
func runningOptions(program string) []string {
	return strings.Fields(map[string]string{
		"find":      "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from",
		"fd":        "-x -X --exec --exec-batch",
		"fdfind":    "-x -X --exec --exec-batch",
		"rg":        "-z --pre --search-zip --hostname-bin",
		"git":       "-c -O -x --config-env --exec-path --exec --extcmd --upload-pack --receive-pack --ext-diff --textconv --open-files-in-pager --output --no-index",
		"tar":       "-I -F -T --files-from --to-command --checkpoint-action --use-compress-program --info-script --new-volume-script --rsh-command --rmt-command",
		"rsync":     "-e -M --rsh --rsync-path --remote-option",
		"scp":       "-S -o -F -D",
		"sftp":      "-S -o -F -D",
		"sort":      "--compress-program --files0-from",
		"wc":        "--files0-from",
		"du":        "--files0-from",
		"systemctl": "-H -M --host --machine --root --image",
		"crontab":   "-e -r -i -n -T -u -s",
		"jq":        "-f -L --from-file --library-path",
		"gojq":      "-f -L --from-file --library-path",
		"jaq":       "-f -L --from-file --library-path",
		"split":     "--filter",
		"install":   "--strip-program",
		"diff":      "--diff-program",
		"sdiff":     "--diff-program",
		"bat":       "--pager",
		"batcat":    "--pager",
		"tcpdump":   "-z",
		"curl":      "-K -O -J --proto-default --config --remote-name --remote-name-all --remote-header-name",
		"wget":      "-e --execute --config --use-askpass",
		"zip":       "-T -TT --unzip-command",
	}[program])
}

// gitRunners are the verbs of git that run other programs, or set what will be run.
func gitRunners() []string {
	return strings.Fields(`config bisect submodule filter-branch difftool mergetool instaweb send-email daemon hook credential
		maintenance apply am init checkout-index read-tree remote-ext remote-fd`)
}

// program is what a command's name is called in the tables: without directory, version and capitals.
func program(name string) string {
	base := strings.TrimSuffix(strings.ToLower(path.Base(name)), ".exe")
	if short := strings.TrimRight(base, "0123456789.-"); short != "" {
		return short
	}
	return base
}

func inTable(table []string, name string) bool {
	return slices.Contains(table, program(name)) || slices.Contains(table, name) || slices.Contains(table, strings.ToLower(path.Base(name)))
}

// programPattern says why no pattern may have these words.
func programPattern(words []wild) error {
	name := words[0][0]
	var text, literal []string
	for _, w := range words {
		text = append(text, w[0]) // the text before a wildcard tells an option
		if w.literal() && len(literal) == len(text)-1 {
			literal = append(literal, w[0])
		}
	}
	if reason := programRefusal(text); reason != "" {
		return errors.New(reason)
	}
	if len(literal) == len(words) {
		return nil
	}
	switch {
	case inTable(languages(), name) && (len(literal) < 2 || strings.HasPrefix(literal[1], "-") || literal[1] == ""):
		return fmt.Errorf("%s runs any program it is given; name the script as its first argument", name)
	case verbs(program(name)) != nil && !hasVerb(literal):
		return fmt.Errorf("%s needs one of these words before a wildcard: %s", name, strings.Join(verbs(program(name)), ", "))
	case inTable(builders(), name):
		return fmt.Errorf("%s runs any program with the right arguments; write them out without wildcards", name)
	}
	return nil
}

// programRefusal says why no agent may run a command with these words, whatever the patterns say.
func programRefusal(words []string) string {
	name := words[0]
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "/") {
		return fmt.Sprintf("%s is not a command", quoteless(name))
	}
	if program(name) == ollim || strings.HasPrefix(strings.ToLower(path.Base(name)), ollim+".") {
		if name != ollim {
			return fmt.Sprintf("%s is not ollim; write ollim", quoteless(name))
		}
		return ""
	}
	if inTable(runners(), name) && !hasVerb(words) {
		if allowed := verbs(program(name)); allowed != nil {
			return fmt.Sprintf("%s must be followed by one of these words: %s", quoteless(name), strings.Join(allowed, ", "))
		}
		return fmt.Sprintf("%s runs any command it is given", quoteless(name))
	}
	if inTable(unpackers(), name) {
		return fmt.Sprintf("%s writes to files named in its input", quoteless(name))
	}
	if reason := ownRefusal(program(name), words[1:]); reason != "" {
		return reason
	}
	at := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") }) + 1
	if program(name) == "git" && at > 0 && slices.Contains(gitRunners(), words[at]) {
		return fmt.Sprintf("%s %s can run other programs, or set what is run", quoteless(name), words[at])
	}
	for i, word := range words[1:] {
		if i == 0 && program(name) == "tar" && !strings.HasPrefix(word, "-") {
			word = "-" + word // tar xIf
		}
		for _, option := range runningOptions(program(name)) {
			if isOption(ownOptions(program(name), word), option) {
				return fmt.Sprintf("%s %s can run other programs, or read or write files that the pattern does not name", quoteless(name), option)
			}
		}
	}
	return ""
}

// ownRefusal is about what single programs make of their arguments.
func ownRefusal(program string, words []string) string {
	switch program {
	case "tar":
		if unpacksHere(words) {
			return "tar writes to files named in the archive; name a directory with -C"
		}
	case "curl":
		return curlRefusal(words)
	case "wget":
		if !slices.ContainsFunc(words, func(w string) bool { return isOption(w, "-O") || isOption(w, "--output-document") }) {
			return "wget takes the file name from the address; name a file with -O"
		}
	case "jq", "gojq", "jaq":
		imports := regexp.MustCompile(`(^|[^.$\w])(import|include)\b`)
		if slices.ContainsFunc(words, imports.MatchString) {
			return "jq import and include read files that the pattern does not name"
		}
	}
	return ""
}

// unpacksHere reports whether a tar reads an archive into the working directory.
func unpacksHere(words []string) bool {
	unpacks := len(words) > 0 && !strings.HasPrefix(words[0], "-") && strings.Contains(words[0], "x") // tar xf
	for _, word := range words {
		switch {
		case isOption(word, "--directory"), !strings.HasPrefix(word, "--") && isOption(word, "-C"):
			return false
		case isOption(word, "--extract"), isOption(word, "--get"), isOption(word, "-x"):
			unpacks = true
		}
	}
	return unpacks
}

// curlRefusal is about its own ways to name files: file: URLs, lists in braces and brackets, and names made of what it fetched.
func curlRefusal(words []string) string {
	for _, word := range words {
		switch {
		case strings.Contains(strings.ToLower(word), "file:"):
			return "curl file: reads any file"
		case strings.ContainsAny(word, "{}[]") && !curlText(word):
			return "curl expands {} and []; write other text in one word with its option, as in '-d{\"a\": 1}'"
		case strings.HasPrefix(word, "#"), strings.HasPrefix(word, "-") && strings.Contains(word, "#"), strings.Contains(word, "#") && !strings.Contains(word, "://"):
			return "curl # makes a file name from what it fetched"
		}
	}
	return ""
}

// curlText reports whether brackets in a word are no list whatever curl takes the word for. An option with its text attached
// begins with a hyphen, so that as an address or the name of a file it leads nowhere. As a list, JSON without a backslash has
// only names that stand in it.
func curlText(word string) bool {
	return json.Valid([]byte(word)) && !strings.Contains(word, `\`) ||
		strings.HasPrefix(word, "-d") || strings.HasPrefix(word, "-H") || strings.HasPrefix(word, "-w")
}

// ownOptions is a word without the value that is attached to the short options in it, as in -XPOST.
func ownOptions(program, word string) string {
	if program != "curl" || strings.HasPrefix(word, "--") || !strings.HasPrefix(word, "-") {
		return word
	}
	if at := strings.IndexAny(word, "AbcCdDeEFhHmoPQrtTuUwxXyYz"); at > 0 {
		return word[:at]
	}
	return word
}

// isOption reports whether word is the option, perhaps with its value, abbreviated, or within a cluster of short ones.
func isOption(word, option string) bool {
	long := strings.HasPrefix(option, "--")
	switch head, _, _ := strings.Cut(word, "="); {
	case head == option:
		return true
	case long:
		return len(head) > len("--") && strings.HasPrefix(option, head)
	case len(option) == 2:
		return strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, option[1:])
	}
	return false
}

// walksHere reports whether the command goes through the working directory by itself.
func walksHere(words []string) bool {
	name := program(words[0])
	if inTable(walkers(), words[0]) {
		return true
	}
	recursive := ""
	switch name {
	case "grep", "egrep", "fgrep", "zgrep", "pcregrep", "ugrep":
		recursive = "rR"
	case "ls", "dir", "vdir":
		recursive = "R"
	default:
		return false
	}
	for _, word := range words[1:] {
		long := strings.HasPrefix(word, "--")
		if long && (strings.HasPrefix(word, "--r") || strings.HasPrefix(word, "--de") || strings.HasPrefix(word, "--di")) {
			return true
		}
		if !long && strings.HasPrefix(word, "-") && (strings.ContainsAny(word, recursive) || name != "ls" && strings.Contains(word, "d")) {
			return true
		}
	}
	return false
}
