package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Kinds of runs that are no job's.
const (
	kindChat    = "chat"
	kindSession = "session"
	kindAsk     = runlog.Ask
)

// turnLimit bounds a turn whose owner is there to stop it.
const turnLimit = 24 * time.Hour

// askPatience is how long a question waits for a service that refuses for now, in all: a person waits for the answer.
const askPatience = 2 * time.Minute

// Question is one question at a shell.
type Question struct {
	Text     string
	Root     string   // where it is asked; absolute
	Session  string   // to continue; "" begins one
	Branch   bool     // branch Session instead: it is not a question's
	Tools    []string // patterns of tools that it may use besides those that only look
	MaxTurns int      // 0 is the engine's limit
	MaxCost  float64  // USD; 0 is no limit
	Discard  bool     // keep no transcript
}

// Chat is one turn of the main conversation.
func (r *Runner) Chat(ctx context.Context, text string, o Options) (runlog.Record, error) {
	s, err := r.mainTurn(kindChat, o)
	s.Engine.Thinking, s.Policy.Awaited = "off", true
	s.Input.Task.Body = text
	return r.runTurn(ctx, s, err)
}

// CompactSession compacts the main session (routine "") or that of a persistent routine, by the owner's instructions.
func (r *Runner) CompactSession(ctx context.Context, routine, instructions string, o Options) (runlog.Record, error) {
	s, err := r.mainTurn(kindSession, o)
	if routine != "" {
		s.Identity = Identity{Kind: kindSession, ID: routine, Path: routine}
		s.Conversation = conversation.Routine{Sessions: r.Sessions, ID: routine}
		s.Policy.System = prompt.SystemAlone()
		s.Policy.Tools, _, err = r.patterns(true)
	}
	s.Compact = instructions
	return r.runTurn(ctx, s, err)
}

// mainTurn is a Spec of the owner's in the main conversation.
func (r *Runner) mainTurn(kind string, o Options) (Spec, error) {
	own, _, err := r.patterns(false)
	return Spec{
		Identity:     Identity{Kind: kind, ID: conversation.MainKey, Path: conversation.MainKey},
		Input:        prompt.Input{Piped: prompt.Piped{Text: o.Input}},
		Conversation: conversation.Main{Sessions: r.Sessions},
		Engine:       Choice{Name: o.Engine, Model: o.Model, Thinking: "true"},
		Policy:       Policy{System: prompt.SystemMain(r.profile()), Tools: own, AllowPing: true, Update: job.OnPing, Owner: o.Owner},
		Limits:       Limits{Time: turnLimit},
		Observe:      o.Observe,
	}, err
}

// Ask answers a question at a shell: no part in the main conversation, a session of its own.
func (r *Runner) Ask(ctx context.Context, q Question, o Options) (runlog.Record, error) {
	c := conversation.Question{Session: q.Session, Branch: q.Branch, Follow: !q.Branch, Discard: q.Discard}
	c.Branch = c.Branch || q.Discard && q.Session != "" // what is not kept must not become part of what is
	s := r.question("ask", q, o)
	s.Conversation, s.Engine.Transcribe = c, !q.Discard
	s.Input.Task.Body = q.Text
	return r.runTurn(ctx, s, nil)
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

// runTurn runs a Spec of the owner's; wrong is why it may not run, if the settings are not right.
func (r *Runner) runTurn(ctx context.Context, s Spec, wrong error) (runlog.Record, error) {
	s.Origin = &turnOrigin{runner: r, identity: s.Identity, owner: s.Policy.Owner, wrong: wrong}
	return r.Run(ctx, s)
}

// turnOrigin is the origin of a run that is no job's.
type turnOrigin struct {
	runner   *Runner
	identity Identity
	owner    bool
	wrong    error
}

// Begin ends the record of the conversation's last turn, if its process died.
func (o *turnOrigin) Begin(record *runlog.Record) error {
	if record.Key == "" {
		return nil
	}
	r := o.runner
	last, err := r.Runs.Load(strings.TrimSpace(lock.ReadNote(r.Home.ConversationLock(record.Key))))
	if err == nil && slices.Contains([]string{kindChat, kindSession, o.identity.Kind}, last.Kind) && !last.Done() && !r.Runs.Alive(last) {
		_, err := r.Runs.Close(last.ID)
		r.warn(err)
	}
	return nil
}

func (o *turnOrigin) Permit() error {
	if err := o.runner.paused(o.owner); err != nil {
		return err
	}
	return o.wrong
}

// Prepare sets off what was piped into a question by the run's id, which nobody could know before.
func (o *turnOrigin) Prepare(_ context.Context, run *runlog.Run, _ *tools.Set, in prompt.Input) (prompt.Input, error) {
	if o.identity.Kind == kindAsk {
		in.Piped.Fence = "----- " + run.ID
	}
	return in, nil
}

func (o *turnOrigin) Complete(*engine.Request) error { return nil }

func (o *turnOrigin) Postpone(context.Context, *runlog.Run, *Later) error { return nil }

// End has nothing to do.
func (o *turnOrigin) End(context.Context, *runlog.Run, error) {}

// Report reports a refusal. What the owner typed has an exit status and streams that say how it ended.
func (o *turnOrigin) Report(ctx context.Context, run *runlog.Run, cause error) {
	if run.Outcome == runlog.Refused && !o.owner {
		o.runner.reportRefusal(ctx, run.Record, cause)
	}
}

// patterns are the default tool patterns with those of tool-policy.yaml: of a background run or of one in the foreground, and
// those of the main conversation. The error says what is wrong with the file.
func (r *Runner) patterns(background bool) (own, main []string, err error) {
	extra, err := r.Approvals.Policy()
	if err != nil {
		return nil, nil, err
	}
	main = slices.Concat(policy.DefaultMain(), extra.Main)
	if !background {
		return slices.Clone(main), main, nil
	}
	own = policy.DefaultBackground()
	if extra.Override != nil {
		own = slices.Clone(extra.Override)
	}
	return append(own, extra.Background...), main, nil
}

// maxProfile is the largest profile file that is read, in bytes; each is a part of every prompt.
const maxProfile = 1 << 20

// profile is who the agent is and whom it works for, in the owner's words. Files that are not there say nothing.
func (r *Runner) profile() string {
	var texts []string
	for _, name := range []string{"IDENTITY.md", "USER.md"} {
		text, err := store.ReadText(r.Home.Path(name), maxProfile, false)
		switch {
		case err == nil:
			texts = append(texts, strings.TrimSpace(string(text)))
		case !errors.Is(err, fs.ErrNotExist):
			r.warn(fmt.Errorf("%s: %s", name, store.Cause(err)))
		}
	}
	if r.Names.User != "" {
		texts = append(texts, "Your owner is called "+r.Names.User+".")
	}
	if r.Names.Bot != "" {
		texts = append(texts, "You are called "+r.Names.Bot+".")
	}
	return strings.Join(texts, "\n\n")
}
