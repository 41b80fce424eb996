package run

import (
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Again is a recorded run as it would begin with the program and the files of today.
type Again struct {
	Record  runlog.Record  // the rights are those of today, what happened is that of the record
	Request engine.Request // without a prompt and a session
	Prompt  runlog.Prompt
	At      time.Time  // the time in the prompt
	Tools   *tools.Set // only to list tools and to judge uses: nothing of it may be executed
	Retries int        // how often the checker of the job may have the agent correct its work
}

// Rebuild returns a recorded run as it would begin today by a Spec. Prompt and request are made as in Run; past has the inputs of the prompt.
// Nothing is written, and nothing is started. The error is one of the settings, or of the origin's Complete.
func Rebuild(r *Runner, s Spec, then runlog.Record, past prompt.Past) (a Again, err error) {
	s = r.complete(s)
	zone := r.Zone
	then.Started = then.Started.In(zone)
	now := past.Now(zone)
	quiet := *r // a copy with the clock of the run
	quiet.Disk.Now = func() time.Time { return now }
	r = &quiet

	a.At, a.Record = now, asToday(s, then, r.Settings.modelOf(s.Engine))
	run := &runlog.Run{Record: a.Record}
	a.Tools = r.ToolsOf(run, s.Sender)
	in, err := r.input(s, a.Record)
	if err != nil {
		return a, err
	}
	in.Updates.Kept = s.Conversation.Updates().Keeps()
	a.Prompt = prompt.Build(past.Fill(in))
	a.Request, err = r.requestOf(s, run, a.Tools)
	return a, err
}

// asToday returns a record with the rights of a Spec and a model, and nothing that only the end of the run has shown.
func asToday(s Spec, then runlog.Record, model string) runlog.Record {
	traits := s.Conversation.Traits()
	now := then
	now.Mode, now.Foreground, now.Shared, now.Persistent, now.Key = traits.Mode, traits.Foreground, traits.Shared, traits.Persistent, s.Conversation.Key()
	now.AllowPing, now.Update, now.Tools, now.Skills = s.Policy.AllowPing, string(s.Policy.Update), s.Policy.Tools, s.Input.Task.Skills
	now.Dirs, now.Root, now.MayAsk = nil, s.Policy.Root, false
	for _, root := range s.Policy.Dirs {
		now.Dirs = append(now.Dirs, DirOf(root))
	}
	if then.Continued == 0 || then.Fallback == "" {
		now.Model, now.Fallback = model, ""
	}
	return now
}
