package runlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// longestSocket is the length of the path of a socket, in bytes, that every system takes.
const longestSocket = 100

// Socket is the place of a unix socket that processes of a run connect to.
type Socket struct {
	Path string // without links
	own  string // a directory in /tmp for this socket alone; "" if it is in the directory of the run
}

// The sockets of a run.
const (
	ModelSocket   = "model"  // leads to the model's API
	CommandSocket = "socket" // takes the commands of ollim of a sealed run
)

// SocketOf returns the place of a socket of a run, whose directory is dir: in that directory, or in one of this user's alone that names the
// run, if the path would be too long. It makes nothing. name is ModelSocket or CommandSocket, which Close removes if the process is killed.
func SocketOf(dir, name string) Socket {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	path := filepath.Join(dir, name)
	if len(path) <= longestSocket {
		return Socket{Path: path}
	}
	own := fmt.Sprint(ownSocket(filepath.Base(dir), name), os.Getpid())
	return Socket{filepath.Join(own, name), own}
}

// ownSocket returns the beginning of the name of a directory in /tmp for a socket.
func ownSocket(id, name string) string { return "/tmp/ollim-" + id + "-" + name }

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

// Remove removes the socket and its directory. An error is ignored: what is left is removed when the run is closed, and with the run.
func (s Socket) Remove() {
	_ = os.Remove(s.Path)
	if s.own != "" {
		_ = os.Remove(s.own)
	}
}

// removeSockets removes the sockets that a killed process left.
func (b Book) removeSockets(id string) {
	for _, name := range []string{ModelSocket, CommandSocket} {
		places := []Socket{{Path: b.Home.Run(id, name)}}
		dirs, _ := filepath.Glob(ownSocket(id, name) + "*") // the pattern is valid
		for _, own := range dirs {
			if isOwn(own) {
				places = append(places, Socket{filepath.Join(own, name), own})
			}
		}
		for _, s := range places {
			if info, err := os.Lstat(s.Path); s.own != "" || err == nil && info.Mode().Type() == fs.ModeSocket {
				s.Remove()
			}
		}
	}
}

// isOwn reports whether a path is a directory of this user. In /tmp another user can have made it.
func isOwn(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	return known && int(owner.Uid) == os.Geteuid()
}
