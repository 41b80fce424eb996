package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/policy"
)

// devices returns the device files that programs expect. It omits terminals and shared memory, which other programs use too.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

// machine lists what the machine has for every run.
func (l *List) machine() grants {
	g, err := l.ground()
	if err != nil {
		return grants{} // Rules returns the error
	}
	// Programs, libraries and settings for every user. Of /run, /sys and /var only these are needed.
	const system = `/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /proc /nix/store /gnu/store /run/current-system
		/sys/devices/system/cpu /sys/fs/cgroup /sys/kernel/mm/transparent_hugepage /etc/resolv.conf`
	// Below the owner's home, git's configuration and what version managers, compilers and package managers read. None holds passwords:
	// those lie beside them, as in .cargo/credentials.toml, .npmrc, .git-credentials and .config/git/credentials.
	const own = `.gitconfig .config/git/config .config/git/ignore .config/git/attributes .config/go go/pkg/mod
		.cargo/registry .cargo/git .cargo/config.toml .cargo/config
		.rustup .nvm .pyenv .rbenv .asdf .sdkman .volta .local/share/mise .local/lib .nix-profile .m2/repository`
	// variables name directories that toolchains read.
	const variables = "GOROOT GOMODCACHE RUSTUP_HOME NVM_DIR PYENV_ROOT JAVA_HOME VIRTUAL_ENV GIT_CONFIG_GLOBAL"
	var m grants
	home, _ := filepath.EvalSymlinks(last(l.run.Env, "HOME")) // on an error home is "", which matches no directory
	for _, path := range strings.Fields(system) {
		m.shared = add(m.shared, l.beside(g, home, path), path)
	}
	c := collector{ground: g, home: home, writable: append(policy.Writable(l.run.Dirs), l.folders(g, false)...), system: m.shared}
	c.list = slices.Clone(m.shared)
	for _, dir := range filepath.SplitList(last(l.run.Env, "PATH")) {
		c.programs(dir)
	}
	c.add(l.run.Self)
	for _, name := range strings.Fields(variables) {
		c.add(last(l.run.Env, name))
	}
	if path := last(l.run.Env, "GOPATH"); path != "" {
		c.add(filepath.Join(path, "pkg", "mod"))
	}
	for _, name := range strings.Fields(own) {
		if home != "" {
			c.add(filepath.Join(home, name))
		}
	}
	m.home = c.list[len(m.shared):]
	return m
}

// beside returns the ground for a system directory such as /opt, in which the home of a service account may be.
func (l *List) beside(g policy.Ground, home, place string) policy.Ground {
	if real, err := filepath.EvalSymlinks(place); err != nil || home == real || !within(home, real) {
		return g
	}
	beside, err := policy.Policy{Roots: []policy.Root{{Dir: "/"}}, Protected: append([]string{home}, l.run.Protected...)}.Ground()
	if err != nil {
		return g // the paths could be read a moment ago
	}
	return beside
}

// add adds a path, with its links resolved, unless it is covered already.
func add(list []string, g policy.Ground, path string) []string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(path) {
		return list
	}
	for _, found := range open(g, real) {
		if !slices.ContainsFunc(list, func(dir string) bool { return within(found, dir) }) {
			list = append(list, found)
		}
	}
	return list
}

// collector collects paths outside the system's directories.
type collector struct {
	ground   policy.Ground
	home     string   // the owner's home, without links; "" if there is none
	writable []string // directories in which the agent may have made links
	system   []string // paths that are the same for every user
	list     []string
	prefixes []string // prefixes whose programs were added already
}

// add adds a path, unless it is the owner's home or above it.
func (c *collector) add(path string) {
	real, fixed, err := policy.Follow(path, c.writable)
	if err == nil && fixed && filepath.IsAbs(path) && !within(c.home, real) {
		c.list = add(c.list, c.ground, real)
	}
}

// OnPath returns the directories of PATH in which the agent of a job may write: a program that it leaves there runs unsealed when the
// owner, or a command that ollim starts for the owner, uses its name.
func OnPath(env []string, dirs []policy.Root, caches string) []string {
	writable := append(policy.Writable(dirs), caches)
	return slices.DeleteFunc(filepath.SplitList(last(env, "PATH")), func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		return err != nil || !slices.ContainsFunc(writable, func(tree string) bool { return tree != "" && within(real, tree) })
	})
}

// programs adds a directory of PATH and the targets of its links, which are mostly programs of a version manager.
func (c *collector) programs(dir string) {
	real, fixed, err := policy.Follow(dir, c.writable)
	if err != nil || !fixed || !filepath.IsAbs(dir) || slices.ContainsFunc(c.system, func(place string) bool { return within(real, place) }) {
		return
	}
	c.prefix(real)
	entries, err := os.ReadDir(real)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 {
			continue
		}
		if target, fixed, err := policy.Follow(filepath.Join(real, entry.Name()), c.writable); err == nil && fixed {
			c.add(target)
			// otherwise the link gives access to that file only
			if dir := filepath.Dir(target); slices.Contains([]string{"bin", "sbin", "libexec", "shims"}, filepath.Base(dir)) {
				c.prefix(dir)
			}
		}
	}
}

// prefix adds a directory of programs and the files that they read beside it.
func (c *collector) prefix(dir string) {
	if slices.Contains(c.prefixes, dir) {
		return
	}
	c.prefixes = append(c.prefixes, dir)
	c.add(dir)
	around := filepath.Dir(dir)
	switch filepath.Base(dir) {
	case "shims":
		c.add(around)
	case "bin", "sbin":
		const beside = "lib lib64 libexec include src pkg VERSION go.env pyvenv.cfg" // npm reads its modules there, and go its sources
		for _, name := range strings.Fields(beside) {
			if !within(c.home, around) {
				c.add(filepath.Join(around, name))
			}
		}
	}
}

// Program returns the paths that a command of the owner reads besides: the files that its words name, and the project that they belong
// to. It omits protected paths, and targets of links that an agent may have made in dirs.
func Program(words []string, dir string, env, protected []string, dirs []policy.Root) []string {
	g, err := policy.Policy{Roots: []policy.Root{{Dir: "/"}}, Protected: protected}.Ground()
	if err != nil {
		return nil
	}
	home, _ := filepath.EvalSymlinks(last(env, "HOME"))
	c := collector{ground: g, home: home, writable: policy.Writable(dirs)}
	for _, word := range words {
		if !strings.Contains(word, "/") || strings.HasPrefix(word, "-") {
			continue
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		real, fixed, err := policy.Follow(word, c.writable)
		if err != nil || !fixed {
			continue
		}
		c.add(real)
		if info, err := os.Stat(real); err == nil && !info.IsDir() {
			c.add(project(filepath.Dir(real)))
		}
	}
	return c.list
}

// project returns the nearest directory, from dir upwards, that contains the description of a project or its installed packages; dir
// itself if there is none.
func project(dir string) string {
	const modules = "/node_modules"
	if i := strings.LastIndex(dir+"/", modules+"/"); i >= 0 {
		return dir[:i] + modules
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		for _, name := range []string{"package.json", "pyproject.toml", "pyvenv.cfg", "go.mod", "Cargo.toml", ".git"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return at
			}
		}
	}
	return dir
}

// last returns the value of a variable. If there are several, the last one counts.
func last(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
