package tick

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/acp"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// pruneTranscripts removes the transcripts of forked and isolated runs and of interactive forks that nothing refers to and that were not
// written in the week before an instant, and those that a compaction replaced long ago. Sessions that the claude command keeps of runs that
// were not sealed are left to it.
func (c cleaner) pruneTranscripts(ctx context.Context, at time.Time) error {
	f, before := c.m.Runner, at.Add(-session.ReplyLimit)
	list, _, err := transcript.Dir(f.Home.Sessions()).List("", nil)
	if err != nil {
		return err
	}
	played, err := script.Sessions(f.Home)
	sealed, sealedErr := (&claudecode.Engine{Home: f.Home}).Sessions()
	agents, agentsErr := acp.Sessions(f.Home)
	list = slices.Concat(list, played, sealed, agents)
	if err = errors.Join(err, sealedErr, agentsErr); err != nil || len(list) == 0 {
		return err
	}
	alone, err := f.Sessions.Alone()
	if err != nil {
		return err
	}
	current, err := f.Sessions.Current()
	if err != nil {
		return err
	}
	for id := range current {
		delete(alone, id) // it became the session of a routine
	}
	fork, _, err := f.Sessions.Fork(ctx)
	if err != nil {
		return err
	}
	delete(alone, fork.Session)
	delete(alone, fork.Parent) // which its first turn branches
	kept := named(list, alone)
	c.replaced(list, kept, current, fork, at)
	for _, t := range list {
		switch holder := engine.Holder(t.ID); {
		case kept[t.ID] || !t.Modified.Before(before):
		case t.Provider == engine.ClaudeCode, t.Provider == engine.ACP:
			err = errors.Join(err, store.RemoveAll(ctx, t.Path))
		case holder == engine.Native || holder == engine.Script:
			err = errors.Join(err, store.Remove(t.Path))
		}
	}
	return err
}

// sweepObjects removes objects (files that models saw, texts that were approved) to which no transcript, record of a run or approval refers
// any more and which were not shown within a day.
func (c cleaner) sweepObjects(ctx context.Context) error {
	f := c.m.Runner
	if !f.Objects.Any() {
		return nil
	}
	shown, err := transcript.Dir(f.Home.Sessions()).Objects()
	if err != nil {
		return err
	}
	runs, err := f.Runs.After(time.Time{}) // all
	if err != nil {
		return err
	}
	sent, err := f.Requests.Named(runs)
	if err != nil {
		return err
	}
	approved, err := f.Approvals.Kept()
	if err != nil {
		return err
	}
	return f.Objects.Sweep(ctx, c.m.now().Add(-24*time.Hour), func(hash string) bool { return shown[hash] || sent[hash] || approved[hash] })
}

// named returns the sessions that are not in alone, and all sessions that they came from.
func named(list []transcript.Summary, alone map[string]bool) map[string]bool {
	parent := map[string]string{}
	for _, t := range list {
		parent[t.ID] = t.ParentID
	}
	kept := map[string]bool{}
	for _, t := range list {
		if alone[t.ID] {
			continue
		}
		for id := t.ID; id != "" && !kept[id]; id = parent[id] {
			kept[id] = true
		}
	}
	return kept
}
