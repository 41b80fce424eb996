package runner

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// transcriber writes the transcripts of questions to engines that keep their sessions in a form of their own. A transcript bears the
// id of the engine's session.
type transcriber struct {
	engine.Engine
	runner *Runner
	name   string
	asked  string // the prompt that is written down already, for a turn that is begun anew
}

// Run writes down what the engine tells.
func (t *transcriber) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	p := page{t: t, request: r}
	defer p.close()
	if err := p.reserve(ctx); err != nil {
		return engine.Result{}, err
	}
	if r.Input.Prompt != t.asked {
		said := transcript.Said(transcript.User, r.Input.Prompt)
		said.Content = append(mentions(r.Input.Attachments), said.Content...)
		p.note(said)
	}
	return t.Engine.Run(ctx, r, tools, func(e runlog.Event) error {
		return errors.Join(p.write(ctx, t.runner.Runs.Hide(e)), sink(e))
	})
}

// mentions are blocks for files whose content the engine keeps in a form of its own.
func mentions(files []engine.Attachment) (blocks transcript.Blocks) {
	for _, a := range files {
		_, size, _ := a.Text() // the engine reports what is wrong with the file
		blocks = append(blocks, transcript.Shown(&transcript.Source{MediaType: a.Type, Name: a.Name, Size: size}))
	}
	return blocks
}

// page is the transcript of one turn.
type page struct {
	t       *transcriber
	request engine.Request
	file    transcript.Transcript // the zero one before the engine has named its session
	guard   *lock.Guard
	said    []transcript.Entry // that is not on disk yet
}

func (p *page) sessions() transcript.Dir { return transcript.Dir(p.t.runner.Home.Sessions()) }

// reserve locks the transcript that is gone on with.
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

func (p *page) close() { p.guard.Release() }

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

// open finds the transcript of the session, or begins it.
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
