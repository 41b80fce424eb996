package claudecode

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
)

// What the command itself does with a turn that was cut off (2.1.197): one in which the model had begun it closes, when the
// session is resumed, with an answer of its own making, "No response requested."; the prompt of one without any answer it joins
// with the next prompt; and a fork holds whatever there is of a turn under way. Where it would not do, the flag
// --resume-session-at names the answer after which the history is to be cut off. In the transcript the next turn then follows
// that answer, and what was cut off stays beside it.

// record is a line of the command's transcript. It is the command's own format: what we do not understand we leave to it.
type record struct {
	Type      string `json:"type"`
	UUID      string `json:"uuid"`
	Parent    string `json:"parentUuid"`
	Sidechain bool   `json:"isSidechain"` // of a subagent
	Meta      bool   `json:"isMeta"`      // said by the command, not by us
	Summary   bool   `json:"isCompactSummary"`
	APIError  bool   `json:"isApiErrorMessage"`
	Message   struct {
		Model      string          `json:"model"`
		StopReason string          `json:"stop_reason"`
		Usage      usage           `json:"usage"`
		Content    json.RawMessage `json:"content"`
	} `json:"message"`
}

// synthetic is the model of an answer that the command made up.
const synthetic = "<synthetic>"

// ends reports whether a turn may end with a record.
func (r record) ends() bool {
	return r.Type == "assistant" && !r.APIError && r.Message.StopReason != "" && r.Message.StopReason != "tool_use"
}

// isPrompt reports whether a record is something that we said.
func (r record) isPrompt() bool {
	if r.Type != "user" || r.Meta || r.Summary {
		return false
	}
	var parts []block
	return json.Unmarshal(r.Message.Content, &parts) != nil ||
		!slices.ContainsFunc(parts, func(b block) bool { return b.Type == "tool_result" })
}

// isAnswer reports whether a record is the model's.
func (r record) isAnswer() bool {
	return r.Type == "assistant" && !r.APIError && r.Message.Model != synthetic
}

// resume returns the flags that go on from a session at the end of a turn, in it or under another id, and the session's history.
// A branch leaves out the last turn unless it is complete; otherwise only what the command would join with the next prompt is left
// out. A session in which no prompt was ever answered is begun again.
func (e *Engine) resume(session, id string, branch bool) ([]string, history, error) {
	h, err := e.history(session)
	if err != nil {
		return nil, h, err
	}
	if branch && !h.found { // the command finds it a moment later, when the first turn is under way
		return nil, h, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, session)
	}
	if h.unanswered {
		return []string{"--session-id", id}, history{}, e.setAside(id)
	}
	args := []string{"--resume", session}
	if id != session {
		args = append(args, "--session-id", id, "--fork-session")
	}
	if h.end != "" && (branch || h.merges) {
		args = append(args, "--resume-session-at", h.end)
	}
	return args, h, nil
}

// setAside renames a session's transcripts, so that the command takes the id again.
func (e *Engine) setAside(id string) error {
	for _, path := range e.transcripts(id) {
		if err := os.Rename(path, path+".unanswered"); err != nil {
			return err
		}
	}
	return nil
}

// step is what is remembered of a record: a transcript may be large.
type step struct {
	id, parent           string
	ends, prompt, answer bool
}

func (r record) step() step {
	return step{id: r.UUID, parent: r.Parent, ends: r.ends(), prompt: r.isPrompt(), answer: r.isAnswer()}
}

// history is how far a session has come.
type history struct {
	end        string // the answer that ends the last complete turn; "" if that cannot be told
	merges     bool   // the command would join the last prompt with the next
	unanswered bool   // no prompt has had an answer
	found      bool   // there is a transcript
	tokens     int    // of the conversation, as the service has counted them
}

// history reads a session's transcript. One that is not there is left to the command, which says so.
func (e *Engine) history(id string) (h history, err error) {
	paths := e.transcripts(id)
	if len(paths) == 0 {
		return h, nil
	}
	h.found = true
	records, leaf, summary := map[string]step{}, step{}, false
	for r, err := range store.Lines[record](paths[0], nil) {
		if err != nil {
			return h, err
		}
		if r.Summary { // the chain of parents leads around it, the model does not
			clear(records)
			leaf, summary = step{}, true
			h.tokens = ownTokens + len(r.Message.Content)/engine.Uncounted
		}
		if r.UUID == "" || r.Sidechain {
			continue
		}
		at := r.step()
		records[r.UUID] = at
		if n := r.Message.Usage.tokens(); n > 0 {
			h.tokens = n
		}
		if r.Type == "user" || r.Type == "assistant" {
			leaf = at
		}
	}
	if leaf.ends {
		h.end = leaf.id
		return h, nil
	}
	open, begun, answers := true, false, summary // the turn at the end; the model in it; the model at all
	for at, known := leaf, leaf.id != ""; known; at, known = records[at.parent] {
		delete(records, at.id) // a damaged file may have a circle of parents
		answers = answers || at.answer
		begun = begun || open && at.answer
		open = open && !at.prompt
		if !open && at.ends {
			h.end, h.merges = at.id, !begun
			return h, nil
		}
	}
	h.unanswered = !answers
	return h, nil
}
