// Package seal starts programs that the kernel keeps to a list: which files they read, which they change, where they connect.
// It needs no privileges and no namespace, and works on Linux with Landlock (see MinABI) and /bin/sh; elsewhere Check and
// Seal.Start return an error. Nothing is ever sealed in part.
//
// A sealed program is started by a thread that restricts itself and never runs anything else. Every process that the program
// starts inherits the restrictions, whatever it does, and cannot lift them. Seal.Close ends all of them, and so does the end of this
// process, even by SIGKILL.
//
// The rules name what is allowed. The rest is closed: opening, making, linking, renaming, removing and truncating files, the
// memory and environment of processes outside, signals to them, sockets. Metadata stays open, because Landlock does not cover
// it: stat, chmod (except S_ISUID and S_ISGID), chown, utimes, setxattr, flock, chdir.
package seal

import (
	"errors"
	"net/netip"
)

// MinABI is the least version of Landlock: the first that confines signals and abstract sockets (Linux 6.12).
const MinABI = 6

var (
	// ErrUnsupported is the error of Check and Start where the kernel lacks what a seal needs.
	ErrUnsupported = errors.New("cannot seal")
	// ErrNotSealed is the error of a start that was refused, because a trial showed that the seal does not hold.
	ErrNotSealed = errors.New("the seal does not hold")
	// ErrClosed is the error of a start after Close.
	ErrClosed = errors.New("the seal is closed")
)

// Rules is what a sealed program may do. Paths are absolute and contain no symbolic link: the caller resolves links once, before
// a sealed program can plant one. A path that does not exist, or that has come to lead through a link, is left out.
type Rules struct {
	Read    []string         // files, and whole directory trees, whose contents may be read and executed
	Write   []string         // the same, and the contents may be changed; in directories, files may be made, renamed and removed
	List    []string         // directory trees in which names may be listed
	Sockets []string         // unix sockets that programs may connect to
	Network bool             // TCP and DNS to any address; false: only to sockets that were bound inside, and to TCP
	TCP     []netip.AddrPort // addresses of servers outside; port 0 stands for every port
	Canary  string           // an existing file that a sealed process must not be able to open
}

// add returns the rules extended by those of others.
func (r Rules) add(others Rules) Rules {
	r.Read = append(r.Read[:len(r.Read):len(r.Read)], others.Read...)
	r.Write = append(r.Write[:len(r.Write):len(r.Write)], others.Write...)
	r.List = append(r.List[:len(r.List):len(r.List)], others.List...)
	r.Sockets = append(r.Sockets[:len(r.Sockets):len(r.Sockets)], others.Sockets...)
	r.TCP = append(r.TCP[:len(r.TCP):len(r.TCP)], others.TCP...)
	r.Network = r.Network || others.Network
	if others.Canary != "" {
		r.Canary = others.Canary
	}
	return r
}
