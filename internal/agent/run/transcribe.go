package run

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// transcriber runs an engine that keeps its sessions in its own format, and writes a transcript of each question. The transcript has the id
// of the engine's session.
type transcriber struct {
	engine.Engine
	runner *Runner
	name   string
	asked  string // prompt that the transcript already has, because the turn was started again
}

// Guarantees returns those of the engine.
func (t *transcriber) Guarantees(model string) engine.Guarantees {
	return engine.GuaranteesOf(t.Engine, model)
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
		var mentions transcript.Blocks // blocks for attached files, without the contents that the engine stores
		for _, a := range r.Input.Attachments {
			_, size, _ := a.Text() // the engine reports an error in the file
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
