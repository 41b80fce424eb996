package anthropicapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// check returns the first rule of the API that the request breaks, in the API's words as far as known, or "".
func (q Request) check() string {
	switch {
	case q.Header.Get("Anthropic-Version") == "":
		return "anthropic-version: header is required"
	case q.Model == "":
		return "model: Field required"
	case q.body.Messages == nil:
		return "messages: Field required"
	case len(q.Messages) == 0:
		return "messages: at least one message is required"
	}
	if n := q.Breakpoints(); n > maxBreakpoints {
		return fmt.Sprintf("A maximum of %d blocks with cache_control may be provided. Found %d.", maxBreakpoints, n)
	}
	turns, fault := q.turns()
	if fault != "" {
		return fault
	}
	return cmp.Or(q.checkThinking(), q.checkTools(), checkBlocks(turns), checkUnique(turns), checkPairs(turns), q.checkEnd(turns))
}

// checkLimit checks requests for an answer rather than a token count.
func (q Request) checkLimit() string {
	switch {
	case q.body.MaxTokens == nil:
		return "max_tokens: Field required"
	case q.MaxTokens < 1:
		return "max_tokens: Input should be greater than or equal to 1"
	}
	var thinking struct {
		Budget *int `json:"budget_tokens"`
	}
	if q.Thinking == nil || json.Unmarshal(q.Thinking, &thinking) != nil || thinking.Budget == nil {
		return ""
	}
	switch {
	case *thinking.Budget < minBudget:
		return fmt.Sprintf("thinking.enabled.budget_tokens: Input should be greater than or equal to %d", minBudget)
	case *thinking.Budget >= q.MaxTokens:
		return "`max_tokens` must be greater than `thinking.budget_tokens`"
	}
	return ""
}

// checkThinking checks the types of thinking that the models of Claude refuse; models of other names accept all.
func (q Request) checkThinking() string {
	var thinking struct {
		Type string `json:"type"`
	}
	if q.Thinking == nil || json.Unmarshal(q.Thinking, &thinking) != nil {
		return ""
	}
	refuse := map[string]string{
		"disabled":      `claude-((opus|sonnet)-5-5|fable|mythos)`,
		"enabled":       `claude-((opus|sonnet|haiku)-(4-[7-9]|5)|fable|mythos-5)`,
		"between_tools": `claude`,
	}[thinking.Type]
	sonnet := strings.Contains(q.Model, "sonnet-5-5")
	switch {
	case refuse == "" || !regexp.MustCompile(refuse+`(-|$)`).MatchString(q.Model):
		return ""
	case sonnet && thinking.Type == "between_tools":
		return ""
	case sonnet && thinking.Type == "disabled":
		return `To turn thinking off on this model, send "thinking": {"type": "between_tools"} instead of {"type": "disabled"}. ` +
			"The model does not think before responding. The short updates it writes between tool calls come back as thinking blocks."
	}
	return fmt.Sprintf(`"thinking.type.%s" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`,
		thinking.Type)
}

const (
	maxBreakpoints = 4
	minBudget      = 1024 // tokens
)

// Breakpoints returns the number of blocks and tools that carry cache_control.
func (q Request) Breakpoints() (n int) {
	count := func(content []Block) {
		for _, b := range content {
			if b.Cached {
				n++
			}
		}
	}
	count(q.system)
	for _, m := range q.Messages {
		count(m.Content)
	}
	for _, t := range q.Tools {
		if len(t.CacheControl) > 0 && !bytes.Equal(t.CacheControl, []byte("null")) {
			n++
		}
	}
	return n
}

// turn is one or more messages of the same role, which the API merges; messages of the role system are outside of
// turns.
type turn struct {
	role    string
	at      int // number of its first message
	content []placed
}

// placed is a block and its position in the request.
type placed struct {
	Block
	path string
}

func (q Request) turns() (turns []turn, fault string) {
	for i, m := range q.Messages {
		if m.effort != "" && (m.Role != "system" || !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, m.effort)) {
			return nil, fmt.Sprintf("messages.%d.output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max' on a `system` message", i)
		}
		// A system message may set the effort alone (the vendor's type BetaSystemMessageParam): claude sends one after a compaction.
		if len(m.Content) == 0 && m.effort == "" && (m.Role != "assistant" || i < len(q.Messages)-1) {
			return nil, fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		switch m.Role {
		case "user", "assistant":
		case "system":
			if i == 0 || q.Messages[i-1].Role == "assistant" {
				return nil, fmt.Sprintf("messages.%d: a `system` message must follow a `user` message", i)
			}
			continue
		default:
			return nil, fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		if len(turns) == 0 || turns[len(turns)-1].role != m.Role {
			turns = append(turns, turn{role: m.Role, at: i})
		}
		last := &turns[len(turns)-1]
		for j, b := range m.Content {
			last.content = append(last.content, placed{b, fmt.Sprintf("messages.%d.content.%d", i, j)})
		}
	}
	if turns[0].role != "user" {
		return nil, `messages: first message must use the "user" role`
	}
	return turns, ""
}

func (q Request) checkTools() string {
	name := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	seen := map[string]bool{}
	for i, t := range q.Tools {
		var schema struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(t.InputSchema, &schema)
		switch {
		case seen[t.Name]:
			return "tools: Tool names must be unique."
		case !name.MatchString(t.Name):
			return fmt.Sprintf("tools.%d.custom.name: String should match pattern '%s'", i, name)
		case strings.HasPrefix(t.Type, "web_search_") && t.Name != "web_search":
			return fmt.Sprintf("tools.%d.%s.name: Input should be 'web_search'", i, t.Type)
		case len(t.Allowed) > 0 && len(t.Blocked) > 0:
			return fmt.Sprintf("tools.%d.%s: Only one of allowed_domains and blocked_domains may be specified.", i, t.Type)
		case (t.Type == "" || t.Type == "custom") && schema.Type != "object":
			return fmt.Sprintf("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		seen[t.Name] = true
	}
	return ""
}

// checkBlocks checks each block alone.
func checkBlocks(turns []turn) string {
	id := regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	for _, t := range turns {
		for _, b := range t.content {
			switch {
			case b.Type == "":
				return b.path + ".type: Field required"
			case !slices.Contains(blockTypes(t.role), b.Type):
				return fmt.Sprintf("messages.%d: `%s` blocks cannot be in `%s` messages", t.at, b.Type, t.role)
			case b.Type == "text" && b.Text == "":
				return "messages: text content blocks must be non-empty"
			case b.Type == "text" && strings.TrimSpace(b.Text) == "":
				return "messages: text content blocks must contain non-whitespace text"
			case b.Type == "tool_use" && !id.MatchString(b.ID):
				return fmt.Sprintf("%s.tool_use.id: String should match pattern '%s'", b.path, id)
			case b.Type == "tool_use" && b.Name == "":
				return b.path + ".tool_use.name: Field required"
			case b.Type == "tool_use" && !isObject(b.Input):
				return b.path + ".tool_use.input: Input should be a valid dictionary"
			case b.Type == "image" || b.Type == "document" || b.Type == "tool_result":
				if fault := checkFile(b.path, append(b.Files, b.Block)); fault != "" {
					return fault
				}
			case b.Type == "thinking" && !signed(b.Block):
				return b.path + ": Invalid `signature` in `thinking` block"
			}
		}
	}
	return ""
}

// checkFile checks the images and documents among blocks: their types, by their content, and the size of an image in base64.
func checkFile(path string, list []Block) string {
	const largest = 5 << 20
	kinds := map[string][]string{"image": {"image/png", "image/jpeg", "image/gif", "image/webp"}, "document": {"application/pdf"}}
	for _, b := range list {
		wanted := kinds[b.Type]
		encoded := base64.StdEncoding.EncodedLen(len(b.File))
		switch {
		case wanted == nil:
		case !slices.Contains(wanted, b.MediaType):
			return fmt.Sprintf("%s.%s.source.base64.media_type: Input should be '%s'", path, b.Type, strings.Join(wanted, "', '"))
		case http.DetectContentType(b.File) != b.MediaType:
			return fmt.Sprintf("%s.%s.source.base64: The file was specified using the %s media type, but does not appear to be one", path, b.Type, b.MediaType)
		case b.Type == "image" && encoded > largest:
			return fmt.Sprintf("%s.image.source.base64: image exceeds 5 MB maximum: %d bytes > %d bytes", path, encoded, largest)
		}
	}
	return ""
}

func blockTypes(role string) []string {
	if role == "user" {
		return []string{"text", "image", "document", "search_result", "tool_result", "container_upload"}
	}
	return []string{"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result",
		"web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_use", "mcp_tool_result"}
}

func isObject(raw json.RawMessage) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(raw, &o) == nil && o != nil
}

// checkUnique checks that the ids of all tool uses of the conversation differ.
func checkUnique(turns []turn) string {
	seen := map[string]bool{}
	for _, t := range turns {
		for _, b := range t.content {
			if b.Type != "tool_use" {
				continue
			}
			if seen[b.ID] {
				return b.path + ": `tool_use` ids must be unique"
			}
			seen[b.ID] = true
		}
	}
	return ""
}

// checkPairs checks that every tool use is answered once, in the very next turn and before anything else there, and
// that there are no other results.
func checkPairs(turns []turn) string {
	open := turn{}
	for _, t := range append(slices.Clone(turns), turn{}) {
		if fault := checkResults(t, open.ids("tool_use")); fault != "" {
			return fault
		}
		answered := t.ids("tool_result")
		missing := slices.DeleteFunc(open.ids("tool_use"), func(id string) bool { return slices.Contains(answered, id) })
		if len(missing) > 0 {
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
				"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", open.at, strings.Join(missing, ", "))
		}
		open = t
	}
	return ""
}

func checkResults(t turn, asked []string) string {
	seen, late := map[string]bool{}, false
	for _, b := range t.content {
		switch {
		case b.Type != "tool_result":
			late = true
		case !slices.Contains(asked, b.ToolUseID):
			return fmt.Sprintf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
				"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", b.path, b.ToolUseID)
		case seen[b.ToolUseID]:
			return fmt.Sprintf("%s: each `tool_use` must have a single result. Found multiple `tool_result` blocks with id: %s", b.path, b.ToolUseID)
		case late:
			return b.path + ": `tool_result` blocks must come before all other content of the message"
		}
		seen[b.ToolUseID] = true
	}
	return ""
}

// ids returns the ids of the tool uses or of the tool results of a turn.
func (t turn) ids(kind string) (ids []string) {
	for _, b := range t.content {
		if b.Type == kind {
			ids = append(ids, cmp.Or(b.ToolUseID, b.ID))
		}
	}
	return ids
}

// checkEnd checks that the last message is the user's. Models up to 4.5 also accept the beginning of their answer.
func (q Request) checkEnd(turns []turn) string {
	last := turns[len(turns)-1]
	if last.role == "user" {
		return ""
	}
	if !regexp.MustCompile(`^claude-(3|(opus|sonnet|haiku)-4-([0-5](-|$)|\d{8}))`).MatchString(q.Model) {
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	}
	if n := len(last.content); n > 0 && strings.TrimRight(last.content[n-1].Text, " \t\n") != last.content[n-1].Text {
		return "messages: final assistant content cannot end with trailing whitespace"
	}
	return ""
}
