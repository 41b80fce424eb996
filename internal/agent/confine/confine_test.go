package confine

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
)

// site is a home with a data directory in it.
type site struct {
	t    *testing.T
	home string
	run  Run
}

func newSite(t *testing.T) *site {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, home: home}
	data := paths.Dir(filepath.Join(home, ".ollim-bot"))
	s.files(".ollim-bot/state/x", ".ollim-bot/sessions/x", ".ollim-bot/gates/x", ".ollim-bot/config.yaml", ".ollim-bot/tool-policy.yaml",
		".ollim-bot/notes/x.md", ".ollim-bot/USER.md", ".ollim-bot/.git/config", ".config/ollim/secrets.env", ".config/git/config", ".config/git/credentials", ".gitconfig", "src/x")
	secret := filepath.Join(home, ".config/ollim/secrets.env")
	s.run = Run{Home: data, Root: string(data), Protected: Protected(data, []string{secret}), Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.home, name) }

func (s *site) files(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(name)), 0o700), os.WriteFile(s.path(name), nil, 0o600)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *site) link(target, name string) {
	s.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(name)), 0o700), os.Symlink(target, s.path(name))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) rules() seal.Rules {
	s.t.Helper()
	r, err := New(s.run).Rules()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// own is the paths of a list in the home, without the home.
func (s *site) own(list []string) string {
	var names []string
	for _, path := range list {
		if rel, err := filepath.Rel(s.home, path); err == nil && filepath.IsLocal(rel) {
			names = append(names, rel)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestDataDirectoryIsGrantedEntryByEntry(t *testing.T) {
	s := newSite(t)
	s.link(s.path(".ollim-bot/state"), ".ollim-bot/other")
	s.link(s.home, ".ollim-bot/up")
	r := s.rules()
	if got, want := s.own(r.Read), ".config/git/config .gitconfig .ollim-bot/.git .ollim-bot/USER.md .ollim-bot/notes"; got != want {
		t.Errorf("read %s\nwant %s", got, want)
	}
	if got := s.own(r.Write); got != "" {
		t.Errorf("write %s", got)
	}
	if got := s.own(r.List); got != ".ollim-bot" {
		t.Errorf("list %s", got)
	}
	if slices.Contains(r.Read, "/") || r.Network || r.Canary != s.run.Home.Canary() {
		t.Errorf("%+v", r)
	}
}

func TestWhatPatternsWrite(t *testing.T) {
	s := newSite(t)
	s.link(s.path("src"), ".ollim-bot/outside")
	for pattern, want := range map[string]string{
		"Write(./notes/**.md)":   ".ollim-bot/notes",
		"Edit(./USER.md)":        ".ollim-bot/USER.md",
		"Write(./**.md)":         "",
		"Read(./notes/**)":       "",
		"Write(./outside/**.md)": "",
		"Write(./state/**.md)":   "",
		"Bash(ls)":               "",
	} {
		s.run.Allow = []string{pattern}
		if got := s.own(s.rules().Write); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	s.run.Inside, s.run.Allow = true, []string{"Write(./**.md)"}
	if got, want := s.own(s.rules().Write), ".ollim-bot/USER.md .ollim-bot/notes"; got != want {
		t.Errorf("an engine that is sealed: %q, want %q", got, want)
	}
	if r, err := New(s.run).Summary(false); err != nil || s.own(r.Write) != ".ollim-bot" {
		t.Errorf("as a record names it: %q, %v", s.own(r.Write), err)
	}
	s.run.Root, s.run.Inside = s.path("src"), false
	if got := s.own(s.rules().Write); got != "src" {
		t.Errorf("in another directory: %q", got)
	}
}

func TestDirs(t *testing.T) {
	s := newSite(t)
	s.link(s.path(".ollim-bot"), "src/data")
	l, err := net.Listen("unix", s.path("a.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s.run.Dirs = []policy.Root{{Dir: s.path("src"), Writable: true}, {Dir: s.path("a.sock")}, {Dir: s.path("gone")}}
	r := s.rules()
	if s.own(r.Write) != "src" || s.own(r.Sockets) != "a.sock" || strings.Contains(s.own(r.Read), "sock") {
		t.Errorf("write %s, sockets %s, read %s", s.own(r.Write), s.own(r.Sockets), s.own(r.Read))
	}
	for _, dir := range []string{"/", s.home, s.path(".config"), s.path("src/data/state"), s.path("src/data")} {
		s.run.Dirs = []policy.Root{{Dir: dir}}
		_, err := New(s.run).Rules()
		if checked := CheckDirs(s.run.Dirs, s.run.Protected); !errors.Is(err, ErrProtected) || !errors.Is(checked, ErrProtected) {
			t.Errorf("%s: %v, %v", dir, err, checked)
		}
	}
}

// Programs that a version manager installed below the home are found by the links in PATH, and what lies beside them.
func TestToolchains(t *testing.T) {
	s := newSite(t)
	s.files("tools/node/bin/node", "tools/node/lib/npm.js", "tools/node/share/secret", ".local/share/claude/versions/1", ".local/share/keyring/x", "bin/mine")
	s.link(s.path("tools/node/bin/node"), ".local/bin/node")
	s.link(s.path(".local/share/claude/versions/1"), ".local/bin/claude")
	s.link(s.home, ".local/bin/home")
	s.files("Documents/run", "Documents/diary")
	s.link(s.path("Documents/run"), ".local/bin/run")
	s.run.Env = append(s.run.Env, "PATH=/usr/bin:"+s.path(".local/bin")+":"+s.path("bin")+":"+s.home+":relative")
	want := ".config/git/config .gitconfig .local/bin .ollim-bot/.git .ollim-bot/USER.md .ollim-bot/notes Documents/run bin tools/node/bin tools/node/lib"
	got := strings.Fields(s.own(s.rules().Read))
	got = slices.DeleteFunc(got, func(name string) bool {
		return strings.HasPrefix(name, ".local/share/claude/versions/") || name == "tools/node/bin/node"
	})
	if text := strings.Join(got, " "); text != want {
		t.Errorf("read %s\nwant %s", text, want)
	}
}

func TestOnPath(t *testing.T) {
	s := newSite(t)
	s.files("src/bin/x", "cache/job/x", "read/bin/x")
	s.link(s.path("src/bin"), "bin")
	env := []string{"PATH=/usr/bin:" + s.path("bin") + ":" + s.path("read/bin") + ":" + s.path("cache/job") + ":" + s.path("none") + ":"}
	dirs := []policy.Root{{Dir: s.path("src"), Writable: true}, {Dir: s.path("read")}}
	if got, want := OnPath(env, dirs, s.path("cache")), []string{s.path("bin"), s.path("cache/job")}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := OnPath(env, nil, ""); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestPlantedLinks: links that an agent leaves where it may write give no other directory to the next program or run.
func TestPlantedLinks(t *testing.T) {
	s := newSite(t)
	s.files(".ssh/id", "src/kept/x", ".ollim-bot/notes/sub/x", "owned/x")
	s.link(s.path(".ssh"), "src/part")
	s.link(s.path(".ssh"), "src/lib")
	s.link(s.path(".ssh/id"), "src/bin/tool")
	s.link(s.path("src/bin/tool"), ".local/bin/tool")
	s.link(s.path(".ssh"), ".ollim-bot/notes/part")
	s.link(s.path(".ollim-bot/notes/sub"), ".ollim-bot/notes/other")
	l, err := net.Listen("unix", s.path("src/own.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	outside, err := net.Listen("unix", s.path("outside.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outside.Close() }()
	s.link(s.path("outside.sock"), "src/swapped.sock")
	s.run.Env = append(s.run.Env, "PATH=/usr/bin:"+s.path("src/bin")+":"+s.path(".local/bin"), "VIRTUAL_ENV="+s.path("src/part"))
	s.run.Allow = []string{"Write(./notes/**)", "Write(./notes/part/**)", "Write(./notes/other/**)"}
	for _, dir := range []string{"src", "src/part", "src/kept", "src/own.sock", "src/swapped.sock", "owned"} {
		s.run.Dirs = append(s.run.Dirs, policy.Root{Dir: s.path(dir), Writable: dir != "owned"})
	}
	r := s.rules()
	if got, want := s.own(r.Write), ".ollim-bot/notes src src/kept"; got != want {
		t.Errorf("write %s\nwant %s", got, want)
	}
	if got, want := s.own(r.Sockets), "src/own.sock"; got != want {
		t.Errorf("sockets %s\nwant %s", got, want)
	}
	if got := s.own(append(r.Read, Program([]string{s.path("src/bin/tool")}, s.home, s.run.Env, s.run.Protected, s.run.Dirs)...)); strings.Contains(got, ".ssh") {
		t.Errorf("read %s", got)
	}
}

// TestHomeInTheSystem: the home of a service's account can lie in a directory that everybody's programs are in.
func TestHomeInTheSystem(t *testing.T) {
	s := newSite(t)
	s.files(".ssh/id", "beside/bin/tool")
	g, err := New(s.run).ground()
	if err != nil {
		t.Fatal(err)
	}
	list := add(nil, New(s.run).beside(g, s.path(".ssh"), s.home), s.home)
	if got := s.own(list); strings.Contains(got, ".ssh") || !strings.Contains(got, "beside") {
		t.Errorf("read %s", got)
	}
	if got := New(s.run).beside(g, s.home, s.home); got.Encloses(s.home) != g.Encloses(s.home) {
		t.Error("a home that is a directory of the system itself is closed")
	}
	s.run.Env = []string{"HOME=/usr/share", "PATH=/usr/bin"}
	if r := s.rules(); slices.Contains(r.Read, "/usr") || slices.Contains(r.Read, "/usr/share") || !slices.Contains(r.Read, "/usr/bin") {
		t.Errorf("read %q", r.Read)
	}
}

// TestDirsNamedByLinks: a link of the owner's that leads to an entry of dirs is followed.
func TestDirsNamedByLinks(t *testing.T) {
	s := newSite(t)
	s.files("owned/sub/x")
	s.link(s.path("owned"), "named")
	s.run.Allow = []string{"Write(" + s.path("named/sub") + "/**)"}
	s.run.Dirs = []policy.Root{{Dir: s.path("named")}}
	if got, want := s.own(s.rules().Write), "owned/sub"; got != want {
		t.Errorf("write %s\nwant %s", got, want)
	}
}
