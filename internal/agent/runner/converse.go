package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

// engineOf makes the engine of a run.
func (r *Runner) engineOf(s Spec) (engine.Engine, error) {
	made, err := r.Engines(s.Engine.Name)
	if err != nil || !s.Engine.Transcribe || s.Engine.Name == engine.Native {
		return made, err
	}
	return &transcriber{Engine: made, runner: r, name: s.Engine.Name}, nil
}

// prepare returns the input of the turn, after the origin of the run has prepared it.
func (w *work) prepare(ctx context.Context) (prompt.Input, error) {
	in, err := w.r.input(w.spec, w.run.Record)
	if err != nil {
		return in, err
	}
	if in, err = w.spec.Origin.Prepare(ctx, w.tools, in); err == nil {
		w.run.Told = in.Tells()
	}
	return in, err
}

// late reports whether a run is so late that its agent is told. at is the scheduled time; nil: none.
func late(at *time.Time, now time.Time) bool {
	return at != nil && now.Sub(*at) > 2*time.Minute
}

// input completes the input of a Spec with the time and the facts of the record.
func (r *Runner) input(s Spec, record runlog.Record) (in prompt.Input, err error) {
	in = s.Input
	in.Now, in.Busy = r.Disk.Now().In(r.Zone), record.Busy && in.Task.Background
	in.Task.Dirs = record.Dirs // with ~/ expanded
	in.Tools = ownPatterns(record)
	if in.Told = record.ToldBefore; record.Persistent {
		in.Context = contextOf(r.past(record, growthRuns), record.SessionBefore)
	}
	if late(record.Scheduled, in.Now) {
		in.Late = record.Scheduled.In(r.Zone)
	}
	switch record.Compaction {
	case runlog.CompactionDone:
		in.Session = prompt.Compacted
	case runlog.CompactionFailed:
		in.Session = prompt.CompactionFailed
	}
	if in.Task.Background && in.Task.AllowPing {
		in.Budget, err = r.Budget.Status()
	}
	for _, a := range in.Piped.Files {
		text, size, textErr := a.Text()
		err = errors.Join(err, textErr)
		in.Piped.Named = append(in.Piped.Named, prompt.File{Name: a.Name, Type: a.Type, Size: size, Text: text})
	}
	return in, err
}

// ownPatterns returns the patterns in force except those of ollim's own tools.
func ownPatterns(record runlog.Record) []string {
	return slices.DeleteFunc(slices.Clone(record.Tools), func(p string) bool { return strings.HasPrefix(p, "mcp__ollim__") })
}

// system returns the system prompt: the one of the policy, else the parts of the task that stay the same at every fire.
func system(s Spec, run *runlog.Run) string {
	if s.Policy.System != "" {
		return s.Policy.System
	}
	task := s.Input.Task
	task.Dirs = run.Dirs
	return prompt.Alone(task, ownPatterns(run.Record))
}

// request returns the request to the engine. granted is the most that the run may cost, in USD; 0 is no limit.
func (w *work) request(granted float64) (engine.Request, error) {
	request, err := w.r.requestOf(w.spec, w.run, w.tools)
	if !w.run.Private {
		log := w.r.Requests.Log(w.run.ID)
		request.Run.Sent = func(body []byte) { // stored in order, while the service works on the request
			w.keeping.Wait()
			w.keeping.Go(func() { w.unkept = cmp.Or(log.Add(context.Background(), body), w.unkept) })
		}
	}
	request.Limits.MaxCost, request.Limits.Raise, request.Limits.Reserved = granted, w.raise(), w.run.Reserved
	request.Run.Socket, request.Run.Vars, request.Scope.Seal, request.Scope.Hints = w.socket, w.vars, w.tools.Seal, w.hints
	request.Run.Locks = append(request.Run.Locks, w.lock.File())
	if guard := w.spec.Identity.Guard; guard != nil {
		request.Run.Locks = append(request.Run.Locks, guard.File())
	}
	return request, err
}

// kept waits until the requests that were sent are stored. A failure to store one is only a warning.
func (w *work) kept() {
	w.keeping.Wait()
	if w.unkept != nil {
		w.r.warn(fmt.Errorf("run %s: a request to the model is not kept: %w", w.run.ID, w.unkept))
	}
}

// requestOf returns the request as a preview shows it. It takes no locks and reserves no money.
func (r *Runner) requestOf(s Spec, run *runlog.Run, set *tools.Set) (engine.Request, error) {
	seen := slices.DeleteFunc(slices.Clone(s.Input.Piped.Files), func(a engine.Attachment) bool { return !media.IsSeen(a.Type) })
	request := engine.Request{
		Run: engine.Run{ID: run.ID},
		Input: engine.Input{
			System: system(s, run), SystemOnly: !run.Shared, Attachments: seen, Delta: s.Observe.Text, Awaited: s.Policy.Awaited,
		},
		Session: engine.Session{Full: r.full(s, run)},
		Model:   engine.Model{Name: run.Model, Thinking: s.Engine.Thinking},
		Limits:  engine.Limits{MaxTurns: s.Limits.Turns, Patience: s.Limits.Patience},
		Scope: engine.Scope{
			Root: cmp.Or(run.Root, string(r.Home)), Dirs: s.Policy.Dirs, Protected: set.Protected(),
			BuiltIns: tools.BuiltIns(run.Tools, s.Policy.Offered), Allow: reach(run),
			Servers: s.servers(run), Offline: s.Policy.Seal.Offline,
		},
	}
	if !isScript(run.Engine) { // a script has no cache
		request.Session.Pace = r.pace(s, run.Record)
	}
	if run.Scheduled != nil {
		request.Run.Slot = *run.Scheduled
	}
	return request, s.Origin.Complete(&request)
}

// waits returns errWaiting if a run has asked the owner a question. Its duties are enforced when it has the answer.
func waits(run *runlog.Run) error {
	standing, err := run.Standing()
	if err == nil && standing.Asking() {
		err = errWaiting
	}
	return err
}

// enforce carries out the duties of the run.
func (w *work) enforce(ctx context.Context, t *conversation.Turn) error {
	if err := waits(w.run); err != nil {
		return err
	}
	for _, duty := range w.spec.Duties {
		if err := duty(ctx, w, t); err != nil {
			return err
		}
	}
	return nil
}

// compact compacts the session if the agent asked for it. After a turn that went wrong the session stays whole, and the agent is told at
// its next fire that it was not compacted.
func (w *work) compact(ctx context.Context, t *conversation.Turn, ended error) error {
	if ended != nil && !errors.Is(ended, errUnreported) && !errors.Is(ended, errWaiting) {
		return nil
	}
	err := t.Compact(ctx)
	if errors.Is(err, engine.ErrMaxCost) { // only the compaction failed: the turn is done
		return w.run.Event(ctx, runlog.Event{Type: runlog.CompactFailed, Text: err.Error()})
	}
	return err
}

// compactNow compacts the conversation's session by the owner's instructions.
func (w *work) compactNow(ctx context.Context, turn *conversation.Turn) error {
	if from := turn.From(); from != "" {
		return fmt.Errorf("%w; the next turn carries the conversation over", engine.Foreign(from))
	}
	if turn.Session() == "" {
		return errors.New("there is no session to compact yet")
	}
	if err := w.run.Event(ctx, runlog.Event{Type: runlog.CompactWish, Text: w.spec.Compact}); err != nil {
		return err
	}
	return turn.Compact(ctx)
}

// plan is what a fire would do.
type plan struct {
	Job      string   `json:"job"`
	Mode     string   `json:"mode"`
	Engine   string   `json:"engine,omitempty"` // "" for a plain reminder, whose text is delivered
	Model    string   `json:"model,omitempty"`  // "": the engine has none
	Thinking string   `json:"thinking,omitempty"`
	Session  string   `json:"session,omitempty"` // session to continue; "" begins a new one
	Branch   bool     `json:"branch,omitempty"`  // Session is branched instead
	Tools    []string `json:"tools"`             // tools that the model is offered, sorted
	Refuses  []string `json:"refuses,omitempty"` // those of Tools that are refused when called
	Patterns []string `json:"patterns"`          // patterns that decide on each use of a tool
	System   string   `json:"system,omitempty"`
	Prompt   string   `json:"prompt"`
	Refused  string   `json:"refused,omitempty"` // why the job would not run

	Alone bool `json:"-"` // System is made of the task
}

// Preview returns what Fire would do now, and changes nothing.
func (b Firer) Preview(ctx context.Context, name string, o Options) (plan, error) {
	files, err := b.r.Jobs.Outline()
	if err != nil {
		return plan{}, err
	}
	j, err := files.Open(name, false)
	if err != nil {
		return plan{}, err
	}
	f := &fire{r: b.r, job: j, options: o, all: files.Jobs, previous: b.lastRun(j.ID), slot: o.Slot}
	s := b.r.complete(f.spec())
	record, err := b.r.record(ctx, s)
	if err != nil {
		return plan{}, err
	}
	p := plan{Job: j.ID, Mode: record.Mode, Engine: record.Engine, Model: record.Model, Tools: []string{}, Patterns: record.Tools}
	if j.Plain {
		p.Patterns, p.Prompt = []string{}, j.Body
	} else if err := f.previewRequest(ctx, s, &runlog.Run{Record: record}, &p); err != nil {
		return plan{}, err
	}
	if _, err := f.permit(); err != nil {
		p.Refused = err.Error()
	}
	return p, nil
}

// previewRequest fills in the request to the engine. If the request or the engine cannot be made, that is the reason in Refused.
func (f *fire) previewRequest(ctx context.Context, s Spec, run *runlog.Run, p *plan) error {
	in, err := f.r.input(s, run.Record)
	if err != nil {
		return err
	}
	in = f.foresee(in)
	set := f.r.toolsOf(run, s.Sender)
	request, err := f.r.requestOf(s, run, set)
	if err != nil {
		p.Refused = plaintext.OneLine(err)
	}
	for _, name := range f.job.Skills {
		if _, err := f.r.Skills.Find(name); errors.As(err, new(*plaintext.Unknown)) {
			p.Refused = err.Error()
		}
	}
	request.Session.ID = run.SessionBefore
	if request.Session.ID == "" && run.Parent != "" {
		request.Session.ID, request.Session.Fork = run.Parent, true
	}
	var asked engine.Plan
	made, err := f.r.engineOf(s)
	if err == nil {
		asked, err = made.Plan(request, set)
	}
	switch {
	case errors.Is(err, engine.ErrSessionUnknown):
		request.Session.ID, request.Session.Fork, in.Session = "", false, prompt.Lost
	case err != nil:
		p.Refused = plaintext.OneLine(err)
	}
	if p.Prompt, err = f.r.conversations().Preview(ctx, s.Conversation, run.Engine, in); err != nil {
		return err
	}
	p.Model, p.Thinking, p.System = cmp.Or(asked.Model, p.Model), request.Model.Thinking, request.Input.System
	p.Alone = request.Input.SystemOnly
	p.Session, p.Branch = request.Session.ID, request.Session.Fork
	p.Tools = append(p.Tools, asked.Tools...)
	usable := append(tools.BuiltIns(run.Tools), set.Usable()...)
	p.Refuses = slices.DeleteFunc(slices.Clone(asked.Tools), func(name string) bool {
		return slices.Contains(usable, strings.TrimPrefix(name, "mcp__ollim__"))
	})
	return nil
}
