package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/mcpclient"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// servers returns the MCP servers whose tools a request names. A server is started when it is needed.
func (h Home) servers(r engine.Request) (set mcpclient.Set) {
	for _, name := range policy.Servers(r.Scope.Servers) {
		set = append(set, sealed(h.server(name, r.Scope.Servers, r.Run), r.Scope.Seal, r.Scope.Protected, r.Scope.Dirs))
	}
	return set
}

// sealed seals the program of a server; by is nil in a run that is not sealed.
func sealed(c *mcpclient.Client, by *seal.Seal, protected []string, dirs []policy.Root) *mcpclient.Client {
	if s := &c.Server; by != nil {
		s.Seal = by.With(seal.Rules{Read: confine.Program(s.Command, s.Dir, s.Env, protected, dirs)})
	}
	return c
}

// askServers makes sure that the tools of the servers are known, so that the claude command, which does not wait long for them,
// offers them in its first request. It returns why servers cannot be used.
func (h Home) askServers(ctx context.Context, r engine.Request) map[string][]string {
	set := h.servers(r)
	defer set.Close()
	set.List(ctx)
	return set.Failures()
}

// server returns the client of one server for a run.
func (h Home) server(name string, patterns []string, run engine.Run) *mcpclient.Client {
	s, found := h.Config.Servers.Find(name)
	sum := sha256.Sum256([]byte(s.Definition()))
	c := &mcpclient.Client{
		Server: mcpclient.Server{
			Name: name, Command: s.Command, Dir: string(h.Dir), URL: s.URL, Timeout: s.Timeout,
			Env: append(withoutKeys(h.ProgramEnv()), run.Env()...),
		},
		Patterns: slices.DeleteFunc(slices.Clone(patterns), func(text string) bool { return !slices.Contains(policy.Servers([]string{text}), name) }),
		Cache:    h.Dir.State("cache", "mcp", s.Name+"-"+hex.EncodeToString(sum[:8])+".json"), Secrets: h.secrets(), Now: h.app.Now, Run: run.ID,
		Version: Version(),
	}
	if !found {
		c.Server.Wrong = &config.Wrong{Reason: "the server is not in mcp-servers of config.yaml"}
		return c
	}
	c.Server.Wrong = h.expand(&c.Server, s)
	return c
}

// expand adds the settings of a server that may refer to secrets.
func (h Home) expand(into *mcpclient.Server, s config.Server) error {
	secrets, err := h.app.loadSecrets()
	if err != nil {
		return err
	}
	text := func(t string) string {
		expanded, wrong := secrets.Expand(t)
		if wrong != nil && err == nil {
			err = &config.Wrong{Reason: wrong.Error()}
		}
		return expanded
	}
	into.URL = text(s.URL)
	for _, entry := range s.Env {
		into.Env = append(into.Env, text(entry))
	}
	for _, line := range s.Headers {
		into.Headers = append(into.Headers, text(line))
	}
	return err
}

// ServerFault returns why a server cannot be started, without trying to: a secret that is missing, or a program that is not there.
func (h Home) ServerFault(name string) error {
	c := h.server(name, nil, engine.Run{})
	if c.Server.Wrong != nil || c.Server.URL != "" || len(c.Server.Command) == 0 { // a server with neither is a fault of the file
		return c.Server.Wrong
	}
	return process.Find(c.Server.Command[0], c.Server.Dir, c.Server.Env)
}

// UnknownServers returns the MCP servers whose tools a job names and that are not configured.
func (h Home) UnknownServers(j job.Job) []string {
	return slices.DeleteFunc(policy.Servers(j.AllowedTools), func(name string) bool {
		_, found := h.Config.Servers.Find(name)
		return found
	})
}

// withoutKeys leaves the keys of engines out of an environment.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		return strings.HasPrefix(kv, "ANTHROPIC_API_KEY=") || strings.HasPrefix(kv, "OPENAI_API_KEY=")
	})
}

// serverTools holds the tools of one MCP server for the engine in another process. Failures go to the run's record.
type serverTools struct {
	ctx    context.Context
	client *mcpclient.Client
	set    *tools.Set // of the run
	warn   func(string)
}

// ServerTools returns the tools of a server for the run that OLLIM_RUN names. It offers those that the patterns name. The hook decides each
// use of the engine first. No hook decides the uses of a program that a command of the agent starts, so Call checks that the run may use
// the tool.
func (a *App) ServerTools(ctx context.Context, name string, patterns []string) (*serverTools, error) {
	h, err := a.Home()
	if err != nil {
		return nil, err
	}
	set, err := h.Tools()
	if err != nil {
		return nil, err
	}
	socket, _ := a.Lookup(engine.SocketVariable)
	run := engine.Run{ID: set.Run.ID, Socket: socket}
	if a.run == nil {
		return &serverTools{ctx, h.server(name, patterns, run), set, a.warn}, nil
	}
	run.Vars = a.run.Vars // this process is not sealed, but the run is
	return &serverTools{ctx, sealed(h.server(name, patterns, run), a.run.Seal, set.World.Protected(), set.Roots()[1:]), set, a.warn}, nil
}

// List returns the server's tools. It starts the server if they are not known.
func (s *serverTools) List() []engine.Tool {
	defer s.report()
	return s.client.List(s.ctx)
}

// Call uses a tool of the server.
func (s *serverTools) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	full := "mcp__" + s.client.Server.Name + "__" + name
	if ok, err := s.set.Has(full); err != nil || !ok {
		return engine.ToolResult{Text: full + ": this tool is not allowed here", IsError: true}
	}
	defer s.report()
	return s.client.Call(ctx, name, input)
}

// Close ends the server.
func (s *serverTools) Close() { s.client.Close() }

func (s *serverTools) report() {
	for _, reason := range s.client.Failures() {
		e := runlog.Event{Type: runlog.ServerFailed, Tool: s.client.Server.Name, Text: reason, IsError: true}
		if err := s.set.Run.Event(context.WithoutCancel(s.ctx), e); err != nil {
			s.warn(err.Error())
		}
	}
}
