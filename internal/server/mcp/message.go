package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// message holds the fields of a line that the streams need; mcp-go parses all of it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type params struct {
	Arguments json.RawMessage `json:"arguments"` // of tools/call
	RequestID json.RawMessage `json:"requestId"` // of notifications/cancelled
}

// parse leaves absent or malformed fields empty; mcp-go then reports the error.
func parse(line []byte) (m message) {
	if json.Unmarshal(line, &m) != nil {
		return message{}
	}
	return m
}

func (m message) params() (p params) {
	if json.Unmarshal(m.Params, &p) != nil {
		return params{}
	}
	return p
}

// argumentsKey is the context key of a call's arguments, byte for byte, while mcp-go finds the tool. Its own copy is
// converted to float64, which corrupts large numbers.
type argumentsKey struct{}

func withArguments(ctx context.Context, m message) context.Context {
	raw := m.params().Arguments
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		raw = json.RawMessage("{}") // a call may omit the arguments of a tool without any
	}
	return context.WithValue(ctx, argumentsKey{}, raw)
}

func arguments(ctx context.Context) json.RawMessage {
	raw, _ := ctx.Value(argumentsKey{}).(json.RawMessage)
	return raw
}

// answer returns mcp-go's answer to a line, or nil if it needs none. It recovers from a panic, such as one in the list
// of tools.
func (c *conn) answer(ctx context.Context, m message, line []byte) (data []byte) {
	defer func() {
		if cause := recover(); cause != nil {
			c.warn(fmt.Sprintf("%s: crashed at %s: %s", m.Method, crashSite(), oneLine(cause)))
			data = m.failure("the server crashed: " + oneLine(cause))
		}
	}()
	reply := c.handle(ctx, line)
	if reply == nil {
		return nil
	}
	data, err := json.Marshal(reply)
	if err != nil {
		return m.failure(err.Error())
	}
	return data
}

// failure returns an error of the protocol, nil for a notification.
func (m message) failure(text string) []byte {
	if len(m.ID) == 0 {
		return nil
	}
	data, err := json.Marshal(mcp.NewJSONRPCError(mcp.NewRequestId(m.ID), mcp.INTERNAL_ERROR, text, nil))
	if err != nil {
		return nil // impossible: an id that was read as JSON, and texts
	}
	return data
}

// crashSite returns the file and line of the panic being recovered.
func crashSite() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for panicking := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicking && !inRuntime {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
		panicking = panicking || frame.Function == "runtime.gopanic"
		if !more {
			return "an unknown location"
		}
	}
}

func oneLine(v any) string { return plaintext.Line(fmt.Sprint(v)) }
