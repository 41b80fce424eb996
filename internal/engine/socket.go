package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// longestSocket is the length of the path of a socket, in bytes, that every system takes.
const longestSocket = 100

// Socket is the place of a unix socket that processes of a run connect to.
type Socket struct {
	Path string // without links
	own  string // a directory in /tmp for this socket alone; "" if it is in the directory of the run
}

// SocketOf returns the place of a socket of a run, whose directory is dir: in that directory, or in one of this user's alone that names the
// run, so that the tick removes it, if the path would be too long. It makes nothing.
func SocketOf(dir, name string) Socket {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	path := filepath.Join(dir, name)
	if len(path) <= longestSocket {
		return Socket{Path: path}
	}
	own := fmt.Sprintf("/tmp/ollim-%s-%s%d", filepath.Base(dir), name, os.Getpid())
	return Socket{filepath.Join(own, name), own}
}

// Make makes the place ready for a listener. It removes a socket that another process of the run has left there.
func (s Socket) Make() error {
	if s.own != "" {
		return os.Mkdir(s.own, 0o700)
	}
	if err := os.Remove(s.Path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Remove removes the socket and its directory. An error is ignored: what is left is removed with the run.
func (s Socket) Remove() {
	_ = os.Remove(s.Path)
	if s.own != "" {
		_ = os.Remove(s.own)
	}
}
