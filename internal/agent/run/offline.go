package run

import (
	"os"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/platform/seal"
)

// Offline makes a directory for a run, and a seal for programs that read this directory and the system, write nothing and connect to
// nothing, whatever the settings say. The caller closes the seal and removes the directory; Sweep removes that of a killed run. The error
// is a *Refusal if nothing can be sealed here.
func Offline(r *Runner, run string) (dir string, s *seal.Seal, err error) {
	dir = r.Host.Sealing.temporary(run)
	s, err = sealFor(r, dir, false)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	return dir, s, err
}

// Private returns a seal for programs that read the system, write a directory, and connect to any address, or to none without network,
// whatever the settings say. The caller closes it. The error is a *Refusal if nothing can be sealed here.
func Private(r *Runner, dir string, network bool) (*seal.Seal, error) {
	return sealFor(r, dir, network, dir)
}

// sealFor returns a seal for programs in a directory.
func sealFor(r *Runner, root string, network bool, private ...string) (*seal.Seal, error) {
	if _, _, err := r.Host.Sealing.Support(true); err != nil {
		return nil, err
	}
	if err := makeCanary(r.Home.Canary()); err != nil {
		return nil, err
	}
	list := confine.New(confine.Run{
		Home: r.Home, Root: root, Protected: confine.Protected(r.Home, r.Host.Secret), Env: r.Host.Env, Self: r.Host.Sealing.Self,
		Private: private, Network: network,
	})
	return seal.New(list.Rules, nil), nil
}
