package confine

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
)

// systemBus is the socket that programs use which only say that they cannot connect to the bus.
const systemBus = "/run/dbus/system_bus_socket"

// Hints returns what the model is told in the result of a command. For a failed command that is what Closed returns. For a successful one
// only the lines of output that say "permission denied" count, because a program may continue without what was closed to it.
func (l *List) Hints(command, output string, failed bool) (list []string) {
	if failed {
		return l.Closed(command + "\n" + output)
	}
	if !denies(output) { // true for most commands
		return nil
	}
	var lines strings.Builder
	for line := range strings.Lines(output) {
		if denies(line) {
			lines.WriteString(line)
		}
	}
	list = l.Closed(lines.String() + implied(output))
	return slices.DeleteFunc(list, func(why string) bool { return why == perhaps })
}

// perhaps is the hint for a failed command whose output names nothing that is closed.
const perhaps = "permission was denied, perhaps by the seal: read and write list what is open"

// mostHints limits the hints for one command, because a search can meet any number of closed directories.
const mostHints = 5

// Closed returns which of the paths that a failed command and its output name are closed to the programs of the run, and what opens them.
// The programs themselves only say that permission was denied, or that nothing is there.
func (l *List) Closed(text string) (list []string) {
	rules, err := l.Rules()
	g, groundErr := l.ground()
	if err != nil || groundErr != nil {
		return nil
	}
	text += implied(text)
	denied := denies(text)
	opened := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?:^|[\s'"=:(\[])(~?/[^\s'"=:;,()<>|&\]\x60\\]+)`).FindAllStringSubmatch(text, -1) {
		path := strings.TrimRight(found[1], ".?!")
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(last(l.run.Env, "HOME"), rest)
		}
		name, why := l.closed(g, rules, filepath.Clean(path), denied)
		if why != "" && !opened[name] && len(list) < mostHints {
			opened[name], list = true, append(list, why)
		}
	}
	switch {
	case len(list) > 0:
	case !l.run.Network && mentions(text, "connect", "resolve", "network", "enotfound", "eai_again", "unreachable"):
		list = append(list, "network: none closes all connections but those inside the run")
	case denied:
		list = append(list, perhaps)
	}
	return list
}

// denies reports whether a text says that permission was denied.
func denies(text string) bool {
	return mentions(text, "permission denied", "eacces", "eperm", "not permitted", "read-only", "readonly", "unable to open")
}

// implied returns the paths that programs use without naming them in their output, one on each line.
func implied(text string) (paths string) {
	if mentions(text, "connect to bus", "connect to system scope bus") {
		paths += "\n" + systemBus
	}
	if mentions(text, "semlock", "sem_open", "shm_open") {
		paths += "\n" + sharedMemory
	}
	return paths
}

// mentions reports whether a text has one of the words, in any case. The words are lower case.
func mentions(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// closed returns why a path is closed, and the name that dirs needs to open it; "" if the path is open, does not exist, or can never be
// opened. denied says that the output reports denied permission.
func (l *List) closed(g policy.Ground, rules seal.Rules, path string, denied bool) (name, why string) {
	real, err := policy.Resolve(path)
	if denied && err == nil && !slices.ContainsFunc(rules.Write, func(dir string) bool { return within(real, dir) }) {
		if name, why := l.elsewhere(path, real); why != "" {
			return name, why
		}
	}
	info, statErr := os.Lstat(real)
	around := filepath.Dir(real)
	if err != nil || g.Hides(real, info) || within(real, string(l.run.Home)) || statErr != nil && !l.ownersDir(around) {
		return "", ""
	}
	covers := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return within(real, dir) })
	}
	refused := func(name string) bool { return CheckDirs([]policy.Root{{Dir: name}}, l.run.Protected) != nil }
	socket := statErr == nil && info.Mode()&fs.ModeSocket != 0
	name = real
	if !socket && (statErr != nil || !info.IsDir()) && !refused(around) {
		name = around
	}
	readOnly := slices.ContainsFunc(l.run.Dirs, func(dir policy.Root) bool { return !dir.Writable && within(real, dir.Dir) })
	switch {
	case covers(rules.Write), covers(rules.Sockets), refused(name):
		return "", ""
	case readOnly && denied:
		return name, fmt.Sprintf("%s cannot be changed: dirs: rw:%s opens it", path, name)
	case statErr != nil && name == real:
		return name, fmt.Sprintf("%s cannot be made: make it yourself, then dirs: rw:%s opens it", path, name)
	case statErr != nil && !covers(rules.Read):
		return name, fmt.Sprintf("%s cannot be made: dirs: rw:%s opens it", path, name)
	case socket:
		return name, fmt.Sprintf("%s is closed: dirs: %s opens it", path, name)
	case statErr == nil && !covers(rules.Read):
		return name, fmt.Sprintf("%s is closed: dirs: %s opens it for reading, dirs: rw:%s for writing", path, name, name)
	}
	return "", ""
}

// sharedMemory is the directory in which programs make shared memory and semaphores.
const sharedMemory = "/dev/shm"

// elsewhere returns what a program can use instead of a path that belongs to all programs of the machine or the owner, and that it may
// not change.
func (l *List) elsewhere(path, real string) (name, why string) {
	home, _ := filepath.EvalSymlinks(last(l.run.Env, "HOME"))
	cache := func(variable, dir string) string {
		return fmt.Sprintf("%s cannot be changed: %s=$XDG_CACHE_HOME/%s is a directory of the job's own", path, variable, dir)
	}
	modules := cmp.Or(last(l.run.Env, "GOMODCACHE"), filepath.Join(cmp.Or(last(l.run.Env, "GOPATH"), filepath.Join(home, "go")), "pkg", "mod"))
	cargo := cmp.Or(last(l.run.Env, "CARGO_HOME"), filepath.Join(home, ".cargo"))
	switch {
	case within(real, sharedMemory):
		return sharedMemory, sharedMemory + " is closed: dirs: rw:" + sharedMemory + " opens it, for shared memory"
	case (within(real, "/tmp") || within(real, "/var/tmp")) && !l.named(real, home):
		return "/tmp", path + " is closed: $TMPDIR is the run's own directory for temporary files"
	case home == "":
		return "", ""
	case within(strings.TrimSuffix(real, ".lock"), filepath.Join(home, ".gitconfig")), within(real, filepath.Join(home, ".config", "git")):
		return home, path + " cannot be changed: git config --local sets what the repository has"
	case within(real, modules):
		return modules, cache("GOMODCACHE", "mod") + ", and dirs: rw:" + modules + " opens yours"
	case within(real, cargo):
		return cargo, cache("CARGO_HOME", "cargo")
	}
	return "", ""
}

// named reports whether a path is below the owner's home, or below a directory of the run.
func (l *List) named(real, home string) bool {
	return home != "" && within(real, home) || within(real, l.run.Root) || within(real, string(l.run.Home)) ||
		slices.ContainsFunc(l.run.Dirs, func(dir policy.Root) bool { return within(real, dir.Dir) })
}

// ownersDir reports whether a path is a directory in the owner's home.
func (l *List) ownersDir(path string) bool {
	home, err := filepath.EvalSymlinks(last(l.run.Env, "HOME"))
	info, statErr := os.Lstat(path)
	return err == nil && statErr == nil && info.IsDir() && within(path, home)
}
