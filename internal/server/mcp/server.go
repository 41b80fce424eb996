// Package mcp gives an engine that is another process access to the agent's tools: the Model Context Protocol over two
// streams, one JSON message per line. It translates and decides nothing: the tools of the run determine what it may use
// and do, and are asked at every list and every call.
//
// What a client may rely on:
//
//   - Nothing but messages of the protocol goes to the output.
//   - Calls run at the same time, and each gets one answer, except one that the client has cancelled, which gets none.
//   - A tool's failure, its crash included, is a result with isError, which the model reads. An error of the protocol is
//     kept for what is wrong with the request: an unknown tool, an unknown method, a line that is no JSON.
//   - A result is no longer than maxText; how much was cut is said at its end.
//
// At the end of the input, calls that still run have a second to come to an end, so that requests may come from a file or a
// pipe. Then, and at once when the context ends, they are cancelled; they have a second to obey, and the client has one to
// take the last answers. Nothing is written after Serve has returned.
//
// mcp-go speaks the protocol; the streams are ours (see conn.go). Its version is held at v0.49.0, the last one that does not
// import santhosh-tekuri/jsonschema, whose variables take four milliseconds in the start of every command of this binary.
package mcp

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/ollim/ollim/internal/engine"
)

// Server is the agent's tools as a server.
type Server struct {
	Tools   Tools
	Version string               // of this program, as clients show it
	Warn    func(message string) // one line, no newline; called concurrently; never nil
}

// Tools is the part of engine.Tools that a Server needs. Calls may run at the same time.
type Tools interface {
	List() []engine.Tool
	Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult
}

const name = "ollim" // tools appear to the model as mcp__ollim__…

// Serve answers a client until in or ctx ends, and returns nil at the end of in. It may leave operations running that
// cannot be ended: a pending Read of in or Write of out, and a tool that ignores its context.
func (s Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	mcpServer := server.NewMCPServer(name, s.Version, server.WithToolCapabilities(false))
	c := &conn{handle: mcpServer.HandleMessage, warn: s.Warn, answers: make(chan []byte), quit: make(chan struct{})}
	return c.serve(mcpServer.WithContext(ctx, &session{server: s}), in, out)
}

// session is mcp-go's view of the client. The library calls it for tools that may change.
type session struct {
	server      Server
	initialized atomic.Bool
}

var _ server.SessionWithTools = (*session)(nil)

func (s *session) SessionID() string                             { return "stdio" }
func (s *session) Initialize()                                   { s.initialized.Store(true) }
func (s *session) Initialized() bool                             { return s.initialized.Load() }
func (s *session) GetSessionTools() map[string]server.ServerTool { return s.server.tools() }

// NotificationChannel is for servers that send notifications. This server sends none.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return nil }

// SetSessionTools is for servers that add tools to a session. This server adds none.
func (s *session) SetSessionTools(map[string]server.ServerTool) {}
