package runner

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Sealing is the configuration of the seals of runs.
type Sealing struct {
	Mode  string                      // as in the settings: auto, config.SealOn or config.SealOff
	Check func() (abi int, err error) // the kernel's version of Landlock
	Self  string                      // path of this program
	Temp  string                      // where a run's directory of temporary files is made
	Cache string                      // where the caches of jobs are; "": none is kept
}

// sealWish is what a job's file says about the seal.
type sealWish struct {
	On      bool // the run is refused where nothing can be sealed
	Offline bool // programs connect only to what was started in the run

	Open []string // keys of the owner's executables that are not sealed
}

// confine decides what the run's programs may reach, and gives them their environment. It returns the record of what is in force. The error
// is a *refusal if the run must be sealed and cannot be.
func (w *work) confine() (*runlog.Sealed, error) {
	abi, why, err := w.r.support(w.spec)
	if err != nil || why != "" {
		return &runlog.Sealed{Why: why}, err
	}
	w.dirs[0], w.dirs[1] = w.private()
	w.list = w.newList(w.dirs[:]...)
	record, err := w.inForce(abi, w.list)
	if err != nil {
		return nil, err
	}
	w.vars = privateVars(w.dirs[0], w.dirs[1])
	w.tools.Env = append(slices.Clone(w.tools.Env), w.vars...)
	return record, nil
}

// sealed seals what the run's agent starts, and records what is in force. The returned context ends when that fails, or the seal proves
// not to hold. stop ends every program that is left.
func (w *work) sealed(ctx context.Context) (_ context.Context, stop func(), err error) {
	record, err := w.confine()
	if err == nil {
		err = w.run.Update(func(r *runlog.Record) { r.Sealed = record })
	}
	if err != nil || w.list == nil {
		return ctx, func() {}, err
	}
	run := ctx
	ctx, end := context.WithCancelCause(ctx)
	closeSeal := w.seal(run, end)
	return ctx, func() {
		end(nil)
		if !closeSeal() {
			return
		}
		if rules, err := w.list.Summary(true); err == nil {
			record.Read = rules.Read
		}
		record.Refused = w.refused()
	}, nil
}

// end lets the origin do what follows from the outcome. The seal of the agent's programs is closed, so the origin's programs get a seal of
// their own.
func (w *work) end(ctx context.Context, cause error) {
	if w.list != nil {
		sealed, end := context.WithCancelCause(ctx)
		defer end(nil)
		closeSeal := w.seal(ctx, end)
		defer closeSeal()
		ctx = sealed
	}
	w.spec.Origin.End(ctx, w.tools, cause)
}

// seal makes the seal of the run's programs. It is made when the first program starts, because most runs start none. end is called when
// that fails, or when the seal proves not to hold. stop ends every program that is left, and reports whether there was one.
func (w *work) seal(run context.Context, end func(error)) (stop func() bool) {
	var socket Socket
	var modes map[string]fs.FileMode
	var closed atomic.Bool // from then on no seal is made, and a program gets seal.ErrClosed
	made := sync.OnceValue(func() error {
		if closed.Load() {
			return seal.ErrClosed
		}
		modes = w.r.modes()
		return errors.Join(w.makePrivate(w.dirs[0], w.dirs[1]), makeCanary(w.r.Home.Canary()), w.list.MakeFolders(), socket.Listen())
	})
	w.tools.Seal = seal.New(func() (seal.Rules, error) {
		if err := made(); err != nil {
			end(fmt.Errorf("seal: %w", err))
			return seal.Rules{}, err
		}
		rules, err := w.list.Rules()
		rules.Sockets = append(rules.Sockets, w.socket)
		return rules, err
	}, func(err error) { end(&refusal{kind: ErrRefused, reason: "seal: " + err.Error(), cause: err}) })
	socket = w.r.Host.Serve(Service{w.run.ID, w.spec.servers(w.run), w.tools.Seal, w.vars, w.writable(), w.hints})
	if w.socket == "" {
		w.socket = socket.Path
		w.tools.Env = append(slices.Clone(w.tools.Env), engine.SocketVariable+"="+w.socket)
	}
	return func() bool {
		closed.Store(true)
		if made() == seal.ErrClosed { //nolint:errorlint // made returns this very value
			return false
		}
		socket.Close()
		w.r.warn(w.tools.Seal.Close())
		w.r.warn(store.Discard(run, w.dirs[0])) // SweepPrivate removes the rest
		w.reportModes(context.WithoutCancel(run), modes)
		return true
	}
}

// writable returns the directories and files that the run's programs may write.
func (w *work) writable() []string {
	if w.run.Sealed == nil {
		return nil
	}
	return w.run.Sealed.Write
}

// refused returns what the seal denied to the agent's commands that failed.
func (w *work) refused() (all []string) {
	const most = 5
	text, err := store.Read(w.r.Home.Run(w.run.ID, "events.jsonl"))
	if err != nil || !bytes.Contains(text, []byte(`"is_error":true`)) { // nothing failed, and nothing needs to be decoded
		return nil
	}
	commands, bad := map[string]string{}, 0
	for e, err := range w.r.Runs.Events(w.run.ID, &bad) {
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
			for _, why := range w.hints(commands[e.ToolID], e.Text, true) {
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
func (w *work) hints(command, output string, failed bool) []string {
	if w.list == nil {
		return nil
	}
	list := w.list.Hints(command, output, failed)
	if w.run.Kind == kindAsk {
		for i := range list {
			list[i] = strings.NewReplacer("dirs: rw:", "--add-dir ", "dirs: ", "--add-dir ").Replace(list[i])
		}
	}
	return list
}

// Seals returns the version of Landlock that seals the runs of a job, or why they are not sealed. The error says why the job is refused.
func (u Rules) Seals(j job.Job) (abi int, why string, err error) {
	return u.r.support(u.r.complete(Spec{Engine: choice{Name: j.Engine}, Policy: rights{Seal: sealOf(j)}}))
}

// sealOf returns what a job asks of the seal.
func sealOf(j job.Job) sealWish {
	return sealWish{On: j.Seal == job.SealOn, Offline: j.Network == job.NetworkNone, Open: j.Unsealed}
}

// support returns the version of Landlock that seals a run, or why the run is not sealed. It is a *refusal if the run must be.
func (r *Runner) support(s Spec) (abi int, why string, err error) {
	mode := r.Host.Sealing.Mode
	if s.Policy.Seal.On {
		mode = config.SealOn
	}
	if mode == config.SealOff {
		return abi, "seal: off", nil
	}
	abi, err = r.Host.Sealing.Check()
	if err == nil {
		return abi, "", nil
	}
	if mode == config.SealOn {
		return abi, "", &refusal{kind: ErrRefused, reason: "seal: on: " + err.Error(), cause: err}
	}
	return abi, err.Error(), nil
}

// newList returns what the run's programs may reach.
func (w *work) newList(private ...string) *confine.List {
	allow, inside := w.run.Tools, w.spec.Engine.Name == engine.ClaudeCode
	if inside && policy.Mode(w.run.Permissions) != "" {
		allow = append(slices.Clone(allow), "Write(./**.md)") // the owner may allow any file of the working directory
	}
	return confine.New(confine.Run{
		Home: w.r.Home, Root: cmp.Or(w.run.Root, string(w.r.Home)), Dirs: w.spec.Policy.Dirs, Allow: allow, Protected: confine.Protected(w.r.Home, w.r.Host.Secret),
		Env: w.r.Host.Env, Self: w.r.Host.Sealing.Self, Private: private, Network: !w.spec.Policy.Seal.Offline,
		Inside: inside,
	})
}

// inForce returns what the record says about a list, before any program has started. The error is a *refusal if the list is not possible.
func (w *work) inForce(abi int, list *confine.List) (*runlog.Sealed, error) {
	rules, err := list.Summary(false)
	if errors.Is(err, confine.ErrProtected) {
		key := "dirs: "
		if w.run.Kind == kindAsk {
			key = "--add-dir "
		}
		return nil, &refusal{kind: ErrRefused, reason: key + err.Error(), cause: err}
	}
	r := &runlog.Sealed{
		ABI: abi, Network: job.NetworkAny, Read: rules.Read, Write: rules.Write, Sockets: rules.Sockets, Open: w.spec.Policy.Seal.Open,
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

// servers returns the patterns of the tools of MCP servers that a run's engine is offered.
func (s Spec) servers(run *runlog.Run) []string {
	return policy.OfServers(slices.Concat(run.Tools, s.Policy.Offered)...)
}

const (
	temporaryPrefix = "ollim-"            // of the names of directories of temporary files; the id of the run follows
	cacheLife       = 14 * 24 * time.Hour // of a cache that no run has used
)

// private returns the run's directory of temporary files, which is removed with it, and the directory of caches, which later runs of the
// same job find again, both without links. They are not the owner's own caches: what an agent leaves there must not become part of the
// owner's programs. An owner without a home directory that can be written, as many system users are, has no caches, only files of the run.
func (w *work) private() (temporary, cache string) {
	dir, err := filepath.EvalSymlinks(w.r.Host.Sealing.Temp)
	if err != nil {
		dir = w.r.Host.Sealing.Temp
	}
	temporary = filepath.Join(dir, temporaryPrefix+w.run.ID+"-"+strconv.Itoa(os.Getpid()))
	r := w.run.Record
	sum := sha256.Sum256([]byte(strings.Join([]string{string(w.r.Home), r.Kind, r.Job, r.Root, r.Network}, "\x00")))
	cache = filepath.Join(w.r.caches(), r.Kind+"-"+hex.EncodeToString(sum[:8])) // shared by the runs of one job, or the questions in one directory
	if real, err := policy.Resolve(cache); err != nil || real != cache || !filepath.IsAbs(cache) || !canMake(cache) {
		cache = filepath.Join(temporary, "cache")
	}
	return temporary, cache
}

// caches returns the directory of all caches, without links in its path; "" if there can be none. A link in its place is refused: the
// agent of a job with rw:~/.cache can have made it.
func (r *Runner) caches() string {
	around := filepath.Dir(r.Host.Sealing.Cache)
	_, err := os.Stat(filepath.Dir(around))
	real, linkErr := policy.Resolve(around)
	dir := filepath.Join(real, filepath.Base(r.Host.Sealing.Cache))
	if info, statErr := os.Lstat(dir); r.Host.Sealing.Cache == "" || errors.Join(err, linkErr) != nil || statErr == nil && !info.IsDir() {
		return ""
	}
	return dir
}

// canMake reports whether this process may make a directory, or write in it if it exists.
func canMake(dir string) bool {
	const writing = 2 // W_OK
	err := syscall.Access(dir, writing)
	for ; errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); err = syscall.Access(dir, writing) {
		dir = filepath.Dir(dir)
	}
	return err == nil
}

// makePrivate makes the two directories. It fails if the one for temporary files exists, which may be another user's.
func (w *work) makePrivate(temporary, cache string) error {
	now := w.r.Disk.Now()
	return errors.Join(os.Mkdir(temporary, 0o700), os.MkdirAll(cache, 0o700), os.Chtimes(cache, now, now))
}

// makeCanary makes the file that no sealed program may open, unless it is there.
func makeCanary(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.Write(path, []byte("A sealed program cannot read this file; every start of one tries it.\n"), store.Buffered)
}

// privateVars returns the variables by which programs find the two directories.
func privateVars(temporary, cache string) []string {
	return []string{
		"SHLVL=2", // without SHLVL a bash whose input is a socket, or below ssh, reads the owner's .bashrc, which is sealed off
		"TMPDIR=" + temporary, "TMP=" + temporary, "TEMP=" + temporary, "XDG_CACHE_HOME=" + cache,
		"GOCACHE=" + filepath.Join(cache, "go-build"), "npm_config_cache=" + filepath.Join(cache, "npm"),
	}
}

// SweepPrivate removes the temporary files of runs whose process was killed or that left too many, and caches that no run has used for two
// weeks. It stops when ctx ends; another call goes on.
func (r *Runner) SweepPrivate(ctx context.Context) error {
	temporary, err := filepath.Glob(filepath.Join(r.Host.Sealing.Temp, temporaryPrefix+"2*Z-*-*"))
	for _, dir := range temporary {
		id := strings.TrimPrefix(filepath.Base(dir), temporaryPrefix)
		id = id[:strings.LastIndexByte(id, '-')]
		if record, loadErr := r.Runs.Load(id); loadErr == nil && (record.Done() || !r.Runs.Alive(record)) {
			err = errors.Join(err, store.RemoveAll(ctx, dir))
		}
	}
	caches, _ := os.ReadDir(r.caches()) // a directory that cannot be listed has no caches of this user's runs
	for _, entry := range caches {
		info, statErr := entry.Info()
		if statErr == nil && info.IsDir() && info.ModTime().Before(r.Disk.Now().Add(-cacheLife)) {
			err = errors.Join(err, store.RemoveAll(ctx, filepath.Join(r.caches(), entry.Name())))
		}
	}
	return err
}

// modes returns the modes of the protected files. The seal protects their contents, but not their modes.
func (r *Runner) modes() map[string]fs.FileMode {
	modes := map[string]fs.FileMode{}
	for _, path := range confine.Protected(r.Home, r.Host.Secret) {
		if info, err := os.Stat(path); err == nil {
			modes[path] = info.Mode()
		}
	}
	return modes
}

// reportModes reports the modes that have changed during a run.
func (w *work) reportModes(ctx context.Context, before map[string]fs.FileMode) {
	for path, now := range w.r.modes() {
		if was, known := before[path]; known && was != now {
			text := fmt.Sprintf("%s: its mode was changed from %#o to %#o while %s ran", path, was.Perm(), now.Perm(), w.run.Label())
			back := fmt.Sprintf("chmod %o %s", was.Perm(), path)
			w.r.warn(fmt.Errorf("%s: %s", text, back))
			w.r.warn(w.r.Notify().Tell(ctx, notify.Cause{
				Kind: notify.News, Subject: "mode " + path, Name: path, Run: w.run.ID, Text: text, Remedy: "`" + back + "`",
			}))
		}
	}
}
