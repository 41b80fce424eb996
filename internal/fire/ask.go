package fire

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/store"
	"github.com/ollim/ollim/internal/transcript"
)

// Question is one question at a shell.
type Question struct {
	Text     string
	Input    string   // that was piped in
	Root     string   // where it is asked; absolute
	Session  string   // to continue; "" begins one
	Tools    []string // patterns of tools that it may use besides those that only look
	MaxTurns int      // 0 is the engine's limit
	MaxCost  float64  // USD; 0 is no limit
	Discard  bool     // keep no transcript
	Delta    func(text string) error
}

// Ask answers a question at a shell: no job, no part in the main conversation, a session of its own.
func (f *Firer) Ask(ctx context.Context, q Question, o Options) (run.Record, error) {
	j := job.New(job.Ask)
	j.ID, j.Path, j.Body, j.Timeout, j.Thinking = "ask", q.Root, q.Text, turnLimit, ""
	j.AllowedTools, j.MaxCost, j.Update, j.AllowPing = q.Tools, q.MaxCost, job.Blocked, false
	o.Owner, o.Input = true, q.Input
	return f.run(ctx, errand{job: j, options: o, question: q})
}

// fence sets off what was piped into a question: the run's id holds what nobody could know before.
func (e errand) fence() string {
	if e.job.Kind != job.Ask {
		return ""
	}
	return "----- " + e.id
}

// engine makes the run's engine. A question's conversation is kept as a transcript whatever engine holds it.
func (f *Firer) engine(e errand, name string) (engine.Engine, error) {
	made, err := f.Engines(name)
	if err != nil || e.job.Kind != job.Ask || e.question.Discard || name == engine.Native {
		return made, err
	}
	return scribe{made, f, name}, nil
}

// scribe writes the transcripts of questions to engines that keep their sessions in a form of their own.
type scribe struct {
	engine.Engine
	f    *Firer
	name string
}

// Run writes down what the engine tells. The transcript bears the id of the engine's session.
func (s scribe) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	var said []transcript.Entry
	var file transcript.Transcript
	note := func(m transcript.Message) { said = append(said, transcript.Entry{Message: m, At: s.f.Disk.Now()}) }
	note(transcript.Said(transcript.User, r.Prompt))
	result, err := s.Engine.Run(ctx, r, tools, func(e run.Event) (err error) {
		switch e.Type {
		case run.Session:
			file, err = s.file(e.Session, r)
		case run.Text:
			note(transcript.Said(transcript.Assistant, e.Text))
		case run.ToolUse:
			note(transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{{
				Type: transcript.ToolUse, ID: e.ToolID, Name: e.Tool, Input: e.Input,
			}}})
		case run.ToolResult:
			note(transcript.Message{Role: transcript.User, Content: []transcript.Block{{
				Type: transcript.ToolResult, ToolUseID: e.ToolID, Content: e.Text, IsError: e.IsError,
			}}})
		}
		if file.Path != "" && len(said) > 0 && err == nil {
			err, said = file.Append(store.Buffered, said...), nil
		}
		return errors.Join(err, sink(e))
	})
	return result, err
}

// file is the transcript of a session, a new one when there is none yet.
func (s scribe) file(id string, r engine.Request) (transcript.Transcript, error) {
	sessions := s.f.Home.Path("sessions")
	file, err := transcript.Find(sessions, id)
	if !errors.Is(err, transcript.ErrUnknown) {
		return file, err
	}
	h := transcript.Header{ID: id, Cwd: r.Root, Provider: s.name, Model: r.Model, Timestamp: s.f.Disk.Now()}
	if r.Session != id {
		h.ParentID = r.Session
	}
	return transcript.Create(sessions, h)
}
