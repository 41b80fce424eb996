package mcpclient

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/ollim/ollim/internal/engine"
)

// Set is the servers of one run. The names of its tools have the servers' prefixes.
type Set []*Client

// List returns the tools of all servers. Servers that must be asked for theirs are asked at the same time.
func (s Set) List(ctx context.Context) []engine.Tool {
	var asking sync.WaitGroup
	for _, c := range s {
		asking.Go(func() { c.List(ctx) })
	}
	asking.Wait()
	return s.Known()
}

// Known returns the tools as far as they are known.
func (s Set) Known() (list []engine.Tool) {
	for _, c := range s {
		for _, t := range c.Known() {
			t.Name = c.prefix() + t.Name
			list = append(list, t)
		}
	}
	return list
}

// Call uses a tool by its full name.
func (s Set) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	for _, c := range s {
		if rest, ours := strings.CutPrefix(name, c.prefix()); ours {
			return c.Call(ctx, rest, input)
		}
	}
	return engine.ToolResult{Text: "there is no server for " + name, IsError: true}
}

// Failures returns why servers could not be used since it was last called, by the names of the servers.
func (s Set) Failures() map[string][]string {
	all := map[string][]string{}
	for _, c := range s {
		if list := c.Failures(); len(list) > 0 {
			all[c.Server.Name] = list
		}
	}
	return all
}

// Close ends all servers, at the same time.
func (s Set) Close() {
	var ending sync.WaitGroup
	for _, c := range s {
		ending.Go(c.Close)
	}
	ending.Wait()
}
