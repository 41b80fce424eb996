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

// The command treats a turn that was cut off as follows (2.1.197). If the model had begun to answer, the command closes the turn when the
// session is resumed, with an answer of its own, "No response requested.". If not, it joins the prompt with the next one. A fork contains
// the part of a turn in progress that is there. If that is wrong, the flag --resume-session-at names the answer after which the history
// is cut. The next turn then follows that answer in the transcript, and the lines of the dropped turn are ignored.

// record is a line of the command's transcript, with the fields that ollim reads.
type record struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Cwd       string    `json:"cwd"`
	UUID      string    `json:"uuid"`
	SessionID string    `json:"sessionId"`
	Parent    string    `json:"parentUuid"`
	Before    string    `json:"logicalParentUuid"` // set in the line after a compaction
	Sidechain bool      `json:"isSidechain"`       // the line belongs to a subagent
	Meta      bool      `json:"isMeta"`            // the command wrote the message, not ollim
	Summary   bool      `json:"isCompactSummary"`
	APIError  bool      `json:"isApiErrorMessage"`
	spent               // set in a line of type cost-state

	Compact struct {
		Kept struct {
			UUIDs []string `json:"uuids"`
		} `json:"preservedMessages"`
	} `json:"compactMetadata"` // set in the line before a summary
	Message struct {
		ID         string          `json:"id"`
		Role       string          `json:"role"`
		Model      string          `json:"model"`
		StopReason string          `json:"stop_reason"`
		Usage      usage           `json:"usage"`
		Content    json.RawMessage `json:"content"`
	} `json:"message"`
}

// synthetic is the model name of an answer that the command made up.
const synthetic = "<synthetic>"

// ends reports whether a turn may end with this record.
func (r record) ends() bool {
	return r.Type == "assistant" && !r.APIError && r.Message.StopReason != "" && r.Message.StopReason != "tool_use"
}

// isPrompt reports whether a record is a prompt from ollim.
func (r record) isPrompt() bool {
	if r.Type != "user" || r.Meta || r.Summary {
		return false
	}
	var parts []block
	return json.Unmarshal(r.Message.Content, &parts) != nil ||
		!slices.ContainsFunc(parts, func(b block) bool { return b.Type == "tool_result" })
}

// source is the session that a process starts from.
type source struct {
	args  []string // flags that name the session
	past  history  // history of the session that is continued or branched
	grows bool     // the session is continued, not branched
}

// anew returns the source of a new session.
func anew(id string) source { return source{args: []string{"--session-id", id}} }

// resume returns the session's history, and the flags that continue it at the end of a turn, with its id or another one. A branch omits
// the last turn if that is incomplete. A continuation omits only a prompt that the command would join with the next one. A session
// without any answer is started again.
func (e *Engine) resume(known Known, session, id string, branch bool) (source, error) {
	h, err := e.history(session)
	if err != nil {
		return source{}, err
	}
	if branch && h.file == "" { // a moment later the command would find the turn that has just begun
		return source{}, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, session)
	}
	if h.unanswered {
		for _, path := range e.transcripts(id) { // makes the id free, so that the command accepts it again
			if err := os.Rename(path, path+".unanswered"); err != nil {
				return source{}, err
			}
		}
		return anew(id), nil
	}
	args := []string{"--resume", orElse(h.file, session)} // by an id alone, the command finds only sessions of its working directory
	if id != session {
		args = append(args, "--session-id", id, "--fork-session")
	}
	if h.end != "" && (branch || h.merges) && (!h.summed || known.keepsSummary()) {
		args = append(args, "--resume-session-at", h.end)
	}
	return source{args, h, id == session}, nil
}

// step is the part of a record that is kept in memory, because a transcript may be large.
type step struct {
	id, parent           string
	ends, prompt, answer bool

	summed bool // the record precedes the last compaction
}

// history is the state of a session.
type history struct {
	end        string // id of the answer that ends the last complete turn; "" if unknown
	summed     bool   // that answer precedes the last compaction, which has kept it word for word
	merges     bool   // the command would join the last prompt with the next one
	unanswered bool   // no prompt has an answer
	file       string // path of the transcript; "" if there is none
	tokens     int    // length of the conversation, as the service has counted it
	spent      spent  // what its processes have used so far, or those of the session that it branched from
}

// history reads a session's transcript. A missing transcript is not an error here, because the command reports it.
func (e *Engine) history(id string) (h history, err error) {
	paths := e.transcripts(id)
	if len(paths) == 0 {
		return h, nil
	}
	h.file = paths[0]
	records, leaf, summary := map[string]step{}, step{}, false
	var kept []string // messages that the last compaction kept
	for r, err := range store.Lines[record](paths[0], nil) {
		if err != nil {
			return h, err
		}
		if r.Summary { // the chain of parents skips the summary, but the model reads it
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
	open, begun, answers := true, false, summary // whether the last turn is open, the model has begun it, and the model has answered at all
	for at, known := leaf, leaf.id != ""; known; at, known = records[at.parent] {
		delete(records, at.id) // the parents in a damaged file may form a cycle
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
