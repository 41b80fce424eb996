package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
)

const (
	maxMessage = 32 << 20        // bytes of a message of a server
	grace      = time.Second     // of each step of the end of a server's process
	soon       = time.Second / 2 // in which a process that breaks its pipe ends
)

var (
	errSlow  = errors.New("no answer in time")
	errStuck = errors.New("the server takes no messages")
)

// conn is a connection to a server that has answered.
type conn struct {
	client    *client.Client
	transport transport.Interface
	peer      *process.Peer // nil for a server with an address
	in        *lines        // of peer
	secrets   plaintext.Secrets
	grace     time.Duration
}

// dial starts the server, or reaches it, and exchanges the first messages with it.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	ctx, stop := context.WithTimeoutCause(ctx, c.Server.Timeout, errSlow)
	defer stop()
	live, err := c.open()
	if err != nil {
		return nil, err
	}
	live.client = client.NewClient(live.transport)
	err = live.client.Start(context.WithoutCancel(ctx))
	if err == nil {
		var hello mcp.InitializeRequest
		hello.Params.ClientInfo = mcp.Implementation{Name: "ollim", Version: c.Version}
		hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
		_, err = live.client.Initialize(ctx, hello)
	}
	if err == nil {
		return live, nil
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		err = fmt.Errorf("the server did not start within %s", c.Server.Timeout)
	}
	err = live.explain(err)
	live.close()
	return nil, err
}

// open makes the transport.
func (c *Client) open() (*conn, error) {
	s := c.Server
	if s.URL != "" {
		t, err := transport.NewStreamableHTTP(s.URL, transport.WithHTTPBasicClient(web(s.Headers)), transport.WithHTTPLogger(silent{}))
		return &conn{transport: streamable{t}, grace: cmp.Or(c.grace, grace)}, err
	}
	peer, err := process.Open(process.Call{Argv: s.Command, Env: s.Env, Dir: s.Dir, Tied: true, Seal: s.Seal})
	if err != nil {
		return nil, err
	}
	in := &lines{Reader: peer.Out, most: maxMessage}
	t := transport.NewIO(in, peer.In, nil)
	transport.WithCommandLogger(silent{})(t)
	return &conn{transport: stdio{t}, peer: peer, in: in, secrets: c.Secrets, grace: cmp.Or(c.grace, grace)}, nil
}

// web returns an HTTP client that adds headers to its requests. It follows no redirect, which would carry them to another host.
func web(headers []string) *http.Client {
	add := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ":")
		add.Add(name, strings.TrimSpace(value))
	}
	return &http.Client{
		Transport:     withHeaders{add},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type withHeaders struct{ add http.Header }

func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range w.add {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", "ollim")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{&lines{Reader: resp.Body, most: maxMessage}, resp.Body}
	}
	return resp, err
}

// lines ends a stream with an error at a line that is too long, which the library would keep whole.
type lines struct {
	io.Reader
	most, length int

	over atomic.Bool // there was one
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		l.length = n - at - 1
	} else {
		l.length += n
	}
	if l.length > l.most {
		l.over.Store(true)
		return 0, fmt.Errorf("a message of more than %d bytes", l.most)
	}
	return n, err
}

// silent keeps the library's logs out of our standard error.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

// stdio and streamable are the library's transports with calls that the server is told to cancel.
type (
	stdio      struct{ *transport.Stdio }
	streamable struct{ *transport.StreamableHTTP }
)

// SendRequest sends a request and returns the response.
func (t stdio) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return send(ctx, t.Stdio, r)
}

// SendRequest sends a request and returns the response.
func (t streamable) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return send(ctx, t.StreamableHTTP, r)
}

// send returns when ctx ends, even if the server reads nothing, and then tells the server that the call is cancelled.
func send(ctx context.Context, t transport.Interface, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	type answer struct {
		response *transport.JSONRPCResponse
		err      error
	}
	done := make(chan answer, 1)
	go func() {
		response, err := t.SendRequest(ctx, r)
		done <- answer{response, err}
		if ctx.Err() != nil && r.Method == string(mcp.MethodToolsCall) {
			note := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
			note.Method = "notifications/cancelled"
			note.Params.AdditionalFields = map[string]any{"requestId": r.ID.Value(), "reason": context.Cause(ctx).Error()}
			late, stop := context.WithTimeout(context.WithoutCancel(ctx), soon)
			defer stop()
			_ = t.SendNotification(late, note) // a server that takes none does not matter
		}
	}()
	select {
	case a := <-done:
		return a.response, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done:
		return a.response, a.err
	case <-time.After(soon):
		return nil, errStuck
	}
}

// list returns the server's tools.
func (l *conn) list(ctx context.Context, limit time.Duration) (all []tool, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, limit, errSlow)
	defer stop()
	cursor := ""
	for n := 1; ; n++ {
		params := map[string]string{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		r, err := l.transport.SendRequest(ctx, transport.JSONRPCRequest{
			JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(fmt.Sprintf("list-%d", n)), Method: string(mcp.MethodToolsList), Params: params,
		})
		if err == nil && r.Error != nil {
			err = errors.New(r.Error.Message)
		}
		var page struct {
			Tools []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Schema      json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
			Next string `json:"nextCursor"`
		}
		if err == nil {
			err = json.Unmarshal(r.Result, &page)
		}
		if err != nil {
			return nil, l.explain(fmt.Errorf("its tools cannot be listed: %w", err))
		}
		for _, t := range page.Tools {
			all = append(all, tool{Real: t.Name, Description: t.Description, Schema: t.Schema})
		}
		if cursor = page.Next; cursor == "" || len(all) > mostTools {
			return all, nil
		}
	}
}

// call uses a tool.
func (l *conn) call(ctx context.Context, limit time.Duration, name string, input json.RawMessage) (*mcp.CallToolResult, error) {
	ctx, stop := context.WithTimeoutCause(ctx, limit, errSlow)
	defer stop()
	r, err := l.client.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: input}})
	if err != nil && !errors.Is(err, errStuck) && errors.Is(context.Cause(ctx), errSlow) {
		err = errSlow
	}
	return r, err
}

// broken reports whether an error means that the connection cannot be used any more.
func (l *conn) broken(err error) bool {
	if l.peer == nil {
		return errors.Is(err, transport.ErrSessionTerminated)
	}
	return errors.Is(err, transport.ErrTransportClosed) || errors.Is(err, errStuck) || strings.Contains(err.Error(), "failed to write request")
}

// explain adds to an error what the server's process has said, and leaves out addresses, which may hold secrets.
func (l *conn) explain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("no connection: %w", wrapped.Err)
	}
	switch {
	case errors.Is(err, transport.ErrLegacySSEServer):
		err = errors.New("no MCP server at this address, or one that has only the SSE transport of 2024")
	case errors.Is(err, transport.ErrAuthorizationRequired):
		err = errors.New("the server requires authorization: set mcp-servers.NAME.headers")
	}
	if l.peer == nil {
		return err
	}
	if l.in.over.Load() {
		return fmt.Errorf("it sent a message of more than %d bytes", maxMessage)
	}
	if end := l.peer.End(soon); end != "" {
		err = errors.New("the server has ended: " + end)
	}
	if said, cut := l.peer.Stderr(); said != "" {
		err = fmt.Errorf("%w: %s", err, plaintext.Line(l.secrets.HideCut(said, cut, false)))
	}
	return err
}

func (l *conn) close() {
	if l.client != nil {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = l.client.Close() // the connection is not used again
		}()
		select {
		case <-ended:
		case <-time.After(l.grace):
		}
	}
	if l.peer != nil {
		l.peer.Close(l.grace)
	}
}
