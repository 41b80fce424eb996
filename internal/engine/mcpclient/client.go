// Package mcpclient uses the tools of MCP servers: of programs that it starts, over their standard streams, and of servers with an
// address, over streamable HTTP. mcp-go speaks the protocol.
//
// A server is started when it is needed: when its tools are not known, or when one is called. What tools it has is kept in a file
// for a day, so that a run that calls none of them starts no server, and the model is offered the same tools in each run. A
// server that has ended is started again by the next call, a few times.
//
// A server is not trusted. It has its time for the start and for each call; names, descriptions, schemas and results are
// bounded, and secrets are replaced in all of them. A server that cannot be used fails nothing but calls of its tools: the model is
// offered tools of the names that the patterns hold, or one called unavailable, which say what is wrong.
package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
)

// Server is one server.
type Server struct {
	Name    string
	Command []string   // of a program; its first word is found in the PATH of Env
	Dir     string     // the program's working directory
	Env     []string   // the program's environment, whole
	Seal    *seal.Seal // of the program; nil: it is not sealed
	URL     string     // of a server with an address
	Headers []string   // of requests to it, "Name: value"
	Timeout time.Duration
	Wrong   error // why it cannot be used, such as a secret that is missing; may be nil
}

// Client uses one server for one run. It may be used from several goroutines at once.
type Client struct {
	Server   Server
	Patterns []string          // those in force, or those whose tools are offered
	Cache    string            // file in which the server's tools are kept; it is another one for another definition
	Secrets  plaintext.Secrets // are replaced in everything that the server says
	Now      func() time.Time
	Version  string // of this program
	Run      string // id of the run, for which a server that did not start is not tried again

	grace time.Duration // of each step of the end of the server's process; 0 is a second

	mu       sync.Mutex
	live     *conn // nil: not started, or ended
	starts   int
	tools    []tool
	listed   bool // tools are those of this run
	failures []string
}

// tool is one tool of a server.
type tool struct {
	Real        string          `json:"name"` // as the server has it
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`

	down string // why it cannot be used; "" for a tool that the server has offered
}

// page is what Cache holds.
type page struct {
	At    time.Time `json:"at"`
	Tools []tool    `json:"tools"`

	Failed string `json:"failed,omitempty"` // why the server could not be used in the run Run
	Run    string `json:"run,omitempty"`
}

const (
	cacheLife   = 24 * time.Hour
	mostStarts  = 3
	mostTools   = 256
	maxPurpose  = 4 << 10  // bytes of a description
	maxSchema   = 64 << 10 // bytes of a schema
	maxFullName = 64       // bytes of a name with the server's, the limit of OpenAI
	unavailable = "unavailable"
)

// List returns the tools that the patterns name, without the server's prefix. It starts the server if its tools are not known.
func (c *Client) List(ctx context.Context) []engine.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listed {
		c.listed = true
		p := c.kept()
		switch {
		case p.Failed != "" && p.Run == c.Run:
			c.tools = c.stubs(p.Failed)
		case p.Failed != "" || c.Now().Sub(p.At) > cacheLife:
			c.refresh(ctx)
		default:
			c.tools = p.Tools
		}
	}
	return c.offered()
}

// Known returns what List would return, as far as that is known without the server.
func (c *Client) Known() []engine.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listed {
		c.tools = c.kept().Tools
	}
	return c.offered()
}

// refresh asks the server for its tools.
func (c *Client) refresh(ctx context.Context) {
	live, err := c.connect(ctx)
	var list []tool
	if err == nil {
		list, err = live.list(ctx, c.Server.Timeout)
	}
	switch {
	case err == nil:
		c.keep(list)
	case ctx.Err() == nil: // else the run ends, and the server is not at fault
		p := page{At: c.Now(), Failed: c.fail(err), Run: c.Run}
		c.tools = c.stubs(p.Failed)
		c.write(p)
	}
}

// keep takes over the tools that the server has named. A name that holds a secret is not usable.
func (c *Client) keep(list []tool) {
	list = slices.DeleteFunc(list, func(t tool) bool { return c.clean(t.Real) != t.Real })
	for i := range list {
		t := &list[i]
		t.Description, _ = plaintext.First(c.clean(t.Description), maxPurpose)
		if schema := []byte(c.clean(string(t.Schema))); len(schema) > maxSchema || !isObject(schema) {
			t.Schema = json.RawMessage(`{"type":"object"}`)
		} else {
			t.Schema = schema
		}
	}
	c.tools = list[:min(len(list), mostTools)]
	c.write(page{At: c.Now(), Tools: c.tools})
}

// write writes the cache. Without it the server is asked again.
func (c *Client) write(p page) {
	if os.MkdirAll(filepath.Dir(c.Cache), 0o700) == nil {
		_ = store.WriteJSON(c.Cache, p, store.Buffered)
	}
}

// kept returns what an earlier turn has found.
func (c *Client) kept() (p page) {
	if p, _, _ = store.PeekJSON[page](c.Cache); p.At.After(c.Now()) {
		return page{}
	}
	return p
}

// stubs stand for the tools of a server that cannot be used.
func (c *Client) stubs(reason string) (list []tool) {
	for _, pattern := range c.Patterns {
		if name, ok := strings.CutPrefix(pattern, c.prefix()); ok && !strings.HasSuffix(name, "*") {
			list = append(list, tool{Real: name})
		}
	}
	if len(list) == 0 {
		list = []tool{{Real: unavailable}}
	}
	for i := range list {
		list[i].Description = "This tool cannot be used now: " + reason
		list[i].Schema, list[i].down = json.RawMessage(`{"type":"object"}`), reason
	}
	return list
}

func (c *Client) prefix() string { return "mcp__" + c.Server.Name + "__" }

// offered is the tools that a pattern names, under names that models and patterns take.
func (c *Client) offered() (list []engine.Tool) {
	allowed := c.allowed()
	for _, t := range c.tools {
		if name, ok := c.name(t, allowed); ok {
			list = append(list, engine.Tool{Name: name, Description: t.Description, Schema: t.Schema})
		}
	}
	slices.SortStableFunc(list, func(a, b engine.Tool) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b engine.Tool) bool { return a.Name == b.Name })
}

// allowed is the patterns. What is no pattern is left out.
func (c *Client) allowed() (p policy.Policy) {
	for _, text := range c.Patterns {
		if pattern, err := policy.Parse(text); err == nil {
			p.Allow = append(p.Allow, pattern)
		}
	}
	return p
}

// name returns the name under which a tool is offered, if it is.
func (c *Client) name(t tool, allowed policy.Policy) (string, bool) {
	name := plaintext.Word(t.Real)
	full := c.prefix() + name
	return name, len(full) <= maxFullName && (allowed.Names(full) || t.down != "")
}

// Call uses a tool by the name that List gave it.
func (c *Client) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	text, files, failed, err := c.call(ctx, name, input)
	if err != nil {
		if text = c.Server.Name + ": " + c.clean(err.Error()); ctx.Err() == nil {
			text += ". Go on without it if you can, and say so in your result."
		}
		return engine.ToolResult{Text: text, IsError: true}
	}
	r := engine.ToolResult{Text: bounded(c.clean(text)), IsError: failed}
	if len(files) > 0 {
		r.Source, r.More = files[0], files[1:]
	}
	return r
}

func (c *Client) call(ctx context.Context, name string, input json.RawMessage) (text string, files sources, failed bool, err error) {
	t, ok := c.find(name)
	switch {
	case !ok:
		return "", nil, false, fmt.Errorf("no tool %q", name)
	case t.down != "":
		return "", nil, false, errors.New(t.down)
	}
	live, err := c.start(ctx)
	if err != nil {
		return "", nil, false, err
	}
	result, err := live.call(ctx, c.Server.Timeout, t.Real, input)
	if err != nil {
		return "", nil, false, c.lost(ctx, live, err)
	}
	text, files = contentOf(result)
	return text, files, result.IsError, nil
}

func (c *Client) find(name string) (tool, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	allowed := c.allowed()
	i := slices.IndexFunc(c.tools, func(t tool) bool {
		offered, ok := c.name(t, allowed)
		return ok && offered == name
	})
	if i < 0 {
		return tool{}, false
	}
	return c.tools[i], true
}

// start returns the connection, which it makes if there is none.
func (c *Client) start(ctx context.Context) (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live, err := c.connect(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, errors.New(c.fail(err))
	}
	return live, err
}

// connect is start for a caller that has the lock.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	switch {
	case c.Server.Wrong != nil:
		return nil, c.Server.Wrong
	case c.live != nil:
		return c.live, nil
	case c.starts >= mostStarts:
		return nil, fmt.Errorf("the server has ended %d times in this run", c.starts)
	}
	c.starts++
	live, err := c.dial(ctx)
	if err == nil {
		c.live = live
	}
	return live, err
}

// lost decides what the error of a call says of the connection. Errors that the server itself has sent, and slow calls, leave it as it is.
func (c *Client) lost(ctx context.Context, live *conn, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if live.broken(err) {
		err = live.explain(err)
		if c.live == live {
			c.live = nil
		}
		go live.close()
		return errors.New(c.fail(err))
	}
	if errors.Is(err, errSlow) {
		return errors.New(c.fail(fmt.Errorf("no answer to a call within %s", c.Server.Timeout)))
	}
	return err
}

// fail notes why the server cannot be used, and returns it as text.
func (c *Client) fail(err error) string {
	reason := plaintext.Short(plaintext.Line(c.clean(err.Error())), 500)
	if !slices.Contains(c.failures, reason) {
		c.failures = append(c.failures, reason)
	}
	return reason
}

// Failures returns why the server could not be used since the last call of Failures.
func (c *Client) Failures() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.failures
	c.failures = nil
	return list
}

// clean makes what a server says fit for a model and a record.
func (c *Client) clean(text string) string {
	return c.Secrets.Hide(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd"))
}

// Close ends the connection and the server's process.
func (c *Client) Close() {
	c.mu.Lock()
	live := c.live
	c.live, c.starts, c.listed = nil, 0, false
	c.mu.Unlock()
	if live != nil {
		live.close()
	}
}

func isObject(raw []byte) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}
