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

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
)

// The command keeps sessions, its settings and its temporary shell scripts in one directory, CLAUDE_CONFIG_DIR or ~/.claude. A process
// that is not sealed uses that directory. A sealed process must be able to write to its directory, so it gets one of its own, and can
// reach neither the owner's settings and login nor another session. The directory is below sessions/claude for a new session, and keeps
// the session; it is temporary for a session that is continued.
//
// A session stays in the file in which it began. A process that continues or branches the session names that file, and a sealed process
// gets access to it: to write, or for a branch to read. So no session is ever copied, and the seal may be turned on and off.

// configVariable is the variable that names the command's directory.
const configVariable = "CLAUDE_CONFIG_DIR"

// sessionVariable is the variable with the id of the session of a sealed process.
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

// sealed returns the files of a session in its own directory. It does not follow links out of the directory, which an agent may have
// made.
func (e *Engine) sealed(id string) []string {
	own := command.Followed(e.config(id))
	root, err := os.OpenRoot(own)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	return among(own, root.FS(), id)
}

// transcripts returns the files of a session: first of its own directory, then of the shared one, in which it follows links.
func (e *Engine) transcripts(id string) []string {
	found := e.sealed(id)
	for _, file := range among(e.shared(), os.DirFS(e.shared()), id) {
		found = append(found, command.Followed(file))
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

// Writable returns an error if transcripts cannot be written. It is called before the agent starts, because later the agent's work, and
// the updates that it was given, would be lost. The error wraps engine.ErrSetup.
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

// place is the environment in which a process of the command runs.
type place struct {
	env     []string   // its whole environment
	secrets []*os.File // its first inherited descriptors
	gate    *gate      // way to the model's API; nil: the process connects to it itself
	seal    *seal.Seal // nil: the process is not sealed

	temporary string // directory that is removed when the process ends; "" if there is none
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
	if e.gated() {
		if p.gate, e, err = e.open(ctx, r); err != nil {
			return p, err
		}
	} else if r.Scope.Offline {
		return p, fmt.Errorf("%w: a job with network: none needs the gateway: ollim config set claude-code.gateway on, and no CLAUDE_CODE_USE_... in env", engine.ErrSetup)
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
	if p.gate != nil {
		rules.Sockets = append(rules.Sockets, p.gate.socket.Path)
	}
	p.seal = r.Scope.Seal.With(rules)
	return p, command.Try(ctx, "claude", p.env, p.seal, config, variable(p.env, "TMPDIR"))
}

// directory makes the directory of a process. It makes a new one each time: the command applies settings that it finds there, such as
// another address of the API, to which it would send the key, and processes that an earlier agent left can still write to its directory.
func (e *Engine) directory(ctx context.Context, r engine.Request, session string, from source) (string, error) {
	if from.grows {
		if err := command.EndAll(ctx, sessionVariable+"="+session); err != nil {
			return "", err
		}
		return os.MkdirTemp(e.Home.Run(r.Run.ID), "claude-")
	}
	config := e.config(session)
	return config, errors.Join(store.RemoveAll(ctx, config), store.MkdirOwn(config))
}

// rules returns what a sealed process may do besides what the programs of its run may do.
func (e *Engine) rules(r engine.Request, config string, from source) seal.Rules {
	rules := seal.Rules{Read: append(command.Files(e.Command), e.Self), Write: []string{config}}
	for _, name := range []string{"settings.json", "mcp.json", "env.sh"} {
		rules.Read = append(rules.Read, e.Home.Run(r.Run.ID, name))
	}
	if file := e.variable(command.Certificates); file != "" {
		rules.Read = append(rules.Read, file)
	}
	for _, list := range [][]string{rules.Read, rules.Write} {
		for i := range list {
			list[i] = command.Followed(list[i])
		}
	}
	if file := from.past.file; file != "" { // without links: a path that became one after it was found gets no access
		// and the directory that the command keeps beside the file
		rules.Read = append(rules.Read, file, strings.TrimSuffix(file, ".jsonl"))
		if from.grows {
			rules.Write = append(rules.Write, file)
		}
	}
	return rules
}

// start starts the command. If it is not sealed, it keeps the locks if this process dies; a sealed one ends with this process.
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
	p.gate.close()
	if p.temporary != "" {
		_ = store.Discard(ctx, p.temporary) // if this fails, it is removed with the record of the run
	}
}
