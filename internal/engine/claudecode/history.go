package claudecode

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
)

// What the command does with a turn that was cut off (2.1.197): if the model had begun to answer, it closes the turn, when the session
// is resumed, with an answer that it makes up, "No response requested."; if not, it joins the prompt with the next one. A fork holds
// what there is of a turn in progress. Where that is wrong, the flag --resume-session-at names the answer after which the history is
// cut off. The next turn then follows that answer in the transcript, and the lines of the other turn are ignored.

// record is a line of the command's transcript, as far as we read it.
type record struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Cwd       string    `json:"cwd"`
	UUID      string    `json:"uuid"`
	SessionID string    `json:"sessionId"`
	Parent    string    `json:"parentUuid"`
	Before    string    `json:"logicalParentUuid"` // of the line after a compaction
	Sidechain bool      `json:"isSidechain"`       // of a subagent
	Meta      bool      `json:"isMeta"`            // from the command, not from us
	Summary   bool      `json:"isCompactSummary"`
	APIError  bool      `json:"isApiErrorMessage"`
	spent               // of a line of the type cost-state

	Compact struct {
		Kept struct {
			UUIDs []string `json:"uuids"`
		} `json:"preservedMessages"`
	} `json:"compactMetadata"` // of the line before a summary
	Message struct {
		ID         string          `json:"id"`
		Role       string          `json:"role"`
		Model      string          `json:"model"`
		StopReason string          `json:"stop_reason"`
		Usage      usage           `json:"usage"`
		Content    json.RawMessage `json:"content"`
	} `json:"message"`
}

// synthetic is the model of an answer that the command makes up.
const synthetic = "<synthetic>"

// ends reports whether a turn may end with a record.
func (r record) ends() bool {
	return r.Type == "assistant" && !r.APIError && r.Message.StopReason != "" && r.Message.StopReason != "tool_use"
}

// isPrompt reports whether a record is a prompt of ours.
func (r record) isPrompt() bool {
	if r.Type != "user" || r.Meta || r.Summary {
		return false
	}
	var parts []block
	return json.Unmarshal(r.Message.Content, &parts) != nil ||
		!slices.ContainsFunc(parts, func(b block) bool { return b.Type == "tool_result" })
}

// source is what a process begins with.
type source struct {
	args  []string // that name the session
	past  history  // of the session that is continued or branched
	grows bool     // the session is continued
}

// anew is a new session.
func anew(id string) source { return source{args: []string{"--session-id", id}} }

// resume returns the session's history, and the flags that continue it at the end of a turn, under its id or another one. A branch
// leaves out the last turn unless it is complete; a continuation leaves out only what the command would join with the next prompt. A
// session without any answer is begun again.
func (e *Engine) resume(known Known, session, id string, branch bool) (source, error) {
	h, err := e.history(session)
	if err != nil {
		return source{}, err
	}
	if branch && h.file == "" { // the command itself would find it a moment later, when the first turn has begun
		return source{}, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, session)
	}
	if h.unanswered {
		for _, path := range e.transcripts(id) { // so that the command accepts the id again
			if err := os.Rename(path, path+".unanswered"); err != nil {
				return source{}, err
			}
		}
		return anew(id), nil
	}
	args := []string{"--resume", orElse(h.file, session)} // the command finds an id only below its working directory's name
	if id != session {
		args = append(args, "--session-id", id, "--fork-session")
	}
	if h.end != "" && (branch || h.merges) && (!h.summed || known.keepsSummary()) {
		args = append(args, "--resume-session-at", h.end)
	}
	return source{args, h, id == session}, nil
}

// step is the part of a record that is kept in memory: a transcript may be large.
type step struct {
	id, parent           string
	ends, prompt, answer bool

	summed bool // it is from before the last compaction
}

// history is the state of a session.
type history struct {
	end        string // id of the answer that ends the last complete turn; "" if it is not known
	summed     bool   // that answer is from before the last compaction, which has kept it word for word
	merges     bool   // the command would join the last prompt with the next
	unanswered bool   // no prompt has an answer
	file       string // transcript; "" if there is none
	tokens     int    // of the conversation, as the service has counted them
	spent      spent  // by its processes so far, or by those of the session that it branched
}

// history reads a session's transcript. A missing one is no error here: the command reports it.
func (e *Engine) history(id string) (h history, err error) {
	paths := e.transcripts(id)
	if len(paths) == 0 {
		return h, nil
	}
	h.file = paths[0]
	records, leaf, summary := map[string]step{}, step{}, false
	var kept []string // of the last compaction
	for r, err := range store.Lines[record](paths[0], nil) {
		if err != nil {
			return h, err
		}
		if r.Summary { // the chain of parents goes past it, but the model reads it
			maps.DeleteFunc(records, func(id string, _ step) bool { return !slices.Contains(kept, id) })
			for id, at := range records {
				at.parent, at.summed = "", true
				records[id] = at
			}
			leaf, summary = step{}, true
			h.tokens = ownTokens + len(r.Message.Content)/engine.Uncounted
		}
		if r.Type == "cost-state" {
			h.spent = r.spent
		}
		if len(r.Compact.Kept.UUIDs) > 0 {
			kept = r.Compact.Kept.UUIDs
		}
		if r.UUID == "" || r.Sidechain {
			continue
		}
		answer := r.Type == "assistant" && !r.APIError && r.Message.Model != synthetic
		at := step{r.UUID, r.Parent, r.ends(), r.isPrompt(), answer, false}
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
			h.end, h.merges, h.summed = at.id, !begun, at.summed
			return h, nil
		}
	}
	h.unanswered = !answers
	return h, nil
}
