package doctor

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/paths"
)

const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw,vers=4.2,local_lock=none
31 22 0:41 / /old rw,relatime - nfs server:/old rw,vers=3,local_lock=all
32 22 0:42 / /nolock rw,relatime - nfs server:/nolock rw,nolock
33 22 0:43 / /share\040one rw,relatime - cifs //server/share rw,nobrl
34 22 0:44 / /share rw,relatime - cifs //server/share rw
35 22 0:45 / /ssh rw - fuse.sshfs me@host: rw
36 30 0:46 / /home/ada rw - btrfs /dev/sdb rw
broken line - ext4
`

func TestFileSystemsWhoseLocksStayHere(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/var/data": "", "/home/bob/.ollim-bot": "", "/home/ada/.ollim-bot": "", "/homes/x": "", "/share/x": "",
		"/old/data": "is NFS", "/nolock": "is NFS", "/share one/x": "is SMB", "/ssh/x": "is fuse.sshfs",
	} {
		got := remote(mountOf([]byte(mounts), path))
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestMachine plants what a test cannot do to the machine that it runs on.
func TestMachine(t *testing.T) {
	t.Parallel()
	const plenty = 10 << 30
	for name, tc := range map[string]struct {
		probe        probe
		result, what string
	}{
		"healthy":       {probe{Space: space(plenty, 1_000_000)}, "", ""},
		"full":          {probe{Space: space(1<<20, 1_000_000)}, Fail, "disk"},
		"nearly full":   {probe{Space: space(100<<20, 1_000_000)}, Warn, "disk"},
		"few inodes":    {probe{Space: space(plenty, 7)}, Warn, "disk"},
		"no inodes":     {probe{Space: func(string) (freeSpace, error) { return freeSpace{Bytes: plenty}, nil }}, "", ""},
		"unknown space": {probe{Space: func(string) (freeSpace, error) { return freeSpace{}, errors.New("no such call") }}, Fail, "disk"},
		"NFS":           {probe{Space: space(plenty, 1_000_000), Mounts: mounted("nfs server:/ rw,nolock")}, Warn, "locks"},
		"good NFS":      {probe{Space: space(plenty, 1_000_000), Mounts: mounted("nfs server:/ rw,local_lock=none")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("timezone: UTC\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			a := &app.App{DataDir: dir, Machine: app.Machine{
				Now:    func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) },
				Lookup: func(name string) (string, bool) { value, ok := map[string]string{"HOME": dir}[name]; return value, ok },
			}}
			e := &examination{Doctor: Doctor{App: a, Probe: tc.probe}}
			var err error
			if e.home, err = a.Home(); err != nil {
				t.Fatal(err)
			}
			e.name = "disk"
			e.disk(t.Context())
			e.name = "locks"
			e.locks(t.Context())
			found := Finding{}
			for _, f := range e.list {
				found = f
			}
			if len(e.list) > 1 || found.Result != tc.result || found.What != tc.what {
				t.Errorf("%+v, want %s %s", e.list, tc.result, tc.what)
			}
		})
	}
}

// TestStart: a server is started by its units where the package has installed them and they serve this data directory.
func TestStart(t *testing.T) {
	t.Parallel()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dir, units, want string
	}{
		{"/home/x/.ollim-bot", "ollim-webhook@.socket ollim-webhook@.service", "systemctl enable --now ollim-webhook@" + u.Username + ".socket ollim-webhook@" + u.Username + ".service (as root)"},
		{"/home/x/.ollim-bot", "ollim-webhook@.service", "start ollim webhook serve"},
		{"/home/x/other", "ollim-webhook@.socket ollim-webhook@.service", "start ollim webhook serve"},
	} {
		e := &examination{Doctor: Doctor{
			App:   &app.App{Machine: app.Machine{Lookup: func(string) (string, bool) { return "/home/x", true }}},
			Probe: probe{Units: func(name string) bool { return slices.Contains(strings.Fields(tc.units), name) }},
		}}
		e.home.Dir = paths.Dir(tc.dir)
		if got := e.start("webhook serve", "ollim-webhook", ".socket", ".service"); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

func space(bytes, files uint64) func(string) (freeSpace, error) {
	return func(string) (freeSpace, error) { return freeSpace{Bytes: bytes, Files: files, Inode: true}, nil }
}

// mounted is a root file system of that type, source and options.
func mounted(fs string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte("22 1 8:1 / / rw,relatime - " + fs + "\n"), nil }
}
