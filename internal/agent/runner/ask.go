package runner

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// askPatience is how long a question waits, in all, for a service that is overloaded. It is short because a person waits.
const askPatience = 2 * time.Minute

// Question is one question at a shell.
type Question struct {
	Text     string
	Files    []engine.Attachment
	Root     string   // where it is asked; absolute
	Session  string   // to continue; "" begins one
	Branch   bool     // branch Session instead: it is not a question's
	Tools    []string // patterns of tools that it may use besides those that only look
	MaxTurns int      // 0 is the engine's limit
	MaxCost  float64  // USD; 0 is no limit
	Discard  bool     // keep no transcript
}

// Ask answers a question at a shell: no part in the main conversation, a session of its own.
func (r *Runner) Ask(ctx context.Context, q Question, o Options) (runlog.Record, error) {
	c := conversation.Question{Session: q.Session, Branch: q.Branch, Follow: !q.Branch, Discard: q.Discard}
	c.Branch = c.Branch || q.Discard && q.Session != "" // what is not kept must not become part of what is
	s := r.question("ask", q, o)
	s.Conversation, s.Engine.Transcribe = c, !q.Discard
	s.Input.Task.Body, s.Input.Piped.Files = q.Text, q.Files
	var err error
	s.Identity.Run, err = runlog.NewID(r.Disk.Now(), r.Random)
	s.Input.Piped.Fence = "----- " + s.Identity.Run // nobody could know it before
	return r.runTurn(ctx, s, err)
}

// CompactTranscript compacts a session that has no name, such as that of a question at a shell, by the owner's instructions.
func (r *Runner) CompactTranscript(ctx context.Context, t transcript.Transcript, instructions string, o Options) (runlog.Record, error) {
	s := r.question(t.ID, Question{Root: t.Cwd}, o)
	s.Identity.Path = t.ID
	s.Conversation, s.Engine.Transcribe, s.Engine.Thinking = conversation.Question{Session: t.ID}, true, "true"
	s.Compact = instructions
	return r.runTurn(ctx, s, nil)
}

// question is the Spec of a question with no text yet.
func (r *Runner) question(id string, q Question, o Options) Spec {
	return Spec{
		Identity: Identity{Kind: kindAsk, ID: id, Path: q.Root},
		Input:    prompt.Input{Piped: prompt.Piped{Text: o.Input}},
		Engine:   Choice{Name: o.Engine, Model: o.Model},
		Policy: Policy{
			System: prompt.SystemQuestion(), Tools: append(policy.DefaultAsk(), q.Tools...), Root: q.Root, Update: job.Blocked,
			Owner: o.Owner, Awaited: true,
		},
		Limits:  Limits{Time: turnLimit, Cost: q.MaxCost, Typed: o.Owner, Turns: q.MaxTurns, Patience: askPatience},
		Observe: o.Observe,
	}
}
