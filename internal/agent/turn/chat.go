package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// turnOf returns the Spec of a turn in main without its message.
func (t Turns) turnOf(o Options) (run.Spec, error) {
	s, err := t.mainTurn(kindChat, o)
	s.Engine.Model, s.Engine.Thinking = cmp.Or(o.Model, t.r.Settings.Main.Model), cmp.Or(o.Thinking, t.r.Settings.Main.Thinking)
	s.Engine.Needs.Think(o.Thinking, "--thinking")
	s.Policy.Awaited, s.Identity.Typed = true, o.typed()
	s.Policy.Mode = cmp.Or(o.Permissions, policy.Mode(t.r.Settings.Main.Permissions))
	s.Duties = []run.Duty{Forks{t.r}.Enter}
	return s, err
}

// mainTurn returns the Spec of a turn of the owner in the main conversation.
func (t Turns) mainTurn(kind string, o Options) (run.Spec, error) {
	own, _, err := t.r.Patterns(false)
	return run.Spec{
		Identity:     run.Identity{Subject: runlog.Subject{Kind: kind, Job: session.MainKey, Path: session.MainKey}},
		Input:        prompt.Input{Piped: prompt.Piped{Text: o.Input}},
		Conversation: &conversation.Main{Sessions: t.r.Sessions},
		Engine:       run.Choice{Name: o.Engine, Model: o.Model, Thinking: "true"},
		Policy:       run.Rights{System: prompt.SystemMain(t.Profile()), Tools: own, AllowPing: true, Update: job.OnPing, Owner: o.Owner},
		Limits:       run.Limits{Time: turnLimit},
		Observe:      o.Observe,
	}, err
}

// Clear begins a new main conversation, even while a turn of the old one is in progress.
func (t Turns) Clear(ctx context.Context) error {
	id, err := t.r.Sessions.ClearMainNow(ctx)
	if err != nil {
		return err
	}
	if id == "" {
		return errors.New("there is no conversation to clear")
	}
	return t.r.Sessions.Log(ctx, session.Event{SessionID: id, Event: session.Cleared})
}

// CompactSession compacts the main session (routine "") or that of a persistent routine, by the owner's instructions.
func (t Turns) CompactSession(ctx context.Context, routine, instructions string, o Options) (runlog.Record, error) {
	s, err := t.mainTurn(kindSession, o)
	if routine != "" {
		s.Identity = run.Identity{Subject: runlog.Subject{Kind: kindSession, Job: routine, Path: routine}}
		s.Conversation = conversation.Routine{Sessions: t.r.Sessions, ID: routine}
		s.Policy.System, s.Input.Task = "", t.taskOf(routine)
		s.Policy.Tools, _, err = t.r.Patterns(true)
	}
	if s.Compact = instructions; routine == "" {
		s.Engine.Model = cmp.Or(o.Model, t.r.Settings.Main.Model)
	}
	return t.Run(ctx, s, err)
}

// taskOf returns the task from which the system prompt of a routine, named by its id, is made.
func (t Turns) taskOf(routine string) prompt.Task {
	files, err := t.r.Jobs.Outline()
	if err == nil {
		if j, err := files.Open(routine, true); err == nil {
			return prompt.TaskOf(j)
		}
	}
	return prompt.Task{Persistent: true}
}

// maxProfile is the largest profile file that is read, in bytes; each is a part of every prompt.
const maxProfile = 1 << 20

// Profile returns the texts that say who the agent is and whom it works for. Missing files are skipped.
func (t Turns) Profile() string {
	var texts []string
	for _, name := range []string{"IDENTITY.md", "USER.md"} {
		text, err := store.ReadText(t.r.Home.Path(name), maxProfile, false)
		switch {
		case err == nil:
			texts = append(texts, strings.TrimSpace(string(text)))
		case !errors.Is(err, fs.ErrNotExist):
			t.r.Warn(fmt.Errorf("%s: %s", name, store.Cause(err)))
		}
	}
	if t.r.Settings.Names.User != "" {
		texts = append(texts, "Your owner is called "+t.r.Settings.Names.User+".")
	}
	if t.r.Settings.Names.Bot != "" {
		texts = append(texts, "You are called "+t.r.Settings.Names.Bot+".")
	}
	return strings.Join(texts, "\n\n")
}

// PlanOf returns the plan of an engine for a new session. An empty name means the configured engine, an empty model the engine's default.
func (t Turns) PlanOf(name, model string) engine.Plan {
	made, err := t.r.Engines(cmp.Or(name, t.r.Settings.Engine))
	if err != nil {
		return engine.Plan{Model: model}
	}
	plan, _ := made.Plan(engine.Request{Model: engine.Model{Name: model}}, t.r.ToolsOf(&runlog.Run{}, t.r.Outbox)) // the run reports the error
	return plan
}

// ChatPlan returns the plan for the owner's next message. An empty model means that of the open fork, else the configured one.
func (t Turns) ChatPlan(ctx context.Context, model string) engine.Plan {
	fork, _, err := t.r.Sessions.Fork(ctx)
	t.r.Warn(err)
	return t.PlanOf(fork.Engine, cmp.Or(model, fork.Model, t.r.Settings.Main.Model))
}

// channelLimit is the time limit of a channel turn, the same as the default of jobs.
const channelLimit = 30 * time.Minute

// ChatChannel takes one turn of a channel's session, as an automatic run. If the session cannot be saved, the answer is still in the
// record, and the error is a *store.NotWritten.
func (t Turns) ChatChannel(ctx context.Context, name channel.Name, m Message, o Options) (runlog.Record, error) {
	system, err := t.channelPrompt()
	c := &conversation.Channel{Book: t.r.Channels, Name: name, Zone: t.r.Zone}
	spec := t.channelTurn(c, o)
	spec.Identity.Subject = runlog.Subject{Kind: kindChannel, Job: name.String(), Path: name.String(), Answers: slices.DeleteFunc([]string{m.Source}, func(id string) bool { return id == "" })}
	spec.Input.Task.Body, spec.Input.Piped.Files, spec.Policy.System = m.Text, m.Attachments, system
	record, err := t.Run(ctx, spec, err)
	return record, errors.Join(err, c.Unsaved())
}

// channelTurn returns the Spec of a turn in a channel without its message and its system prompt.
func (t Turns) channelTurn(c *conversation.Channel, o Options) run.Spec {
	return run.Spec{
		Input:        prompt.Input{Piped: prompt.Piped{Text: o.Input}},
		Conversation: c,
		Engine:       run.Choice{Name: o.Engine, Model: o.Model, Thinking: "off"},
		Policy:       run.Rights{Tools: t.r.Settings.Channel.AllowedTools, Update: job.Blocked, Awaited: true},
		Limits:       run.Limits{Time: channelLimit, Patience: askPatience},
		Observe:      o.Observe,
	}
}

// channelPrompt returns the system prompt of a channel turn. A CHANNEL.md that cannot be read is an error, because other people read
// the answers.
func (t Turns) channelPrompt() (string, error) {
	path := t.r.Home.Path("CHANNEL.md")
	text, err := store.ReadText(path, maxProfile, false)
	switch own := strings.TrimSpace(string(text)); {
	case errors.Is(err, fs.ErrNotExist), err == nil && own == "":
		return prompt.SystemChannel, nil
	case err == nil:
		return own, nil
	}
	return "", fmt.Errorf("%s: %s", path, store.Cause(err))
}
