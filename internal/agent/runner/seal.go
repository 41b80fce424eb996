package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Sealing is what the seals of runs are made of.
type Sealing struct {
	Mode  string                       // of the settings: config.SealAuto, SealOn or SealOff
	Check func() (seal.Support, error) // what the kernel has
	Self  string                       // path of this program
	Temp  string                       // where a run's directory of temporary files is made
	Cache string                       // where the caches of jobs are; "": none is kept
}

// Seal is what a job asks of the seal.
type Seal struct {
	On      bool // the run is refused where nothing can be sealed
	Offline bool // programs connect only to what was started in the run
}

// sealed seals what the run's agent starts, and records what is in force. The returned context ends when the seal proves not to hold.
// stop ends every program that is left.
func (w *work) sealed(ctx context.Context) (_ context.Context, stop func(), err error) {
	support, why, err := w.support(w.spec)
	if err != nil {
		return ctx, nil, err
	}
	if why != "" {
		return ctx, func() {}, w.run.Update(func(r *runlog.Record) { r.Sealed = &runlog.Sealed{Why: why} })
	}
	temporary, cache, err := w.private()
	if err != nil {
		return ctx, nil, fmt.Errorf("seal: %w", err)
	}
	w.vars = privateVars(temporary, cache)
	ctx, end := context.WithCancelCause(ctx)
	w.tools.Seal, err = w.seal(support, []string{temporary, cache}, func(err error) {
		end(&Refusal{kind: ErrRefused, reason: "seal: " + err.Error(), cause: err})
	})
	quit := func() {}
	if err == nil {
		quit, err = w.serve()
	}
	modes := w.modes()
	stop = func() {
		end(nil)
		quit()
		if w.tools.Seal != nil {
			w.warn(w.tools.Seal.Close())
		}
		w.warn(removeAll(temporary))
		w.reportModes(context.WithoutCancel(ctx), modes)
	}
	if err != nil {
		quit = func() {}
		stop()
		return ctx, nil, fmt.Errorf("seal: %w", err)
	}
	w.tools.Env = append(slices.Clone(w.tools.Env), w.vars...)
	return ctx, stop, nil
}

// Seals returns what the kernel has for the seal of a job that an engine runs, or why such a job is not sealed. The error says why it is refused.
func (r *Runner) Seals(j job.Job) (support seal.Support, why string, err error) {
	return r.support(r.complete(Spec{Engine: Choice{Name: j.Engine}, Policy: Policy{Seal: sealOf(j)}}))
}

// sealOf returns what a job asks of the seal.
func sealOf(j job.Job) Seal {
	return Seal{On: j.Seal == job.SealOn, Offline: j.Network == job.NetworkNone}
}

// support returns what the kernel has for the seal of a run, or why the run is not sealed. It is a *Refusal if the run must be.
func (r *Runner) support(s Spec) (support seal.Support, why string, err error) {
	mode := r.Sealing.Mode
	if s.Policy.Seal.On {
		mode = config.SealOn
	}
	if mode == config.SealOff {
		return support, "seal: off", nil
	}
	support, err = r.Sealing.Check()
	if err == nil {
		return support, "", nil
	}
	if mode == config.SealOn {
		return support, "", &Refusal{kind: ErrRefused, reason: "seal: on: " + err.Error(), cause: err}
	}
	return support, err.Error(), nil
}

// seal makes the run's seal and records it. broken is called when the seal proves not to hold.
func (w *work) seal(support seal.Support, private []string, broken func(error)) (*seal.Seal, error) {
	allow, inside := w.run.Tools, w.spec.Engine.Name == config.ClaudeCode
	if inside && policy.Mode(w.run.Permissions) != "" {
		allow = append(slices.Clone(allow), "Write(./**.md)") // the owner may allow any file of the working directory
	}
	list := confine.New(confine.Run{
		Home: w.Home, Root: cmp.Or(w.run.Root, string(w.Home)), Dirs: w.spec.Policy.Dirs, Allow: allow, Protected: confine.Protected(w.Home, w.Secret),
		Env: w.Env, Self: w.Sealing.Self, Private: private, Network: !w.spec.Policy.Seal.Offline,
		Inside: inside,
	})
	if inside {
		if err := list.MakeFolders(); err != nil {
			return nil, err
		}
	}
	rules, err := list.Rules()
	if errors.Is(err, confine.ErrProtected) {
		return nil, &Refusal{kind: ErrRefused, reason: err.Error(), cause: err}
	}
	if err == nil {
		err = makeCanary(rules.Canary)
	}
	if err != nil {
		return nil, err
	}
	record := &runlog.Sealed{ABI: support.ABI, Network: job.NetworkAny, Sockets: rules.Sockets}
	if !rules.Network {
		record.Network = job.NetworkNone
	}
	record.Read, record.Write = list.Summary(rules)
	made, err := seal.New(seal.Options{Broken: broken, Rules: func() (seal.Rules, error) {
		rules, err := list.Rules()
		if socket, wrong := filepath.EvalSymlinks(w.socket); wrong == nil && w.socket != "" {
			rules.Sockets = append(rules.Sockets, socket)
		}
		return rules, err
	}})
	if err != nil {
		return nil, err
	}
	return made, w.run.Update(func(r *runlog.Record) { r.Sealed = record })
}

// makeCanary makes the file that no sealed program may open, unless it is there.
func makeCanary(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.Write(path, []byte("A sealed program cannot read this file; every start of one tries it.\n"), store.Buffered)
}
