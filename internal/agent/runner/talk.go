package runner

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Kinds of runs that are no job's.
const (
	kindChat    job.Kind = "chat"
	kindSession job.Kind = "session"
)

// turnLimit bounds a turn of a conversation whose owner is there to stop it.
const turnLimit = 24 * time.Hour

// Chat is one turn of the main conversation.
func (f *Firer) Chat(ctx context.Context, text string, o Options) (runlog.Record, error) {
	j := job.New(kindChat)
	j.ID, j.Path, j.Body, j.Timeout, j.Thinking = "main", "main", text, turnLimit, "off"
	return f.run(ctx, errand{job: j, options: o})
}

// CompactSession compacts the main session (routine "") or that of a persistent routine, by the owner's instructions.
func (f *Firer) CompactSession(ctx context.Context, routine, instructions string, o Options) (runlog.Record, error) {
	j := job.New(kindSession)
	j.ID, j.Path, j.Timeout = "main", "main", turnLimit
	if routine != "" {
		j.ID, j.Path, j.Background, j.Session = routine, routine, true, "persistent"
	}
	o.Compact = instructions
	return f.run(ctx, errand{job: j, options: o})
}

// CompactTranscript compacts a session that has no name, such as that of a question at a shell, by the owner's instructions.
func (f *Firer) CompactTranscript(ctx context.Context, t transcript.Transcript, instructions string, o Options) (runlog.Record, error) {
	j := job.New(job.Ask)
	j.ID, j.Path, j.Timeout = t.ID, t.ID, turnLimit
	o.Compact = instructions
	return f.run(ctx, errand{job: j, options: o, question: Question{Root: t.Cwd, Session: t.ID}})
}

// closeLast ends the record of the last turn of the conversation, if that died without a word.
func (f *Firer) closeLast(j job.Job) {
	routine := ""
	if j.Background {
		routine = j.ID
	}
	last, err := f.Runs.Load(strings.TrimSpace(lock.ReadNote(f.Home.SessionLock(routine))))
	if err == nil && (last.Kind == string(kindChat) || last.Kind == string(kindSession)) && !last.Done() && !f.Runs.Alive(last) {
		_, err := f.Runs.Close(last.ID)
		f.warn(err)
	}
}

func (f *Firer) compactNow(ctx context.Context, talk *conversation.Talk, request engine.Request, r *runlog.Run, instructions string) error {
	if talk.Session() == "" {
		return errors.New("there is no session to compact yet")
	}
	if err := r.Event(ctx, runlog.Event{Type: runlog.CompactWish, Text: instructions}); err != nil {
		return err
	}
	return talk.Compact(ctx, request)
}
