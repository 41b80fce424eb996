package acp

import (
	"encoding/json"
	"strings"
)

// Protocol is the version of the protocol that this package speaks.
const protocol = 1

type object map[string]any

// greeting is the answer to initialize.
type greeting struct {
	Version int `json:"protocolVersion"`
	Agent   struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	Can struct {
		Load   bool `json:"loadSession"`
		Prompt struct {
			Image bool `json:"image"`
		} `json:"promptCapabilities"`
		Session struct {
			Resume *struct{} `json:"resume"`
			Fork   *struct{} `json:"fork"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
}

// opened is the answer to session/new, load, resume and fork.
type opened struct {
	ID    string `json:"sessionId"`
	Modes struct {
		Current string `json:"currentModeId"`
	} `json:"modes"`
	Models struct {
		Current string `json:"currentModelId"`
	} `json:"models"`
	Options []option `json:"configOptions"`
}

// option is a setting that the session has.
type option struct {
	ID      string `json:"id"`
	Current any    `json:"currentValue"`
}

// optionMode and optionModel are the options that agents without modes and models of the protocol have for the same.
const (
	optionMode  = "mode"
	optionModel = "model"
)

// option returns the current value of an option; "" if the session has none with this id.
func (o opened) option(id string) (current string, found bool) {
	for _, x := range o.Options {
		if x.ID == id {
			current, _ = x.Current.(string)
			return current, true
		}
	}
	return "", false
}

// mode returns the mode of the session.
func (o opened) mode() string {
	if o.Modes.Current != "" {
		return o.Modes.Current
	}
	current, _ := o.option(optionMode)
	return current
}

// update is a notification session/update, and the description of a tool use in a permission request.
type update struct {
	Type    string          `json:"sessionUpdate"`
	Message string          `json:"messageId"`
	Content json.RawMessage `json:"content"` // a block of a message, or a list of what a tool returned

	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`

	Used int `json:"used"` // tokens in the conversation
	Size int `json:"size"` // tokens of the model's window
	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
	Mode    string   `json:"currentModeId"`
	Options []option `json:"configOptions"`
	Meta    struct {
		Delta struct {
			Data string `json:"data"`
		} `json:"terminal_output_delta"` // codex: a part of the output of a command
		Codex struct {
			Error struct{ Message, AdditionalDetails string } `json:"error"` // codex: it goes on without an end while its service is away
		} `json:"codex"`
	} `json:"_meta"`
}

// Types of updates.
const (
	agentChunk   = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
	toolCall     = "tool_call"
	toolUpdate   = "tool_call_update"
	usageUpdate  = "usage_update"
	optionUpdate = "config_option_update"
	infoUpdate   = "session_info_update"
)

// Statuses of a tool use that has ended.
const (
	completed = "completed"
	failed    = "failed"
)

// block is a block of content.
type block struct {
	Type    string `json:"type"` // text, or content and diff in what a tool returned
	Text    string `json:"text"`
	Path    string `json:"path"`
	Content struct {
		Text string `json:"text"`
	} `json:"content"`
}

// text returns the text of a message's block.
func (u update) text() string {
	var b block
	_ = json.Unmarshal(u.Content, &b) // other content has no text
	return b.Text
}

// parts returns what a tool returned.
func (u update) parts() (list []block) {
	_ = json.Unmarshal(u.Content, &list) // the content of a message is no list
	return list
}

// output returns the text of what a tool returned.
func (u update) output() string {
	var texts []string
	for _, b := range u.parts() {
		if b.Type == "content" && b.Content.Text != "" {
			texts = append(texts, b.Content.Text)
		}
	}
	if len(texts) > 0 {
		return strings.Join(texts, "\n")
	}
	var raw struct{ Output, Error string }
	if json.Unmarshal(u.Output, &raw) == nil && raw.Output+raw.Error != "" {
		return raw.Output + raw.Error
	}
	var server struct { // codex: the result of an MCP server
		Result struct{ Content []block }
		Error  struct{ Message string }
	}
	_ = json.Unmarshal(u.Output, &server) // another form has no text
	for _, b := range server.Result.Content {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n") + server.Error.Message
}

// trouble returns what the agent says of an error that it does not give up for; "" if the update is about something else.
func (u update) trouble() string {
	e := u.Meta.Codex.Error
	return strings.Trim(e.Message+": "+e.AdditionalDetails, ": ")
}

// ask is the request session/request_permission.
type ask struct {
	Session string `json:"sessionId"`
	Use     update `json:"toolCall"`
	Options []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	} `json:"options"`
}

// The kinds of options that answer only the present use. Those that last are never chosen.
const (
	allowOnce  = "allow_once"
	rejectOnce = "reject_once"
)

// choice returns the answer to the request: an option by its kind, or that the request is cancelled if the agent does not offer it.
func (a ask) choice(allow bool) object {
	want := rejectOnce
	if allow {
		want = allowOnce
	}
	for _, o := range a.Options {
		if o.Kind == want {
			return object{"outcome": object{"outcome": "selected", "optionId": o.ID}}
		}
	}
	return object{"outcome": object{"outcome": "cancelled"}}
}

// offers reports whether the request has an option that allows the present use only.
func (a ask) offers() bool {
	for _, o := range a.Options {
		if o.Kind == allowOnce {
			return true
		}
	}
	return false
}

// ended is the answer to session/prompt.
type ended struct {
	Stop  string `json:"stopReason"`
	Usage *spent `json:"usage"`
	Meta  struct {
		Quota struct {
			Count struct {
				In  int `json:"input_tokens"`
				Out int `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// spent is the usage of a turn. Input does not include what was read from a cache and written to it.
type spent struct {
	In         int `json:"inputTokens"`
	Out        int `json:"outputTokens"`
	CacheRead  int `json:"cachedReadTokens"`
	CacheWrite int `json:"cachedWriteTokens"`
	Thought    int `json:"thoughtTokens"`
}

// Reasons for which a turn has ended.
const (
	endTurn     = "end_turn"
	maxTokens   = "max_tokens"
	maxRequests = "max_turn_requests"
	refusal     = "refusal"
	cancelled   = "cancelled"
)
