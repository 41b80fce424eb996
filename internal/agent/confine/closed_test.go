package confine

import (
	"net"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// What a failed command names is explained by the line that opens it; what is open, protected or missing is not.
func TestClosed(t *testing.T) {
	s := newSite(t)
	s.files("docs/a.txt", "repo/.git/config", "web/package.json", "my.db", "out/x")
	l, err := net.Listen("unix", s.path("d.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s.run.Dirs = []policy.Root{{Dir: s.path("web")}, {Dir: s.path("out"), Writable: true}}
	s.run.Network = true
	list := New(s.run)
	for text, want := range map[string]string{
		"cat: H/docs/a.txt: Permission denied":                             "H/docs/a.txt is closed: dirs: H/docs opens it for reading, dirs: rw:H/docs for writing",
		"cat ~/docs/a.txt H/docs/none\nno":                                 "H/docs/a.txt is closed: dirs: H/docs opens it for reading, dirs: rw:H/docs for writing",
		"git -C H/repo push\nfatal: not a git repository":                  "H/repo is closed: dirs: H/repo opens it for reading, dirs: rw:H/repo for writing",
		"npm --prefix H/web run build\ncannot create o: Permission denied": "H/web cannot be changed: dirs: rw:H/web opens it",
		"npm --prefix H/web test\n1 failed":                                "",
		"sqlite3.connect(\"H/my.db\")\nunable to open database file":       "H/my.db is closed: dirs: H/my.db opens it for reading, dirs: rw:H/my.db for writing",
		"cp /etc/hostname 'H/docs/new'":                                    "H/docs/new cannot be made: dirs: rw:H/docs opens it",
		"python3 -m venv H/venv":                                           "H/venv cannot be made: make it yourself, then dirs: rw:H/venv opens it",
		"daemon at unix://H/d.sock. Is the docker daemon running?":         "H/d.sock is closed: dirs: H/d.sock opens it",
		"cat H/.config/ollim/secrets.env H/out/y /usr/bin/env /run/x/y":    "",
		"could not lock config file H/.gitconfig: Permission denied":       "H/.gitconfig cannot be changed: git config --local sets what the repository has",
		"PermissionError: [Errno 13] Permission denied: '/dev/shm/psm_1'":  "/dev/shm is closed: dirs: rw:/dev/shm opens it, for shared memory",
		"sl = SemLock(\nPermissionError: [Errno 13] Permission denied":     "/dev/shm is closed: dirs: rw:/dev/shm opens it, for shared memory",
		"sh: 1: cannot create /tmp/x: Permission denied":                   "/tmp/x is closed: $TMPDIR is the run's own directory for temporary files",
		"mkdir H/go/pkg/mod/cache/download/x: permission denied":           "H/go/pkg/mod/cache/download/x cannot be changed: GOMODCACHE=$XDG_CACHE_HOME/mod is a directory of the job's own, and dirs: rw:H/go/pkg/mod opens yours",
		"failed to open: H/.cargo/.package-cache (Permission denied)":      "H/.cargo/.package-cache cannot be changed: CARGO_HOME=$XDG_CACHE_HOME/cargo is a directory of the job's own",
		"permission denied":       "permission was denied, perhaps by the seal: read and write list what is open",
		"curl: Failed to connect": "",
	} {
		text, want = strings.ReplaceAll(text, "H/", s.home+"/"), strings.ReplaceAll(want, "H/", s.home+"/")
		if got := strings.Join(list.Closed(text), "; "); got != want {
			t.Errorf("%s\n\t%q\nwant\t%q", text, got, want)
		}
	}
	s.run.Network = false
	if got := New(s.run).Closed("curl: Failed to connect"); len(got) != 1 || !strings.HasPrefix(got[0], "network: none") {
		t.Errorf("without a network: %q", got)
	}
}

// A program that succeeds may have gone on without what was closed to it. Only lines that say so count, not other paths that it names.
func TestHints(t *testing.T) {
	s := newSite(t)
	s.files("docs/a.txt", "docs/b.txt", "web/c")
	list := New(s.run)
	const shm = "/dev/shm is closed: dirs: rw:/dev/shm opens it, for shared memory"
	docs := "H/docs/a.txt is closed: dirs: H/docs opens it for reading, dirs: rw:H/docs for writing"
	for _, c := range []struct {
		command, output string
		failed          bool
		want            string
	}{
		{"cat H/docs/a.txt", "no", true, docs},
		{"cat H/docs/a.txt", "no", false, ""},
		{"sh x", "see H/web/c\ncat: H/docs/a.txt: Permission denied\ndone", false, docs},
		{"sh x", "x: Permission denied", false, ""},
		{"sh x", "x: Permission denied", true, perhaps},
		{"python3 x", "in SemLock\nPermissionError: [Errno 13] Permission denied\nworking with threads", false, shm},
	} {
		want := strings.ReplaceAll(c.want, "H/", s.home+"/")
		command, output := strings.ReplaceAll(c.command, "H/", s.home+"/"), strings.ReplaceAll(c.output, "H/", s.home+"/")
		if got := strings.Join(list.Hints(command, output, c.failed), "; "); got != want {
			t.Errorf("%s: %q, failed %v\n\t%q\nwant\t%q", c.command, c.output, c.failed, got, want)
		}
	}
}
