package run

import (
	"context"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// A run waits for an overloaded service until a quarter of its time is used, or longestWait, before it asks another model.
const (
	waitShare   = 4
	longestWait = 5 * time.Minute
)

// models is what a run does about a model that cannot be used.
type models struct {
	r    *Runner
	spec Spec
	run  *runlog.Run
}

// fallback returns what the run asks if its model cannot be used.
func (m models) fallback() conversation.Fallback {
	if len(m.spec.Engine.Fallback) == 0 {
		return conversation.Fallback{}
	}
	limits := m.spec.Limits
	wait := min(limits.Time/waitShare, longestWait)
	if limits.Patience > 0 {
		wait = min(wait, limits.Patience)
	}
	return conversation.Fallback{Models: m.spec.Engine.Fallback, Table: m.r.Settings.Models(), Patience: wait}
}

// asked returns the model that a run asks: the requested one, or the one that answered before a run continues with the owner's answer.
func asked(run *runlog.Run) string {
	if run.Fallback != "" && run.Continued > 0 {
		return run.ModelUsed
	}
	return run.Model
}

// report notifies the owner that another model than the requested one has answered, and closes the cause of a model that answers again
// or that a job does not ask any more.
func (m models) report(ctx context.Context) {
	book := m.r.Notify()
	switch {
	case m.run.Turns == 0:
		return
	case m.run.Fallback != "":
		_, err := book.Open(ctx, notify.Substitute(m.run.Record, m.id(m.run.Model), m.setting()))
		m.r.Warn(err)
		return
	}
	open, err := book.OpenCauses()
	m.r.Warn(err)
	for key, e := range open {
		_, concerned := e.Jobs[m.run.Job]
		switch {
		case e.Kind != string(notify.Model) || m.run.Started.Before(e.Since):
		case e.Subject == m.id(m.run.ModelUsed):
			m.r.Warn(book.Close(ctx, key, ""))
		case concerned:
			m.r.Warn(book.Spare(ctx, key, m.run.Job, "is not asked any more"))
		}
	}
}

func (m models) id(name string) string { return conversation.Named(m.r.Settings.Models(), name).ID }

// setting says which setting chooses the run's model.
func (m models) setting() string {
	switch chosen := m.spec.Engine.Model; {
	case chosen != "" && m.run.Foreground && chosen == m.r.Settings.Main.Model:
		return "`ollim config set chat.model MODEL`"
	case m.run.OfJob() && chosen == "" && m.run.Engine == engine.Native:
		return "`ollim config set native.model MODEL`"
	case m.run.Kind == string(job.Reminder):
		return "set model: in " + m.run.Path
	case m.run.OfJob():
		return fmt.Sprintf("set model: with `ollim %s edit %s`", m.run.Kind, m.run.Name)
	case chosen != "":
		return "ask with `--model MODEL`"
	case m.run.Engine == engine.Native:
		return "`ollim config set native.model MODEL`"
	}
	return "`ollim config set chat.model MODEL`"
}
