package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// askPatience is the total wait of a question for an overloaded service. It is short because a person waits.
const askPatience = 2 * time.Minute

// Question is one question at a shell.
type Question struct {
	Text     string
	Files    []engine.Attachment
	Root     string          // directory in which it is asked; absolute
	Session  string          // session to continue; "" begins a new one
	Branch   bool            // branch Session, which does not belong to a question
	Fork     bool            // branch Session, and leave it unchanged
	Tools    []string        // patterns of tools that it may use
	Dirs     []policy.Root   // directories that it may use besides Root
	System   string          // replaces the system prompt; "" is the usual one
	More     string          // added to the system prompt
	Schema   *payload.Answer // schema of the answer; nil: any text
	MaxTurns int             // 0 is the engine's limit
	MaxCost  float64         // USD; 0 is no limit
	Discard  bool            // keep no transcript
	Needs    engine.Needs    // what the engine must be able to promise
}

// Ask answers a question at a shell, in a session of its own outside the main conversation.
func (t Turns) Ask(ctx context.Context, q Question, o Options) (runlog.Record, error) {
	c := conversation.Question{Session: q.Session, Branch: q.Branch, Follow: !q.Branch, Discard: q.Discard}
	c.Branch = c.Branch || q.Fork || q.Discard && q.Session != "" // a turn that is discarded must not be added to a session that is kept
	s := t.question("ask", q, o)
	if q.Schema != nil {
		s.Duties = []run.Duty{fit(q.Schema)}
	}
	s.Conversation, s.Engine.Transcribe = c, !q.Discard
	s.Input.Task.Body, s.Input.Piped.Files = q.Text, q.Files
	var err error
	s.Identity.Run, err = runlog.NewID(t.r.Disk.Now(), t.r.Random)
	s.Input.Piped.Fence = prompt.Fence(s.Identity.Run) // the piped text cannot contain an id that was made just now
	return t.Run(ctx, s, err)
}

// CompactTranscript compacts a session that has no name, such as that of a question at a shell, by the owner's instructions.
func (t Turns) CompactTranscript(ctx context.Context, kept transcript.Transcript, instructions string, o Options) (runlog.Record, error) {
	root := kept.Cwd
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		root = "" // the directory was removed; a compaction does not use it
	}
	s := t.question(kept.ID, Question{Root: root, Tools: policy.DefaultAsk()}, o)
	s.Identity.Path = kept.ID
	s.Conversation, s.Engine.Thinking, s.Compact = conversation.Question{Session: kept.ID}, "true", instructions
	return t.Run(ctx, s, nil)
}

// ErrUnfit is the error of a run whose answer does not fit its JSON Schema.
var ErrUnfit = errors.New("the answer does not fit the JSON Schema")

// fit returns the duty that the answer fits a schema. An agent whose answer does not fit answers once more. If that answer does not fit
// either, the error is an ErrUnfit.
func fit(schema *payload.Answer) run.Duty {
	return func(ctx context.Context, _ *tools.Set, t *conversation.Turn) error {
		_, wrong := schema.Value(t.Answer())
		if wrong == nil {
			return nil
		}
		again := "[system] Your answer does not fit the JSON Schema: " + wrong.Error() + ". Answer once more with the JSON value alone."
		if err := t.Resume(ctx, again, false); err != nil {
			return err
		}
		if _, wrong = schema.Value(t.Answer()); wrong != nil {
			return fmt.Errorf("%w: %s", ErrUnfit, plaintext.OneLine(wrong))
		}
		return nil
	}
}

// question returns the Spec of a question without its text.
func (t Turns) question(id string, q Question, o Options) run.Spec {
	system := cmp.Or(q.System, prompt.SystemQuestion)
	if system = strings.TrimSpace(system + "\n\n" + q.More); q.Schema != nil {
		system = strings.TrimSpace(system + "\n\nYour last message is read by a program. It must be one JSON value that fits this JSON Schema, " +
			"and nothing besides:\n" + q.Schema.Source())
	}
	typed := o.typed()
	if q.System != "" {
		typed = append(typed, runlog.TypedSystem)
	}
	return run.Spec{
		Identity: run.Identity{Subject: runlog.Subject{Kind: runlog.Ask, Job: id, Path: q.Root}, Typed: typed},
		Input:    prompt.Input{Piped: prompt.Piped{Text: o.Input}},
		Engine:   run.Choice{Name: o.Engine, Model: o.Model, Needs: q.Needs},
		Policy: run.Rights{
			System: system, Tools: q.Tools, Root: q.Root, Dirs: q.Dirs, Update: job.Blocked,
			Owner: o.Owner, Awaited: true,
		},
		Limits:  run.Limits{Time: turnLimit, Cost: q.MaxCost, Typed: o.Owner, Turns: q.MaxTurns, Patience: askPatience},
		Observe: o.Observe,
	}
}
