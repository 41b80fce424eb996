package confine

import (
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

// systemBus is what programs that only say that they cannot connect to the bus connect to.
const systemBus = "/run/dbus/system_bus_socket"

// Closed says what is closed to the programs of the run of what a command that failed and its output name, and what opens it. The programs
// themselves say only that permission was denied, or that there is nothing.
func (l *List) Closed(text string) (list []string) {
	rules, err := l.Rules()
	g, groundErr := l.ground()
	if err != nil || groundErr != nil {
		return nil
	}
	if mentions(text, "connect to bus", "connect to system scope bus") {
		text += " " + systemBus
	}
	denied := mentions(text, "permission denied", "eacces", "eperm", "not permitted", "read-only", "readonly", "unable to open")
	opened := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?:^|[\s'"=:(\[])(~?/[^\s'"=:;,()<>|&\]\x60\\]+)`).FindAllStringSubmatch(text, -1) {
		path := strings.TrimRight(found[1], ".?!")
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(last(l.run.Env, "HOME"), rest)
		}
		if name, why := l.closed(g, rules, filepath.Clean(path), denied); why != "" && !opened[name] {
			opened[name], list = true, append(list, why)
		}
	}
	switch {
	case len(list) > 0:
	case !l.run.Network && mentions(text, "connect", "resolve", "network", "enotfound", "eai_again", "unreachable"):
		list = append(list, "network: none closes all connections but those inside the run")
	case denied:
		list = append(list, "permission was denied, perhaps by the seal: read and write list what is open")
	}
	return list
}

// mentions reports whether a text has one of the words, given in lower case, in any case.
func mentions(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// closed returns why a path is closed, and what dirs has to name; "" if it is open, does not exist, or is never opened. denied says that
// permission was denied.
func (l *List) closed(g policy.Ground, rules seal.Rules, path string, denied bool) (name, why string) {
	real, err := policy.Resolve(path)
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

// ownersDir reports whether a path is a directory in the owner's home.
func (l *List) ownersDir(path string) bool {
	home, err := filepath.EvalSymlinks(last(l.run.Env, "HOME"))
	info, statErr := os.Lstat(path)
	return err == nil && statErr == nil && info.IsDir() && within(path, home)
}
