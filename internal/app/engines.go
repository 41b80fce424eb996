package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/skill"
)

// engines returns a function that makes the engine of a name: claude-code, native, acp:NAME or script:FILE.
func (h Home) engines(atShell bool) func(string) (engine.Engine, error) {
	return func(name string) (engine.Engine, error) {
		if err := config.CheckEngine(name); err != nil {
			return nil, &config.Wrong{Reason: err.Error()}
		}
		switch name {
		case engine.ClaudeCode:
			c, err := h.claude(atShell)
			if err != nil {
				return nil, err // not c: an interface with a nil pointer is not nil
			}
			return c, nil
		case engine.Native:
			n, err := h.native(atShell)
			if err != nil {
				return nil, err
			}
			return n, nil
		}
		if agent, is := strings.CutPrefix(name, engine.ACP+":"); is {
			a, err := h.agent(agent, atShell)
			if err != nil {
				return nil, err
			}
			return a, nil
		}
		return h.script(strings.TrimPrefix(name, "script:"))
	}
}

// script returns the engine that plays a file, which is looked for in the data directory, then in the working directory.
func (h Home) script(path string) (engine.Engine, error) {
	if inside := h.Dir.Path(path); !filepath.IsAbs(path) && store.Exists(inside) {
		path = inside
	}
	s, err := script.Load(path)
	if faults := (yamldoc.Faults)(nil); errors.As(err, &faults) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s", engine.ErrSetup, path, store.Cause(err))
	}
	return &script.Engine{Home: h.Dir, Script: s, Now: h.app.Now, Sleep: h.app.Sleep}, nil
}

// grace is how long the claude command has for each step of its stop, from a request to the kill.
const grace = 5 * time.Second

func (h Home) claude(atShell bool) (*claudecode.Engine, error) {
	command := h.Config.Claude.Command
	if command == "" {
		err := &config.Wrong{Reason: "claude-code.command is not set"}
		return nil, Hint(err, "ollim config set claude-code.command \"$(command -v claude)\"")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := h.credentials(atShell)
	if err != nil {
		return nil, err
	}
	table, err := h.Models()
	if err != nil {
		return nil, err
	}
	env := slices.DeleteFunc(c.env(), func(entry string) bool {
		return strings.HasPrefix(entry, "OPENAI_") && !slices.Contains(c.settings, entry)
	})
	var secrets []string
	for _, entry := range slices.Concat(c.secrets, c.shell) {
		name, _, _ := strings.Cut(entry, "=")
		secrets = append(secrets, name)
	}
	return &claudecode.Engine{
		Command: command, Self: self, Secrets: secrets,
		Args: []string{"--data-dir", string(h.Dir), "--config", h.app.ConfigFile(h.Dir)},
		Env:  append(env, h.location()...),
		Home: h.Dir, AskServers: h.askServers, Located: h.app.located(),
		Effort: h.Config.Claude.Effort, Direct: h.Config.Claude.Gateway == config.Off, Disk: h.Disk,
		Grace: grace, Models: table, Sought: c.sought(h.app, keyName(config.Anthropic)),
	}, nil
}

// UntestedClaude returns a message if ollim was not tested with the version of the configured claude command. It returns "" if it was
// tested, if there is no such command, or if the command does not print its version.
func (h Home) UntestedClaude(ctx context.Context) string {
	if h.Config.Claude.Command == "" {
		return ""
	}
	found, err := h.claude(false)
	if err != nil {
		return ""
	}
	version, err := found.Installed(ctx)
	untested := claudecode.Untested(version)
	if err != nil || untested == "" {
		return ""
	}
	return fmt.Sprintf("claude %s %s; to install one that was tested: %s", version, untested, claudecode.Install)
}

// defaultModel returns the model that an engine asks if no job and no option names one; "" if there is none.
func (h Home) defaultModel(name string) string {
	switch name {
	case engine.ClaudeCode:
		return claudecode.DefaultModel
	case engine.Native:
		c := h.Config.Native
		if model, err := h.Config.Get("native.model"); err == nil && model.Origin == "default" && c.Provider == config.OpenAI {
			return ""
		}
		return c.Model
	}
	return ""
}

func (h Home) native(atShell bool) (*native.Engine, error) {
	return h.nativeBy(atShell, h.app.service)
}

// nativeBy returns the native engine with a service that a function makes from the settings, with the address that is in force, and the keys.
func (h Home) nativeBy(atShell bool, by func(config.Service, credentials) (native.Service, error)) (*native.Engine, error) {
	keys, err := h.credentials(atShell)
	if err != nil {
		return nil, err
	}
	table, err := h.Models()
	if err != nil {
		return nil, err
	}
	c := h.Config.Native
	var noModel error
	if h.defaultModel(engine.Native) == "" {
		noModel = Hint(&config.Wrong{Reason: "native.model is not set: " + c.Model + " is not a model of this provider"}, "ollim config set native.model MODEL")
		c.Model = ""
	}
	if c.BaseURL, err = h.app.address(c, keys); err != nil {
		return nil, err
	}
	service, err := by(c, keys)
	if err != nil {
		return nil, err
	}
	return &native.Engine{
		Sessions: h.Transcripts(), Objects: h.Objects,
		Service: service, Model: c.Model, NoModel: noModel, Models: table, MaxTokens: c.MaxTokens,
		Tools:   func(r engine.Request) native.BuiltIns { return h.builtIns(r) },
		Servers: func(r engine.Request) native.Servers { return h.servers(r) },
		Agents:  h.agents,
		Now:     h.app.Now, Locks: h.Disk.Locks, Sleep: h.app.Sleep, Random: h.app.Random,
	}, nil
}

// agents returns the subagents of agents/, without invalid ones.
func (h Home) agents() (list []engine.Subagent) {
	for _, name := range skill.AgentNames(h.Dir) {
		if a, err := skill.LoadAgent(h.Dir, name); err == nil {
			list = append(list, engine.Subagent{Name: a.Name, Description: a.Description, Prompt: a.Prompt, Model: a.Model, Tools: a.Tools})
		}
	}
	return list
}

// address returns where the service is: native.base-url, else ANTHROPIC_BASE_URL or OPENAI_BASE_URL of the credentials; "" is the
// provider's own.
func (a *App) address(c config.Service, keys credentials) (string, error) {
	name := strings.Replace(keyName(c.Provider), "API_KEY", "BASE_URL", 1)
	address := keys.get(name)
	if c.BaseURL != "" || address == "" {
		return c.BaseURL, nil
	}
	if err := config.CheckURL(address); err != nil {
		return "", &config.Wrong{Reason: fmt.Sprintf("%s: %v", keys.place(a, name), err)}
	}
	return address, nil
}

// options returns how the native engine reaches its service; its address also with an error. Only a service on this machine needs no key.
func (a *App) options(c config.Service, keys credentials) (provider.Options, error) {
	name := keyName(c.Provider)
	key := keys.get(name)
	if key == "" && !isLocal(c.BaseURL) {
		err := fmt.Errorf("%w: no key for %s: %s", engine.ErrKey, cmp.Or(c.BaseURL, c.Provider), keys.sought(a, name))
		return provider.Options{BaseURL: c.BaseURL}, keyHint(err, name)
	}
	return provider.Options{BaseURL: c.BaseURL, Key: key, KeyName: keys.place(a, name)}, nil
}

// service returns the API that the native engine talks to.
func (a *App) service(c config.Service, keys credentials) (s native.Service, err error) {
	o, err := a.options(c, keys)
	if err != nil {
		return s, err
	}
	return serviceOf(c, o), nil
}

// serviceOf returns the API of a service that is reached in a way.
func serviceOf(c config.Service, o provider.Options) native.Service {
	s := native.Service{Provider: provider.NewAnthropic(o), Name: c.Provider, Local: isLocal(c.BaseURL)}
	s.Searches = c.Searches(o.HasSearch)
	if c.Provider == config.OpenAI {
		s.Provider = provider.NewOpenAI(o)
		if u, err := url.Parse(o.BaseURL); err == nil && !o.TakesDocuments() {
			s.NoPDF = u.Host
		}
	}
	return s
}

// isLocal reports whether a service runs on this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// builtIns returns the native engine's own tools for one request. Its commands get the environment of all commands and the id of
// their run, never the keys.
func (h Home) builtIns(r engine.Request) *builtin.Box {
	env := withoutKeys(append(h.ProgramEnv(), r.Run.Env()...))
	if self, err := os.Executable(); err == nil { // cron's PATH does not have ollim
		for i, entry := range env {
			if strings.HasPrefix(entry, "PATH=") {
				env[i] = entry + string(os.PathListSeparator) + filepath.Dir(self)
			}
		}
	}
	box := &builtin.Box{
		Roots:     append([]policy.Root{{Dir: r.Scope.Root, Writable: true}}, r.Scope.Dirs...),
		Protected: r.Scope.Protected, Secrets: h.secrets(), Env: env, Hold: r.Run.Locks, Seal: r.Scope.Seal, Hints: r.Scope.Hints, Shared: r.Scope.Root != string(h.Dir),
	}
	for _, text := range r.Scope.Allow {
		if p, err := policy.Parse(text); err == nil { // an invalid pattern allows nothing
			box.Allow = append(box.Allow, p)
		}
	}
	box.Open()
	return box
}
