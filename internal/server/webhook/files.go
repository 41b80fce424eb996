package webhook

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

// Files finds webhooks by their ids, in the files as they are now. It reads them again only when one has changed, and each second
// while one has a fault, which may lie in another file: the same id.
type Files struct {
	Jobs job.Library
	Keys func(job.Hook) ([][]byte, error) // of a webhook, as its secret is now
	Now  func() time.Time

	mu     sync.Mutex
	state  string // of the files that are in set
	loaded time.Time
	set    job.Set
}

// hook is a webhook with its keys.
type hook struct {
	Job  job.Job
	Keys Keys
}

// find returns the webhook with an id. The error is for the owner.
func (f *Files) find(id string) (hook, error) {
	set, err := f.load()
	if err != nil {
		return hook{}, err
	}
	i := slices.IndexFunc(set.Jobs, func(j job.Job) bool { return j.ID == id })
	if i < 0 && len(set.Faults) > 0 {
		return hook{}, fmt.Errorf("no webhook has this id; the files of %d cannot be read, see: ollim check", len(set.Faults))
	}
	if i < 0 {
		return hook{}, errors.New("no webhook has this id")
	}
	return f.open(set.Jobs[i])
}

// long reports whether a webhook signs with SHA-512.
func (f *Files) long() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.set.Jobs, func(j job.Job) bool { return j.Hook.Signature.Hash == job.SHA512 })
}

func (f *Files) open(j job.Job) (hook, error) {
	keys, err := f.Keys(*j.Hook)
	return hook{j, Keys{Scheme: j.Hook.Signature, Values: keys}}, err
}

// All returns the webhooks that can be called, and why others cannot.
func (f *Files) All() (ids []string, faults []error, err error) {
	set, err := f.load()
	for _, j := range set.Jobs {
		if _, err := f.open(j); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", j.Name(), err))
			continue
		}
		ids = append(ids, j.ID)
	}
	for _, fault := range set.Faults {
		faults = append(faults, fault)
	}
	return ids, faults, err
}

// unsettled is how long after a change of a file another change may have the same time.
const unsettled = time.Second

func (f *Files) load() (job.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err := f.look()
	if err != nil {
		return job.Set{}, err
	}
	now := f.Now()
	if state == "" || state != f.state || len(f.set.Faults) > 0 && now.Sub(f.loaded).Abs() >= unsettled {
		set, err := f.Jobs.Load()
		if err != nil {
			return set, err
		}
		f.set, f.state, f.loaded = set.Only(job.Webhook), state, now
	}
	return f.set, nil
}

// look returns what changes with the files of webhooks, "" if it may not.
func (f *Files) look() (string, error) {
	entries, err := store.List(f.Jobs.Home.Webhooks())
	if err != nil {
		return "", err
	}
	var state strings.Builder
	state.WriteString("files")
	for _, e := range entries {
		info, err := os.Stat(f.Jobs.Home.Path("webhooks", e.Name())) // a link changes with its target
		if err != nil {
			return "", nil //nolint:nilerr // it is gone, or comes; reading it says what is wrong
		}
		if f.Now().Sub(info.ModTime()) < unsettled {
			return "", nil
		}
		fmt.Fprintf(&state, "\n%s %d %d", e.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return state.String(), nil
}
