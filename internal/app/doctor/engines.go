package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/acp"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

// engines checks the configured engine and those that jobs name, as automatic runs use them, and again with cron's environment if that
// makes a difference.
func (e *examination) engines(ctx context.Context) string {
	if e.home.Config.Engine == "" {
		e.fail("ollim init; or: ollim config set engine claude-code", "no engine is configured")
		return ""
	}
	var well []string
	for _, name := range slices.Sorted(maps.Keys(e.engineNames())) {
		found, err := e.home.Runner(false).Engines(name)
		if err != nil {
			if e.App.CheckSecrets() == nil { // else the check "secrets" has reported it
				e.engineFault(name, err)
			}
			continue
		}
		before := len(e.list)
		text := e.engine(ctx, name, found)
		if under := e.underCron(name); len(e.list) == before && under.differs(found) {
			e.name += " under cron"
			if under.err != nil {
				e.engineFault(name, under.err)
			} else {
				e.engine(ctx, name, under.Engine)
			}
			e.name = "engine"
		}
		well = append(well, text)
	}
	return strings.Join(well, ", ")
}

// engineNames returns the configured engine and those that jobs name.
func (e *examination) engineNames() map[string]bool {
	names := map[string]bool{}
	if e.home.Config.Engine != "" {
		names[e.home.Config.Engine] = true
	}
	for _, j := range e.enabled() {
		if name := cmp.Or(j.Engine, e.home.Config.Engine); name != "" {
			names[name] = true
		}
	}
	return names
}

func (e *examination) engineFault(name string, err error) {
	e.fault(fmt.Errorf("%s: %w", name, err), "")
}

// engine checks one engine and describes it.
func (e *examination) engine(ctx context.Context, name string, found engine.Engine) string {
	switch found := found.(type) {
	case *claudecode.Engine:
		return e.claude(ctx, found)
	case *acp.Engine:
		return e.agent(ctx, name, found)
	case *native.Engine:
		if found.NoModel != nil {
			e.engineFault(name, found.NoModel)
		}
		return name + " " + found.Model
	}
	return name
}

// claude asks the command for its version and its login. If the version is not known to do what ollim relies on, it tests that.
func (e *examination) claude(ctx context.Context, c *claudecode.Engine) string {
	version, err := c.Version(ctx)
	if err != nil {
		e.engineFault("claude-code", app.Hint(err, "install it, then: ollim config set claude-code.command \"$(command -v claude)\"; its environment is env in config.yaml"))
		return ""
	}
	if untested := claudecode.Untested(version); untested != "" {
		e.warn(claudecode.Install, "claude %s %s", version, untested)
	}
	trial := *c
	trial.Disk.Warn = func(message string) { e.warn(e.cacheRemedy(), "%s", message) }
	switch known, err := trial.ContractOf(ctx, version); {
	case known.Fault != "":
		e.fail(claudecode.Install, "claude %s does not do what ollim relies on: %s", known.Version, known.Fault)
		return ""
	case err != nil:
		e.engineFault("claude-code", e.hintCache(err))
		return ""
	}
	e.fault(c.Writable(), "make that directory writable, or set HOME or CLAUDE_CONFIG_DIR in env of config.yaml")
	method, err := c.Login(ctx)
	switch {
	case errors.Is(err, engine.ErrNoKey):
		e.fault(fmt.Errorf("claude is not logged in: %s", c.Sought), "claude auth login; or: ollim secret set engine.ANTHROPIC_API_KEY")
	case err != nil:
		e.warn("claude update", "cannot find out whether claude is logged in: %v", err)
	}
	return fmt.Sprintf("claude-code: claude %s, logged in by %s", version, method)
}

// agent lets an agent that speaks ACP try a command that is refused, and says whether its version was tested.
func (e *examination) agent(ctx context.Context, name string, a *acp.Engine) string {
	version, fault, err := a.Try(ctx)
	if fault != "" {
		e.fail(a.Profile.Install, "%s does not do what ollim relies on: %s", strings.TrimSpace(name+" "+version), fault)
		return ""
	}
	if err != nil {
		e.engineFault(name, app.Hint(err, "%s", cmp.Or(a.Profile.Install, "see its own documentation: the command must speak the Agent Client Protocol on its standard streams")))
		return ""
	}
	if untested := a.Untested(version); untested != "" {
		e.warn(cmp.Or(a.Profile.Install, "set acp."+a.Name+".profile"), "%s", strings.Join(strings.Fields(name+" "+version+" "+untested), " "))
	}
	if missing := a.NoKey(); missing != "" {
		e.warn("ollim secret set engine."+a.Profile.Keys[0], "%s has no key: %s", name, missing)
	}
	return fmt.Sprintf("%s: %s, %s", name, cmp.Or(version, "no version"), map[engine.Asks]string{
		engine.AsksAll:     "asks before every use of a tool",
		engine.AsksEffects: "asks before uses of tools that change something",
		engine.AsksSandbox: "asks before commands that leave its sandbox",
		engine.AsksNothing: "what it asks about is not known",
	}[a.Guarantees("").Asks])
}

// cache returns the directory in which the claude command is tested, and in which the result is kept.
func (e *examination) cache() string { return filepath.Dir(e.home.Dir.ClaudeContract()) }

func (e *examination) cacheRemedy() string {
	return "free disk space, or make " + e.cache() + " a directory that you can write to: df -h " + e.cache()
}

// hintCache adds the remedy to an error that is about a file of the cache.
func (e *examination) hintCache(err error) error {
	path := ""
	if failed, ok := errors.AsType[*store.NotWritten](err); ok {
		path = failed.Path
	} else if failed, ok := errors.AsType[*fs.PathError](err); ok {
		path = failed.Path
	}
	if path == e.cache() || strings.HasPrefix(path, e.cache()+"/") {
		return app.Hint(err, "%s", e.cacheRemedy())
	}
	return err
}

// cronEngine is an engine made with cron's environment.
type cronEngine struct {
	engine.Engine
	err error
}

// underCron makes an engine with cron's environment.
func (e *examination) underCron(name string) cronEngine {
	base, err := e.App.UserHome()
	if err != nil {
		return cronEngine{err: err}
	}
	env := variables(process.CronEnv(base))
	bare := &app.App{
		Machine: e.App.Machine, Warn: e.App.Warn, Commands: e.App.Commands,
		DataDir: string(e.home.Dir), ConfigPath: e.App.ConfigFile(e.home.Dir),
	}
	bare.Lookup = func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	home, err := bare.Home()
	if err != nil {
		return cronEngine{err: err}
	}
	found, err := home.Runner(false).Engines(name)
	return cronEngine{found, err}
}

// differs reports whether the engine may behave differently than in this environment.
func (c cronEngine) differs(here engine.Engine) bool {
	if c.err != nil {
		return true
	}
	one, ok := here.(*claudecode.Engine)
	other, also := c.Engine.(*claudecode.Engine)
	return ok && also && !maps.Equal(variables(one.Env), variables(other.Env))
}

// variables maps the variables of an environment to their values; of two with one name the last counts.
func variables(env []string) map[string]string {
	values := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	return values
}

// lost reports whether an engine finds that a session is gone.
func (e *examination) lost(name, session string) bool {
	found, err := e.home.Runner(false).Engines(name)
	if err == nil {
		_, err = found.Plan(engine.Request{Session: engine.Session{ID: session, Fork: true}}, noTools{})
	}
	return errors.Is(err, engine.ErrSessionUnknown)
}

type noTools struct{ engine.Tools }

func (noTools) List() []engine.Tool { return nil }

// sessions looks for sessions that are gone, and for those that no engine can continue. One of another engine is carried over by the
// next turn.
func (e *examination) sessions(context.Context) string {
	current, err := e.home.Sessions.Current()
	e.fault(err, "")
	engines := map[string]string{"": e.home.Config.Engine}
	for _, j := range e.enabled() {
		if j.Mode() == job.Persistent {
			engines[j.ID] = cmp.Or(j.Engine, e.home.Config.Engine)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(current)) {
		routine := current[id]
		want, used := engines[routine]
		want = engine.Kind(want)
		name := app.NameOf(routine).Text
		if holder := engine.Holder(id); used && holder == "" {
			e.fail("start a new session: ollim session clear "+name, "the id of the session %s, %q, belongs to no engine", name, id)
		} else if used && holder == want && e.lost(engines[routine], id) {
			e.warn("restore its file; or start a new session: ollim session clear "+name, "the session %s, %s, is unknown to the engine %s", name, id, want)
		}
	}
	return plaintext.Count(len(current), "session")
}
