package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// programs says what patterns give where nothing is sealed. Nobody can list what all programs do with their arguments, so more is
// refused than does harm. A line begins with what its words are:
//
//	never     programs that no pattern gives: they run what they are given, or write where their input says
//	script    they run a text or a file: before a wildcard their first argument stands, literally
//	exact     they run what a file, an option or a later argument says: no wildcard
//	verbs:    of a program that is another one with each verb, the verbs that are left
//	options:  of programs, by which they run another one, or use files that the pattern does not name; with * anywhere in a word
//	walks     programs that read the working directory when no argument says otherwise; lists: with -r or -R
//	services  their work is done by a process that no seal holds: what is said of them is in force in sealed runs as well
const programs = `
never sh bash rbash dash ash zsh ksh mksh pdksh yash fish csh tcsh pwsh powershell elvish xonsh nu busybox toybox
	env sudo sudoedit doas su runuser pkexec setpriv capsh chroot unshare nsenter setarch linux linux32 linux64 firejail bwrap
	xargs parallel nohup timeout nice ionice chrt taskset setsid stdbuf unbuffer script expect watch time
	strace ltrace gdb lldb valgrind perf flock entr at batch systemd-run start-stop-daemon daemonize runcon sg
	ssh rsh mosh podman kubectl tmux screen socat nc ncat netcat telnet vi vim nvim ex ed emacs nano less more man
	claude codex init service dbus-send rsync scp sftp tcpdump tar wget zip fd fdfind
	unzip bsdtar cpio pax 7z 7za 7zr 7zz unar unrar patch
	eval exec command builtin source . : alias unalias bind caller cd compgen complete compopt coproc declare dirs disown
	enable export fc fg bg getopts hash help history jobs let local logout mapfile popd pushd printf read readarray
	readonly return select set shift shopt suspend test [ [[ trap type typeset ulimit umask unset until wait while
	autoload emulate functions noglob nocorrect repeat sched vared whence zcompile zmodload zparseopts zstyle - float integer
	if then else elif fi for foreach end do done case esac in function break continue exit times
script python pypy perl ruby irb node nodejs php lua luajit tclsh wish awk gawk mawk nawk guile scheme racket
	julia Rscript osascript java groovy runghc ocaml elixir escript
exact sed bc dc sqlite psql mysql mariadb duckdb hg jj ghc swipl jshell iex erl jq gojq jaq curl
	make gmake bmake ninja cmake just meson bazel gradle mvn ant rake scons task npm npx pnpm pnpx yarn bun
	bunx deno corepack uv uvx pip pipx poetry cargo go gem bundle composer dotnet apt apt-get dpkg dnf yum brew nix nix-shell
	ansible terraform vagrant
verbs:git add annotate blame branch cat-file check-ignore checkout cherry cherry-pick clean commit count-objects
	describe diff diff-files diff-index diff-tree fetch for-each-ref grep log ls-files ls-remote ls-tree merge merge-base mv
	name-rev pull push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show show-ref
	stash status switch tag whatchanged worktree
verbs:gh api issue label pr search status workflow gist+list gist+view release+list release+view repo+list repo+view
	run+list run+view run+watch
verbs:docker ps images inspect logs stats top port version info diff history events
verbs:systemctl status show cat is-active is-enabled is-failed list-units list-unit-files list-timers list-sockets
	list-jobs list-dependencies
verbs:crontab -l
options:find -exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from
options:rg -z --pre --search-zip --hostname-bin
options:git -c -O -x --config-env --exec-path --exec --extcmd --upload-pack --receive-pack --ext-diff --textconv
	--open-files-in-pager --output --no-index
options:sort,wc,du,split,install,diff,sdiff,bat,batcat --compress-program --files0-from --filter --strip-program
	--diff-program --pager
options:systemctl -H -M --host --machine --root --image
options:crontab -e -r -i -n -T -u -s
options:jq,gojq,jaq -f -L --from-file --library-path *import *include
options:curl -K -O -J --proto-default --config --remote-name --remote-name-all --remote-header-name *{ *} *[ *] *# *file:
services docker systemctl crontab
walks find rg ag ack tree du ncdu
lists grep egrep fgrep zgrep pcregrep ugrep ls dir vdir`

// group returns the words of the lines that begin with a name, "options" and "verbs" with that of a program.
func group(name, program string) (words []string) {
	in := false
	for line := range strings.Lines(programs) {
		first, rest, _ := strings.Cut(line, " ")
		first, of, _ := strings.Cut(first, ":")
		continued := strings.HasPrefix(line, "\t")
		if in = continued && in || !continued && first == name && slices.Contains(strings.Split(of, ","), program); continued {
			rest = line
		}
		if in {
			words = append(words, strings.Fields(rest)...)
		}
	}
	return words
}

// program is what a command's name is called in the table: without directory, version and capitals.
func program(name string) string {
	base := strings.TrimSuffix(strings.ToLower(path.Base(name)), ".exe")
	return cmp.Or(strings.TrimRight(base, "0123456789.-"), base)
}

// listed reports whether a group has a program.
func listed(name, in string) bool {
	return slices.ContainsFunc(group(in, ""), func(listed string) bool {
		return slices.Contains([]string{program(name), name, strings.ToLower(path.Base(name))}, listed)
	})
}

// refusal says why no agent may run a command with these words, or no pattern have them, which then may be wildcards; "" if nothing
// is against it.
func refusal(words []wild, sealed bool) string {
	name := words[0][0]
	base, called := program(name), quoteless(name)
	switch {
	case strings.HasPrefix(name, "-"), strings.HasSuffix(name, "/"):
		return called + " is not a command"
	case name == ollim:
		return ""
	case base == ollim, strings.HasPrefix(strings.ToLower(path.Base(name)), ollim+"."):
		return called + " is not ollim; write ollim"
	case sealed && !listed(name, "services"):
		return ""
	}
	begin := literalBegin(words)
	if verbs := group("verbs", base); verbs != nil && !hasVerb(base, verbs, begin[1:]) {
		return fmt.Sprintf("%s must be followed by one of these words: %s", called, strings.ReplaceAll(strings.Join(verbs, ", "), "+", " "))
	}
	for _, word := range words[1:] {
		for _, option := range group("options", base) {
			if isOption(word[0], option) {
				return fmt.Sprintf("%s %s can run other programs, or read or write files that the pattern does not name", called,
					strings.TrimPrefix(option, "*"))
			}
		}
	}
	switch {
	case listed(name, "never"):
		return called + " runs any command it is given, or writes to files that its input names"
	case len(begin) == len(words):
	case listed(name, "script") && (len(begin) == 1 || begin[1] == "" || strings.HasPrefix(begin[1], "-")):
		return called + " runs any program it is given; name the script as its first argument"
	case listed(name, "exact") && !onHost(base, words):
		return called + " runs any program with the right arguments; write them out without wildcards"
	}
	return ""
}

// hasVerb reports whether arguments begin with one of the verbs, perhaps after what says where.
func hasVerb(program string, verbs, args []string) bool {
	for program == "git" && len(args) > 2 && args[0] == "-C" {
		args = args[2:]
	}
	if program == "systemctl" && len(args) > 1 && args[0] == "--user" {
		args = args[1:]
	}
	return slices.ContainsFunc(verbs, func(verb string) bool {
		first, second, two := strings.Cut(verb, "+")
		return len(args) > 0 && args[0] == first && (!two || len(args) > 1 && args[1] == second)
	})
}

// onHost reports whether the wildcards of a pattern for curl only stand in addresses whose host is literal.
func onHost(program string, words []wild) bool {
	return program == "curl" && !slices.ContainsFunc(words, func(w wild) bool {
		return !w.literal() && (!strings.HasPrefix(w[0], "http") || strings.Count(w[0], "/") < 3) // https://HOST/
	})
}

// isOption reports whether word is the option, perhaps with its value, abbreviated, or within a cluster of short ones; after a * it is
// text that stands in the word.
func isOption(word, option string) bool {
	head, _, _ := strings.Cut(word, "=")
	text, within := strings.CutPrefix(option, "*")
	switch {
	case within:
		return strings.Contains(strings.ToLower(word), text)
	case strings.HasPrefix(option, "--"):
		return len(head) > len("--") && strings.HasPrefix(option, head)
	case len(option) == 2 && strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--"):
		return strings.Contains(word, option[1:])
	}
	return head == option
}

// walks reports whether a command may go through the working directory by itself.
func walks(words []string) bool {
	return listed(words[0], "walks") || listed(words[0], "lists") && slices.ContainsFunc(words[1:], func(word string) bool {
		return strings.HasPrefix(word, "-") && strings.ContainsAny(word, "rRd")
	})
}
