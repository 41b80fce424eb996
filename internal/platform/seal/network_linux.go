//go:build amd64 || arm64

package seal

import (
	"errors"
	"os"
	"slices"
	"sync"
)

// network decides what the sealed programs of one run may connect to. It lives as long as the run.
type network struct {
	slots chan struct{} // one for each call that is being answered

	mu        sync.Mutex
	bound     map[uint64]bool // cookies of the sockets that began to listen inside
	listeners []*os.File
	closed    bool
}

// answersAtOnce limits how many calls are answered at once, because slow connections use descriptors of this process.
const answersAtOnce = 1024

// checkNetwork returns an error that names what the kernel lacks for network rules.
func checkNetwork() error {
	if err := filterSupported(); err != nil {
		return err
	}
	_, err := listeningUnix(func(unixListener) bool { return false }) // CONFIG_UNIX_DIAG; where it is a module, the kernel loads it
	return err
}

func newNetwork() *network {
	return &network{slots: make(chan struct{}, answersAtOnce), bound: map[uint64]bool{}}
}

// restrict installs the filter on the calling thread, which is locked to its goroutine, has no privileges and is sealed by Landlock
// already. serve answers the calls of the thread's descendants until the last descendant has ended or close is called. It runs on another
// goroutine.
func (n *network) restrict(rules Rules) (serve func(), err error) {
	program, err := filter(rules.Network)
	if err != nil {
		return nil, err
	}
	fd, err := install(program)
	if err != nil {
		return nil, err
	}
	listener, err := pollable(fd)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.Join(ErrClosed, listener.Close())
	}
	n.listeners = append(n.listeners, listener)
	return (&supervisor{network: n, listener: listener, rules: rules}).serve, nil
}

// ended removes a listener whose last process has ended.
func (n *network) ended(listener *os.File) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners = slices.DeleteFunc(n.listeners, func(l *os.File) bool { return l == listener })
	_ = listener.Close() // no process waits for an answer
}

// close ends all serving, so that connections fail from now on. No descendant exists by then.
func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, listener := range n.listeners {
		_ = listener.Close() // the kernel then answers calls with ENOSYS
	}
	n.listeners = nil
}

func (n *network) remember(cookie uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bound[cookie] = true
}

// inside decides about the sockets that would accept a connection: the connection is refused if there are none, and denied unless the run
// owns all of them.
func (n *network) inside(listening []uint64) error {
	if len(listening) == 0 {
		return errRefused
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.ContainsFunc(listening, func(cookie uint64) bool { return !n.bound[cookie] }) {
		return errDenied
	}
	return nil
}
