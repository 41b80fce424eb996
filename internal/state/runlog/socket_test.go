package runlog

import (
	"cmp"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
)

// TestSocketsOfAKilledRun: to close a run removes the sockets that its process left: in its directory and, where the path is too long for
// that, in a directory in /tmp.
func TestSocketsOfAKilledRun(t *testing.T) {
	for name, part := range map[string]string{"short path": "", "long path": strings.Repeat("x", longestSocket)} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			dir, err := os.MkdirTemp("/tmp", "o")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			d.Home = paths.Dir(filepath.Join(dir, part))
			r := d.open(Record{})
			var left []string
			for _, name := range []string{ModelSocket, CommandSocket} {
				s := SocketOf(d.Home.Run(r.ID), name)
				t.Cleanup(s.Remove)
				if err := s.Make(); err != nil || (s.own == "") != (part == "") {
					t.Fatalf("%+v: %v", s, err)
				}
				l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Path, Net: "unix"})
				if err != nil {
					t.Fatal(err)
				}
				l.SetUnlinkOnClose(false) // as kill -9 leaves it
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				left = append(left, cmp.Or(s.own, s.Path))
			}
			if _, err := d.Close(r.ID); err != nil {
				t.Error(err)
			}
			for _, path := range left {
				if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left: %v", path, err)
				}
			}
		})
	}
}
