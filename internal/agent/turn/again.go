package turn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// ErrNoTurn is the error of a recorded run that is no turn of a conversation.
var ErrNoTurn = errors.New("no turn of a conversation")

// Again returns a recorded turn as it would begin today, see run.Rebuild. system is the system prompt that was sent then; "" if it is
// not known. What the person said and typed for the turn is that of the record. The error of a run of another kind is an ErrNoTurn.
func (t Turns) Again(record runlog.Record, past prompt.Past, system string) (run.Again, error) {
	s, err := t.again(record, past, system)
	if err != nil {
		return run.Again{}, err
	}
	s.Origin = &turnOrigin{runner: t.r, owner: record.Owner}
	s.Engine.Name = record.Engine
	if slices.Contains(record.Typed, runlog.TypedModel) {
		s.Engine.Model = record.Model
	}
	return run.Rebuild(t.r, s, record, past)
}

func (t Turns) again(record runlog.Record, past prompt.Past, system string) (run.Spec, error) {
	o := Options{Engine: record.Engine, Permissions: policy.Mode(record.Permissions), Owner: record.Owner}
	task := prompt.Task{Tag: past.Tag(), Body: past.Body()}
	if slices.Contains(record.Typed, runlog.TypedThinking) {
		o.Thinking = record.Thinking
	}
	switch {
	case record.Kind == runlog.Ask:
		return t.askAgain(record, task, system, o), nil
	case record.Kind == kindChannel:
		s := t.channelTurn(&conversation.Channel{}, o)
		text, err := t.channelPrompt()
		s.Policy.System, s.Input.Task, s.Engine.Model = text, task, record.Model // the model is the messenger's
		return s, err
	case record.Kind == kindChat && record.Key == session.MainKey:
		s, err := t.turnOf(o)
		s.Input.Task = task
		return s, err
	case record.Key == session.ForkKey:
		s, err := t.turnOf(o)
		s.Conversation = &conversation.Fork{Sessions: t.r.Sessions}
		s.Engine.Thinking = t.r.Settings.Main.ThinkingOr(t.r.Settings.Main.Forks)
		s.Input.Task = t.forkTask(task)
		if f, _ := prompt.PastFork(task.Body); f.Resumed { // it asks the model of the run that it branches
			s.Engine.Model = record.Model
		}
		return s, err
	}
	return run.Spec{}, fmt.Errorf("%w: it is of the kind %s", ErrNoTurn, record.Kind)
}

// forkTask returns the message of a turn in a fork, with what ollim says in it as it says that today.
func (t Turns) forkTask(then prompt.Task) prompt.Task {
	now := then
	switch then.Tag {
	case tagFork:
		f, said := prompt.PastFork(then.Body)
		if now.Body = prompt.ForkStarted(f); said != "" {
			now.Body += "\n\n" + said
		}
	case tagTimeout:
		now.Body = prompt.ForkTimeout(prompt.PastTimeout(then.Body))
	case tagSystem:
		now.Body = prompt.ForkReport
	}
	return now
}

// Tags of the messages in forks that ollim writes.
const (
	tagFork    = "fork-started"
	tagTimeout = "fork-timeout"
	tagSystem  = "system"
)

// askAgain returns the Spec of a recorded question. The directories, the patterns and what was added to the system prompt were typed.
func (t Turns) askAgain(record runlog.Record, task prompt.Task, system string, o Options) run.Spec {
	q := Question{Root: record.Root, Tools: record.Tools, Dirs: t.r.ToolsOf(&runlog.Run{Record: record}, nil).Roots()[1:]}
	if slices.Contains(record.Typed, runlog.TypedSystem) {
		q.System = system
	}
	s := t.question(record.Job, q, o)
	if q.System == "" {
		s.Policy.System = prompt.WithMore(system)
	}
	s.Conversation, s.Policy.Update = conversation.Question{}, job.Blocked
	s.Input.Task = task
	return s
}
