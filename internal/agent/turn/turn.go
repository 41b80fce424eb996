// Package turn takes turns that a person asked for: messages in the main conversation, its forks and channels, replies to what the agent
// has sent, and questions at a shell. What every run has is in package run.
package turn

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Turns takes turns that a person asked for.
type Turns struct {
	r *run.Runner

	Forks   Forks
	Queue   Queue
	Replies Replies
}

// New returns the Turns of a runner.
func New(r *run.Runner) Turns { return Turns{r, Forks{r}, Queue{r}, Replies{r}} }

// Options override the settings for one turn.
type Options struct {
	Engine      string      // "" is the configured one
	Model       string      // "" is the owner's setting
	Input       string      // added to the prompt as data
	Thinking    string      // of the main conversation; "" is the owner's setting
	Permissions policy.Mode // of the main conversation; "" is the owner's setting
	Owner       bool        // the owner typed it: its cost is counted, but no limit or pause applies
	Observe     run.Observer
	Queued      func(queue.Place) // called if the owner's message must wait for others; may be nil
}

// typed returns which of the options the record of a run names, because they stand in place of settings.
func (o Options) typed() (names []string) {
	if o.Model != "" {
		names = append(names, runlog.TypedModel)
	}
	if o.Thinking != "" {
		names = append(names, runlog.TypedThinking)
	}
	return names
}

// Message is a message to the agent in a conversation.
type Message struct {
	Tag         string // tag of the prompt if somebody else wrote Text; "": the owner wrote it
	Text        string
	Attachments []engine.Attachment
	Group       string // messages of one group that wait together are answered by one turn; "": alone
	First       bool   // it stops the owner's turn in progress and is answered before the messages that wait
	Source      string // the id that a messenger gave it
}

// Kinds of runs that have no job.
const (
	kindChat    = "chat"
	kindSession = "session"
	kindChannel = "channel"
	kindFork    = "fork"
)

// turnLimit bounds a turn whose owner is there to stop it.
const turnLimit = 24 * time.Hour

// Run runs a Spec that has no job. wrong is an error of the settings that refuses it, or nil.
func (t Turns) Run(ctx context.Context, s run.Spec, wrong error) (runlog.Record, error) {
	s.Origin = &turnOrigin{runner: t.r, owner: s.Policy.Owner, wrong: wrong}
	return t.r.Run(ctx, s)
}

// turnOrigin is the origin of a run that has no job.
type turnOrigin struct {
	runner *run.Runner
	owner  bool
	wrong  error
}

// Begin ends the record of the conversation's last turn, if its process died.
func (o *turnOrigin) Begin(record *runlog.Record) error {
	if record.Key == "" {
		return nil
	}
	r := o.runner
	last, err := r.Runs.Noted(r.Home.ConversationLock(record.Key))
	if err == nil && slices.Contains([]string{kindChat, kindSession, kindFork, record.Kind}, last.Kind) && !last.Done() && !r.Runs.Alive(last) {
		_, err := r.Runs.Close(last.ID)
		r.Warn(errors.Join(err, r.Host.Sealing.Clear(context.Background(), last.ID)))
	}
	return nil
}

func (o *turnOrigin) Permit() error {
	if err := o.runner.Paused(o.owner); err != nil {
		return err
	}
	return o.wrong
}

func (o *turnOrigin) Prepare(_ context.Context, _ *tools.Set, in prompt.Input) (prompt.Input, error) {
	return in, nil
}

func (o *turnOrigin) Complete(*engine.Request) error { return nil }

func (o *turnOrigin) Postpone(context.Context, *runlog.Run, *run.Later) error { return nil }

// End has nothing to do.
func (o *turnOrigin) End(context.Context, *tools.Set, error) {}

// Report reports a refusal. A command that the owner typed reports by its exit status and output.
func (o *turnOrigin) Report(ctx context.Context, run *runlog.Run, cause error) {
	if run.Outcome == runlog.Refused && !o.owner {
		o.runner.ReportRefusal(ctx, run.Record, cause, 1)
	}
}
