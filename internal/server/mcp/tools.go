package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
)

// tools returns the current tools by name. It is never nil, so that an empty list is [] and not null.
func (s Server) tools() map[string]server.ServerTool {
	tools := map[string]server.ServerTool{}
	for _, t := range s.Tools.List() {
		tools[t.Name] = server.ServerTool{Tool: s.described(t), Handler: s.call}
	}
	return tools
}

// described returns a tool as clients see it. Clients assume the worst for an absent hint: destructive and open-world.
func (s Server) described(t engine.Tool) mcp.Tool {
	tool := mcp.NewToolWithRawSchema(t.Name, t.Description, s.schema(t))
	tool.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint:    mcp.ToBoolPtr(false), // Claude runs read-only tools at the same time, so this also keeps their order
		DestructiveHint: mcp.ToBoolPtr(t.Effect == engine.Deletes),
		IdempotentHint:  mcp.ToBoolPtr(false),
		OpenWorldHint:   mcp.ToBoolPtr(t.Effect == engine.Sends),
	}
	return tool
}

// schema returns the tool's schema. One that is not a JSON object is replaced, because it would make the whole list
// unreadable.
func (s Server) schema(t engine.Tool) json.RawMessage {
	var object map[string]json.RawMessage
	if len(t.Schema) > 0 {
		err := json.Unmarshal(t.Schema, &object)
		if err == nil && object != nil {
			return t.Schema
		}
		s.Warn(fmt.Sprintf("tool %s: its schema is not a JSON object, so the tool is not offered", t.Name))
	}
	return json.RawMessage(`{"type":"object"}`)
}

// call runs a tool for mcp-go. A Go error would become an error of the protocol, which the model may not see.
func (s Server) call(ctx context.Context, r mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Warn(fmt.Sprintf("tool %s: crashed at %s: %s", r.Params.Name, crashSite(), oneLine(cause)))
			result = mcp.NewToolResultError(clip(fmt.Sprintf("the tool %s crashed: %v", r.Params.Name, cause)))
		}
	}()
	answer := s.Tools.Call(ctx, r.Params.Name, arguments(ctx))
	if answer.IsError {
		return mcp.NewToolResultError(clip(answer.Text)), nil
	}
	result = mcp.NewToolResultText(clip(answer.Text))
	for _, s := range append([]*transcript.Source{answer.Source}, answer.More...) {
		if s != nil && strings.HasPrefix(s.MediaType, "image/") {
			result.Content = append(result.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(s.Content), s.MediaType))
		}
	}
	return result, nil
}

// maxText is the maximum length of a tool's answer, in UTF-16 units, including the note about the cut. Claude 2.1.197
// writes a longer one to a file and shows the model only its beginning and its path, which a run may not read.
// (Measured: 50,000 units pass, 50,001 do not. Below that, claude does not count tokens either.)
const maxText = 50_000

const cutNote = "\n[%d more characters omitted]"

func clip(text string) string {
	if len(text) <= maxText { // a text has at most as many units as bytes
		return text
	}
	space := maxText - len(cutNote) - 20 // more than the digits of any number
	units, cut := 0, 0
	for i, r := range text {
		if units <= space {
			cut = i // not after it: this character may have two units
		}
		if units += utf16.RuneLen(r); units > maxText {
			return text[:cut] + fmt.Sprintf(cutNote, utf8.RuneCountInString(text[cut:]))
		}
	}
	return text
}
