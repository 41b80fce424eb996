package installer

import (
	"context"
	"errors"
	"slices"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Clusters is the record of where the CronJobs of a data directory were installed, in its file state/clusters.json. A crontab and units are
// found by looking; a cluster has to be asked, and the data directory does not say which one.
type Clusters struct {
	Home paths.Dir
	Disk store.Disk
}

// InCluster is the last installation in one place of a cluster.
type InCluster struct {
	KubeOptions
	TickOnly bool `json:"tick_only,omitempty"`
}

// clusterRecord is the document.
type clusterRecord struct {
	Kubernetes []InCluster `json:"kubernetes"`
}

// Place returns the options that say where the CronJobs are.
func (o KubeOptions) Place() KubeOptions {
	return KubeOptions{Context: o.Context, Namespace: o.Namespace, Claim: o.Claim, Folder: o.Folder}
}

// Contexts returns the contexts of the recorded installations in a place, whichever cluster it is in; "" is one of an installation before
// contexts were recorded, or of a kubectl without contexts.
func (c Clusters) Contexts(place KubeOptions) (contexts []string, err error) {
	list, err := c.List()
	for _, i := range list {
		if at := i.Place(); at.in(i.Context) == place.Place().in(i.Context) {
			contexts = append(contexts, i.Context)
		}
	}
	return contexts, err
}

func (o KubeOptions) in(context string) KubeOptions {
	o.Context = context
	return o
}

// List returns the installations, the oldest first. It changes nothing, and an invalid file is an error.
func (c Clusters) List() ([]InCluster, error) {
	r, invalid, err := store.PeekJSON[clusterRecord](c.Home.Clusters())
	return r.Kubernetes, errors.Join(invalid, err)
}

// Note records an installation in place of an earlier one there, or of one there without a context.
func (c Clusters) Note(ctx context.Context, done InCluster) error {
	return c.edit(ctx, func(r *clusterRecord) error {
		i := r.index(done.KubeOptions)
		if i < 0 {
			i = r.index(done.in(""))
		}
		switch {
		case i < 0:
			r.Kubernetes = append(r.Kubernetes, done)
		case r.Kubernetes[i] == done:
			return store.ErrUnchanged
		default:
			r.Kubernetes[i] = done
		}
		return nil
	})
}

// Forget removes the installation in a place from the record.
func (c Clusters) Forget(ctx context.Context, place KubeOptions) error {
	return c.edit(ctx, func(r *clusterRecord) error {
		i := r.index(place)
		if i < 0 {
			return store.ErrUnchanged
		}
		if r.Kubernetes = slices.Delete(r.Kubernetes, i, i+1); len(r.Kubernetes) == 0 {
			return store.ErrEmpty
		}
		return nil
	})
}

func (r clusterRecord) index(o KubeOptions) int {
	return slices.IndexFunc(r.Kubernetes, func(i InCluster) bool { return i.Place() == o.Place() })
}

func (c Clusters) edit(ctx context.Context, edit func(*clusterRecord) error) error {
	return store.EditJSON(ctx, c.Disk, c.Home.Lock("clusters"), c.Home.Clusters(), edit)
}
