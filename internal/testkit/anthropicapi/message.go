package anthropicapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// message is a whole answer.
type message struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolUseBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type usage struct {
	In         int        `json:"input_tokens"`
	CacheWrite int        `json:"cache_creation_input_tokens"`
	CacheRead  int        `json:"cache_read_input_tokens"`
	Creation   cacheWrite `json:"cache_creation"`
	Out        int        `json:"output_tokens"`
	Tier       string     `json:"service_tier"`

	Server *serverUse `json:"server_tool_use,omitempty"`
}

// serverUse counts the uses of the service's own tools.
type serverUse struct {
	Searches int `json:"web_search_requests"`
	Fetches  int `json:"web_fetch_requests"`
}

type cacheWrite struct {
	FiveMinutes int `json:"ephemeral_5m_input_tokens"`
	OneHour     int `json:"ephemeral_1h_input_tokens"`
}

type errorBody struct {
	Type    string      `json:"type"`
	Error   errorDetail `json:"error"`
	Request string      `json:"request_id"`
}

type errorDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// message returns the message with which r answers q.
func (r Reply) message(q Request) message {
	content := []any{}
	if r.Thinking != "" {
		content = append(content, thinkingBlock{"thinking", r.Thinking, signature(r.Thinking)})
	}
	content = append(content, r.search()...)
	if r.Text != "" {
		content = append(content, textBlock{"text", r.Text})
	}
	for _, u := range r.ToolUses {
		input := json.RawMessage("{}")
		if u.Input != nil {
			input = apiserver.Encode(u.Input)
		}
		content = append(content, toolUseBlock{"tool_use", u.ID, u.Name, input})
	}
	u := r.Usage
	if u == (Usage{}) {
		u = Usage{In: q.tokens(), Out: max(1, len(apiserver.Encode(content))/bytesPerToken)}
	}
	stop := r.stopReason()
	return message{
		ID: unique("msg", q.ID), Type: "message", Role: "assistant", Model: q.Model, Content: content, StopReason: &stop,
		Usage: usage{u.In, u.CacheWrite, u.CacheRead, cacheWrite{FiveMinutes: u.CacheWrite}, u.Out, "standard", r.searches()},
	}
}

// search returns the blocks of a search by the service.
func (r Reply) search() []any {
	if r.searches() == nil {
		return nil
	}
	pages := []any{}
	for _, p := range r.Found {
		pages = append(pages, map[string]any{"type": "web_search_result", "title": p.Title, "url": p.URL, "page_age": p.Age, "encrypted_content": "eHl6"})
	}
	var result any = pages
	if r.SearchFail != "" {
		result = map[string]any{"type": "web_search_tool_result_error", "error_code": r.SearchFail}
	}
	return []any{
		toolUseBlock{"server_tool_use", "srvtoolu_1", "web_search", json.RawMessage(`{"query":"x"}`)},
		map[string]any{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": result},
	}
}

func (r Reply) searches() *serverUse {
	if len(r.Found) == 0 && r.SearchFail == "" {
		return nil
	}
	return &serverUse{Searches: 1}
}

// signature stands for the API's signature of its thoughts: every server of this kind refuses one that was changed.
func signature(thinking string) string {
	sum := sha256.Sum256([]byte("apitest " + thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// signed reports whether a block of thinking is unchanged. Its text may be omitted, as with the display "omitted".
func signed(b Block) bool {
	return b.Signature == signature(b.Text) || b.Text == "" && b.Signature != ""
}

// unique returns an id that differs from those of all other requests, on this server or another of the same
// conversation: claude joins messages by their ids.
func unique(kind, of string) string {
	sum := sha256.Sum256([]byte(of))
	return kind + "_01" + hex.EncodeToString(sum[:])[:22]
}
