package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// sandbox is the seal of a run, which restricts the programs that its agent starts.
type sandbox struct {
	r     *Runner
	spec  Spec
	run   *runlog.Run
	tools *tools.Set

	vars   []string      // environment of the programs, KEY=value
	list   *confine.List // what the programs may access; nil: nothing is sealed
	dirs   [2]string     // directories for temporary files and for caches
	socket string        // socket through which programs execute commands of ollim
}

// confine decides what the run's programs may access, and sets their environment. It returns the part of the record about it. The error
// is a *Refusal if the run must be sealed and cannot be.
func (b *sandbox) confine() (*runlog.Sealed, error) {
	abi, why, err := b.r.Host.Sealing.Support(b.spec.Policy.Seal.On)
	if err != nil || why != "" {
		return &runlog.Sealed{Why: why}, err
	}
	b.dirs[0], b.dirs[1] = b.private()
	b.list = b.newList(b.dirs[:]...)
	record, err := b.inForce(abi, b.list)
	if err != nil {
		return nil, err
	}
	b.vars = privateVars(b.dirs[0], b.dirs[1])
	b.tools.World.Env = append(slices.Clone(b.tools.World.Env), b.vars...)
	return record, nil
}

// enter seals what the run's agent starts, and notes the seal in the record, which the caller saves. The returned context ends when that
// fails, or when the seal proves ineffective. stop ends every program that is left.
func (b *sandbox) enter(ctx context.Context) (_ context.Context, stop func(), err error) {
	record, err := b.confine()
	if err != nil {
		return ctx, func() {}, err
	}
	if b.run.Sealed = record; b.list == nil {
		return ctx, func() {}, nil
	}
	run := ctx
	ctx, end := context.WithCancelCause(ctx)
	closeSeal := b.seal(run, end)
	return ctx, func() {
		end(nil)
		if !closeSeal() {
			return
		}
		if rules, err := b.list.Summary(true); err == nil {
			record.Read = rules.Read
		}
		record.Refused = b.refused()
	}, nil
}

// again makes a new seal for the programs of the run's origin, after the seal of the agent's programs was closed.
func (b *sandbox) again(ctx context.Context) (_ context.Context, stop func()) {
	if b.list == nil {
		return ctx, func() {}
	}
	sealed, end := context.WithCancelCause(ctx)
	closeSeal := b.seal(ctx, end)
	return sealed, func() {
		closeSeal()
		end(nil)
	}
}

// seal makes the seal of the run's programs when the first program starts, because most runs start none. It calls end when that fails, or
// when the seal proves ineffective. stop ends every program that is left, and reports whether there was one.
func (b *sandbox) seal(run context.Context, end func(error)) (stop func() bool) {
	var socket Socket
	var before map[string]fs.FileMode
	var closed atomic.Bool // once it is set, no seal is made, and starting a program fails with seal.ErrClosed
	made := sync.OnceValue(func() error {
		if closed.Load() {
			return seal.ErrClosed
		}
		before = modes(confine.Protected(b.r.Home, b.r.Host.Secret))
		return errors.Join(b.makePrivate(b.dirs[0], b.dirs[1]), makeCanary(b.r.Home.Canary()), b.list.MakeFolders(), socket.Listen())
	})
	b.tools.World.Seal = seal.New(func() (seal.Rules, error) {
		if err := made(); err != nil {
			end(fmt.Errorf("seal: %w", err))
			return seal.Rules{}, err
		}
		rules, err := b.list.Rules()
		rules.Sockets = append(rules.Sockets, b.socket)
		return rules, err
	}, func(err error) { end(&Refusal{Kind: ErrRefused, Reason: "seal: " + err.Error(), cause: err}) })
	socket = b.r.Host.Serve(Service{b.run.ID, b.spec.servers(b.run), b.tools.World.Seal, b.vars, b.writable(), b.hints})
	if b.socket == "" {
		b.socket = socket.Path
		b.tools.World.Env = append(slices.Clone(b.tools.World.Env), engine.SocketVariable+"="+b.socket)
	}
	return func() bool {
		closed.Store(true)
		if made() == seal.ErrClosed { //nolint:errorlint // made returns this very value
			return false
		}
		socket.Close()
		b.r.Warn(b.tools.World.Seal.Close())
		b.r.Warn(store.Discard(run, b.dirs[0])) // Sweep removes what is left
		b.reportModes(context.WithoutCancel(run), before)
		return true
	}
}

// writable returns the directories and files that the run's programs may write.
func (b *sandbox) writable() []string {
	if b.run.Sealed == nil {
		return nil
	}
	return b.run.Sealed.Write
}

// refused returns what the seal denied to the agent's commands that failed.
func (b *sandbox) refused() (all []string) {
	const most = 5
	text, err := store.Read(b.r.Home.Run(b.run.ID, "events.jsonl"))
	if err != nil || !bytes.Contains(text, []byte(`"is_error":true`)) { // nothing failed, and nothing needs to be decoded
		return nil
	}
	commands, bad := map[string]string{}, 0
	for e, err := range b.r.Runs.Events(b.run.ID, &bad) {
		switch {
		case err != nil || len(all) >= most:
			return all
		case e.Type == runlog.ToolUse && e.Tool == "Bash":
			var input struct{ Command string }
			_ = json.Unmarshal(e.Input, &input) // any other input has no command
			commands[e.ToolID] = input.Command
		case e.Type == runlog.Verdict && e.IsError: // the command was denied and did not start
			delete(commands, e.ToolID)
		case e.Type == runlog.ToolResult && e.IsError && commands[e.ToolID] != "":
			for _, why := range b.hints(commands[e.ToolID], e.Text, true) {
				if !slices.Contains(all, why) {
					all = append(all, why)
				}
			}
		}
	}
	return all
}

// hints returns sentences for the owner and the model about what the seal denied to a command, and which setting allows it; none if the run
// is not sealed.
func (b *sandbox) hints(command, output string, failed bool) []string {
	if b.list == nil {
		return nil
	}
	list := b.list.Hints(command, output, failed)
	if b.run.Kind == runlog.Ask {
		for i := range list {
			list[i] = strings.NewReplacer("dirs: rw:", "--add-dir ", "dirs: ", "--add-dir ").Replace(list[i])
		}
	}
	return list
}

// newList returns what the run's programs may reach.
func (b *sandbox) newList(private ...string) *confine.List {
	allow, inside := b.run.Tools, engine.Inside(b.spec.Engine.Name)
	if inside && policy.Mode(b.run.Permissions) != "" {
		allow = append(slices.Clone(allow), "Write(./**.md)") // the owner may allow any file of the working directory
	}
	return confine.New(confine.Run{
		Home: b.r.Home, Root: cmp.Or(b.run.Root, string(b.r.Home)), Dirs: b.spec.Policy.Dirs, Allow: allow, Protected: confine.Protected(b.r.Home, b.r.Host.Secret),
		Env: b.r.Host.Env, Self: b.r.Host.Sealing.Self, Private: private, Network: !b.spec.Policy.Seal.Offline,
		Inside: inside,
	})
}

// inForce returns what the record says about a list, before any program has started. The error is a *Refusal if the list is not possible.
func (b *sandbox) inForce(abi int, list *confine.List) (*runlog.Sealed, error) {
	rules, err := list.Summary(false)
	if errors.Is(err, confine.ErrProtected) {
		key := "dirs: "
		if b.run.Kind == runlog.Ask {
			key = "--add-dir "
		}
		return nil, &Refusal{Kind: ErrRefused, Reason: key + err.Error(), cause: err}
	}
	r := &runlog.Sealed{
		ABI: abi, Network: job.NetworkAny, Read: rules.Read, Write: rules.Write, Sockets: rules.Sockets, Open: b.spec.Policy.Seal.Open,
	}
	if !rules.Network {
		r.Network = job.NetworkNone
	}
	return r, err
}

// Service executes commands for the processes of a sealed run: the commands of ollim that the agent may use, and those that its engine
// calls.
type Service struct {
	Run     string
	Servers []string // patterns of the tools of MCP servers that the engine is offered
	Seal    *seal.Seal
	Vars    []string // of the programs of those servers, KEY=value
	Write   []string // directories and files that its processes may write, without links
	Hints   engine.Hints
}

// Socket is the socket that the processes of a sealed run connect to.
type Socket struct {
	Path   string       // absolute, without links
	Listen func() error // makes the socket
	Close  func()       // ends what is being executed, waits for it, and removes the socket
}

// modes returns the modes of the protected files. The seal protects their contents, but not their modes.
func modes(protected []string) map[string]fs.FileMode {
	modes := map[string]fs.FileMode{}
	for _, path := range protected {
		if info, err := os.Stat(path); err == nil {
			modes[path] = info.Mode()
		}
	}
	return modes
}

// reportModes reports the modes that have changed during a run.
func (b *sandbox) reportModes(ctx context.Context, before map[string]fs.FileMode) {
	for path, now := range modes(confine.Protected(b.r.Home, b.r.Host.Secret)) {
		if was, known := before[path]; known && was != now {
			text := fmt.Sprintf("%s: its mode was changed from %#o to %#o while %s ran", path, was.Perm(), now.Perm(), b.run.Label())
			back := fmt.Sprintf("chmod %o %s", was.Perm(), path)
			b.r.Warn(fmt.Errorf("%s: %s", text, back))
			b.r.Warn(b.r.Notify().Tell(ctx, notify.Cause{
				Kind: notify.News, Subject: "mode " + path, Name: path, Run: b.run.ID, Text: text, Remedy: "`" + back + "`",
			}))
		}
	}
}
