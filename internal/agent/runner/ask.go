package runner

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
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// askPatience is how long a question waits, in all, for a service that is overloaded. It is short because a person waits.
const askPatience = 2 * time.Minute

// Question is one question at a shell.
type Question struct {
	Text     string
	Files    []engine.Attachment
	Root     string          // directory in which it is asked; absolute
	Session  string          // session to continue; "" begins a new one
	Branch   bool            // branch Session, which is not the session of a question
	Fork     bool            // branch Session, and leave it unchanged
	Tools    []string        // patterns of tools that it may use
	Dirs     []policy.Root   // directories that it may use besides Root
	System   string          // replaces the system prompt; "" is the usual one
	More     string          // added to the system prompt
	Schema   *payload.Answer // schema of the answer; nil: any text
	MaxTurns int             // 0 is the engine's limit
	MaxCost  float64         // USD; 0 is no limit
	Discard  bool            // keep no transcript
}

// Ask answers a question at a shell, in a session of its own outside the main conversation.
func (t Turns) Ask(ctx context.Context, q Question, o Options) (runlog.Record, error) {
	c := conversation.Question{Session: q.Session, Branch: q.Branch, Follow: !q.Branch, Discard: q.Discard}
	c.Branch = c.Branch || q.Fork || q.Discard && q.Session != "" // a turn that is discarded must not be added to a session that is kept
	s := t.question("ask", q, o)
	if q.Schema != nil {
		s.Duties = []duty{fit(q.Schema)}
	}
	s.Conversation, s.Engine.Transcribe = c, !q.Discard
	s.Input.Task.Body, s.Input.Piped.Files = q.Text, q.Files
	var err error
	s.Identity.Run, err = runlog.NewID(t.r.Disk.Now(), t.r.Random)
	s.Input.Piped.Fence = "----- " + s.Identity.Run // the piped text cannot contain an id that was made just now
	return t.runTurn(ctx, s, err)
}

// CompactTranscript compacts a session that has no name, such as that of a question at a shell, by the owner's instructions.
func (t Turns) CompactTranscript(ctx context.Context, kept transcript.Transcript, instructions string, o Options) (runlog.Record, error) {
	root := kept.Cwd
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		root = "" // it was removed; a compaction uses nothing in it
	}
	s := t.question(kept.ID, Question{Root: root, Tools: policy.DefaultAsk()}, o)
	s.Identity.Path = kept.ID
	s.Conversation, s.Engine.Transcribe, s.Engine.Thinking = conversation.Question{Session: kept.ID}, true, "true"
	s.Compact = instructions
	return t.runTurn(ctx, s, nil)
}

// ErrUnfit is the error of a run whose answer does not fit its JSON Schema.
var ErrUnfit = errors.New("the answer does not fit the JSON Schema")

// fit returns the duty that the answer fits a schema. An agent whose answer does not fit answers once more. If that answer does not fit
// either, the error is an ErrUnfit.
func fit(schema *payload.Answer) duty {
	return func(ctx context.Context, _ *work, t *conversation.Turn) error {
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

// PlanOf returns the plan of an engine for a new session. An empty name means the configured engine, an empty model the engine's default.
func (t Turns) PlanOf(name, model string) engine.Plan {
	made, err := t.r.Engines(cmp.Or(name, t.r.Settings.Engine))
	if err != nil {
		return engine.Plan{Model: model}
	}
	plan, _ := made.Plan(engine.Request{Model: engine.Model{Name: model}}, t.r.toolsOf(&runlog.Run{}, t.r.Outbox)) // the run reports the error
	return plan
}

// ChatPlan returns the plan for the owner's next message. An empty model means that of the open fork, else the configured one.
func (t Turns) ChatPlan(ctx context.Context, model string) engine.Plan {
	fork, _, err := t.r.Sessions.Fork(ctx)
	t.r.warn(err)
	return t.PlanOf(fork.Engine, cmp.Or(model, fork.Model, t.r.Settings.Main.Model))
}

// question returns the Spec of a question without its text.
func (t Turns) question(id string, q Question, o Options) Spec {
	system := cmp.Or(q.System, prompt.SystemQuestion)
	if system = strings.TrimSpace(system + "\n\n" + q.More); q.Schema != nil {
		system = strings.TrimSpace(system + "\n\nYour last message is read by a program. It must be one JSON value that fits this JSON Schema, " +
			"and nothing besides:\n" + q.Schema.Source())
	}
	return Spec{
		Identity: identity{Subject: runlog.Subject{Kind: kindAsk, Job: id, Path: q.Root}},
		Input:    prompt.Input{Piped: prompt.Piped{Text: o.Input}},
		Engine:   choice{Name: o.Engine, Model: o.Model},
		Policy: rights{
			System: system, Tools: q.Tools, Root: q.Root, Dirs: q.Dirs, Update: job.Blocked,
			Owner: o.Owner, Awaited: true,
		},
		Limits:  limits{Time: turnLimit, Cost: q.MaxCost, Typed: o.Owner, Turns: q.MaxTurns, Patience: askPatience},
		Observe: o.Observe,
	}
}

// transcriber runs an engine that keeps its sessions in its own format, and writes a transcript of each question. The transcript has the id
// of the engine's session.
type transcriber struct {
	engine.Engine
	runner *Runner
	name   string
	asked  string // the prompt that the transcript already has, in case the turn starts again
}

// Run runs the engine, and writes the prompt and the engine's messages to the transcript.
func (t *transcriber) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	p := page{t: t, request: r}
	defer func() { p.guard.Release() }()
	if err := p.reserve(ctx); err != nil {
		return engine.Result{}, err
	}
	if r.Input.Prompt != t.asked {
		said := transcript.Said(transcript.User, r.Input.Prompt)
		var mentions transcript.Blocks // of attached files: the engine keeps their contents
		for _, a := range r.Input.Attachments {
			_, size, _ := a.Text() // the engine reports what is wrong with the file
			mentions = append(mentions, (&transcript.Source{MediaType: a.Type, Name: a.Name, Size: size}).Block())
		}
		said.Content = append(mentions, said.Content...)
		p.note(said)
	}
	return t.Engine.Run(ctx, r, tools, func(e runlog.Event) error {
		return errors.Join(p.write(ctx, t.runner.Runs.Hide(e)), sink(e))
	})
}

// page is the transcript of one turn.
type page struct {
	t       *transcriber
	request engine.Request
	file    transcript.Transcript // zero until the engine has named its session
	guard   *lock.Guard
	said    []transcript.Entry // messages that are not on disk yet
}

func (p *page) sessions() transcript.Dir { return transcript.Dir(p.t.runner.Home.Sessions()) }

// reserve locks the transcript of the session that the turn continues, if there is one.
func (p *page) reserve(ctx context.Context) error {
	if p.request.Session.ID == "" || p.request.Session.Fork {
		return nil
	}
	file, err := p.sessions().Find(p.request.Session.ID)
	if errors.Is(err, transcript.ErrUnknown) {
		return nil
	}
	if err == nil {
		p.guard, err = file.Lock(ctx, p.t.runner.Disk.Locks)
	}
	return err
}

func (p *page) note(m transcript.Message) {
	p.said = append(p.said, transcript.Entry{Message: m, At: p.t.runner.Disk.Now()})
}

func (p *page) write(ctx context.Context, e runlog.Event) (err error) {
	if e.Type == runlog.Session {
		p.t.asked = p.request.Input.Prompt
		err = p.open(ctx, e.Session)
	}
	if m, ok := engine.MessageOf(e); ok {
		p.note(m)
	}
	if err == nil && p.file.Path != "" && len(p.said) > 0 {
		err, p.said = p.file.Append(store.Buffered, p.said...), nil
	}
	return err
}

// open finds or creates the transcript of a session, and locks it.
func (p *page) open(ctx context.Context, id string) error {
	file, err := p.sessions().Find(id)
	if errors.Is(err, transcript.ErrUnknown) {
		h := transcript.Header{ID: id, Cwd: p.request.Scope.Root, Provider: p.t.name, Model: p.request.Model.Name, Timestamp: p.t.runner.Disk.Now()}
		if p.request.Session.ID != id {
			h.ParentID = p.request.Session.ID
		}
		file, err = p.sessions().Create(h)
	}
	if err == nil && p.guard == nil {
		p.guard, err = file.Lock(ctx, p.t.runner.Disk.Locks)
	}
	p.file = file
	return err
}
