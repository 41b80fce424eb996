package claudecode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
)

// The command keeps sessions, its own settings and its temporary shell scripts in one directory, CLAUDE_CONFIG_DIR or ~/.claude. That
// is where a process that is not sealed works. A sealed one must be able to write there, so it gets a directory of its own, and reaches
// neither the owner's settings and login nor another session: one below sessions/claude to begin a session, which keeps the session, and a
// temporary one to continue it.
//
// A session stays in the file in which it began. A process that continues or branches it names that file, and a sealed one is granted
// that file: to write, or for a branch to read. So no session is ever copied, and the seal may be turned on and off.

// configVariable names the command's directory.
const configVariable = "CLAUDE_CONFIG_DIR"

// certificates names a file of certificates that the command accepts besides the system's.
const certificates = "NODE_EXTRA_CA_CERTS"

// sessionVariable has the id of the session for which a sealed process works.
const sessionVariable = "OLLIM_SESSION"

// config returns the directory of the sealed processes that write a session.
func (e *Engine) config(session string) string {
	return filepath.Join(e.Home.ClaudeSessions(), session)
}

// shared returns the directory of processes that are not sealed.
func (e *Engine) shared() string {
	if dir := e.variable(configVariable); dir != "" {
		return dir
	}
	return filepath.Join(e.variable("HOME"), ".claude")
}

// sealed returns the files of a session in its own directory. Links that an agent made there do not lead out of it.
func (e *Engine) sealed(id string) []string {
	own := followed(e.config(id))
	root, err := os.OpenRoot(own)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	return among(own, root.FS(), id)
}

// transcripts returns the files of a session: of its own directory, then of the one that is shared, in which links are followed.
func (e *Engine) transcripts(id string) []string {
	found := e.sealed(id)
	for _, file := range among(e.shared(), os.DirFS(e.shared()), id) {
		found = append(found, followed(file))
	}
	return found
}

// among returns the files of a session in one directory. Their directories are named after the working directory.
func among(dir string, files fs.FS, id string) (found []string) {
	folders, err := fs.ReadDir(files, "projects")
	if err != nil {
		return nil
	}
	for _, folder := range folders {
		name := path.Join("projects", folder.Name(), id+".jsonl")
		if info, err := fs.Stat(files, name); err == nil && info.Mode().IsRegular() {
			found = append(found, filepath.Join(dir, name))
		}
	}
	return found
}

// Writable makes sure that transcripts can be written before the agent starts. Later would be too late for what the agent has done,
// and for the updates that it was given. The error wraps engine.ErrSetup.
func (e *Engine) Writable() error {
	dir := filepath.Join(e.shared(), "projects")
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%w: env in config.yaml sets no HOME, where claude keeps its sessions", engine.ErrSetup)
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".ollim-"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: claude cannot keep its sessions in %s: %s", engine.ErrSetup, dir, store.Cause(err))
	}
	return nil
}

// place is where a process of the command works.
type place struct {
	env     []string   // its whole environment
	secrets []*os.File // its first descriptors
	way     reach      // of one that may not connect elsewhere
	seal    *seal.Seal // nil: it is not sealed

	temporary string // directory that ends with the process; "" is none
}

// place prepares a process that writes a session. The caller closes the place.
func (e *Engine) place(ctx context.Context, r engine.Request, session string, from source) (p place, err error) {
	shell, err := e.shellEnv(r)
	if err != nil {
		return p, err
	}
	if r.Scope.Seal != nil {
		entries, err := e.stored(ctx)
		if err != nil {
			return p, err
		}
		with := *e
		with.Env = slices.Concat(e.Env, entries)
		e = &with
	}
	p.env = append(e.environment(r), shell...)
	if p.secrets, err = e.secrets(); err != nil {
		return p, err
	}
	if r.Scope.Seal == nil {
		return p, e.Writable()
	}
	config, err := e.directory(ctx, r, session, from)
	if err != nil {
		return p, err
	}
	if from.grows {
		p.temporary = config
	}
	p.env = append(p.env, configVariable+"="+config, sessionVariable+"="+session)
	rules := e.rules(r, config, from)
	if r.Scope.Offline {
		if p.way, err = e.reach(); err != nil {
			return p, err
		}
		rules.Connect, p.env = p.way.connect, append(p.env, p.way.env...)
	}
	p.seal = r.Scope.Seal.With(rules)
	return p, p.try(ctx, config, variable(p.env, "TMPDIR"))
}

// directory makes the directory of a process. It is a new one each time: the command applies settings that it finds there, such as another
// address of the API, to which it would send the key, and what earlier processes of an agent left can write where they could before.
func (e *Engine) directory(ctx context.Context, r engine.Request, session string, from source) (string, error) {
	if from.grows {
		if err := endAll(ctx, sessionVariable+"="+session); err != nil {
			return "", err
		}
		return os.MkdirTemp(e.Home.Run(r.Run.ID), "claude-")
	}
	config := e.config(session)
	return config, errors.Join(store.RemoveAll(ctx, config), store.MkdirOwn(config))
}

// rules returns what a sealed process may do besides the programs of its run.
func (e *Engine) rules(r engine.Request, config string, from source) seal.Rules {
	rules := seal.Rules{Read: append(programFiles(e.Command), e.Self), Write: []string{config}}
	for _, name := range []string{"settings.json", "mcp.json", "env.sh"} {
		rules.Read = append(rules.Read, e.Home.Run(r.Run.ID, name))
	}
	if file := e.variable(certificates); file != "" {
		rules.Read = append(rules.Read, file)
	}
	for _, list := range [][]string{rules.Read, rules.Write} {
		for i := range list {
			list[i] = followed(list[i])
		}
	}
	if file := from.past.file; file != "" { // without links: what has become one since it was found is not granted
		rules.Read = append(rules.Read, file, strings.TrimSuffix(file, ".jsonl")) // and what the command keeps beside it
		if from.grows {
			rules.Write = append(rules.Write, file)
		}
	}
	return rules
}

// endAll ends the processes that carry a variable, and waits for their end: those of a fire that was killed a moment ago may not have
// ended yet.
func endAll(ctx context.Context, entry string) error {
	for pause := time.Millisecond; len(process.Carrying(entry)) > 0; pause = min(2*pause, 100*time.Millisecond) {
		process.KillAll(entry)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	return nil
}

// programFiles returns what the command reads of itself: its file, and the packages that npm installed it with.
func programFiles(command string) []string {
	file := followed(command)
	files := []string{file, filepath.Join(filepath.Dir(file), "node_modules")} // of a script that starts the one beside it
	if i := strings.LastIndex(file, "/node_modules/"); i >= 0 {
		files = append(files, file[:i]+"/node_modules")
	}
	return files
}

// probe is a file that try makes.
const probe = ".ollim-probe"

// try makes sure that a sealed process can write to directories. Without that the command prints nothing, or keeps no session, and
// exits 0.
func (p place) try(ctx context.Context, dirs ...string) error {
	argv := append([]string{"/bin/sh", "-c", `for d; do : >"$d/` + probe + `" || exit; done`, "sh"}, dirs...)
	result, err := process.Run(ctx, process.Call{Argv: argv, Env: p.env, Dir: "/", Seal: p.seal})
	if err == nil {
		err = result.Failure()
	}
	for _, dir := range dirs {
		_ = os.Remove(filepath.Join(dir, probe))
	}
	if err != nil {
		return fmt.Errorf("claude cannot write its temporary files and its session under the seal: %w", err)
	}
	return nil
}

// start starts the command. One that is not sealed keeps the locks if this process dies; a sealed one ends with this process.
func (p place) start(cmd *exec.Cmd, locks []*os.File) error {
	run := cmd.Start
	if p.seal != nil {
		run = func() error { return p.seal.Start(cmd) }
	} else {
		cmd.ExtraFiles = append(cmd.ExtraFiles, locks...)
	}
	err := run()
	if err == nil || errors.Is(err, seal.ErrNotSealed) {
		return err
	}
	return fmt.Errorf("%w: %s: %s", engine.ErrSetup, cmd.Path, store.Cause(err))
}

func (p place) close(ctx context.Context) {
	for _, f := range p.secrets {
		_ = f.Close()
	}
	p.way.close()
	if p.temporary != "" {
		_ = store.Discard(ctx, p.temporary) // else it is removed with the record of the run
	}
}
