package tick

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/distil"
	"github.com/ollim/ollim/internal/engine/acp"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Retain is how long what is not a run's record is kept, in days; 0 is for ever.
type Retain struct {
	Idle        int // records of fires that did nothing; 0: as other records
	Transcripts int // after a compaction has replaced them
	History     int // events of sessions, and the facts of the ledger
}

// before returns the instant so many days earlier; zero if days is 0.
func (Retain) before(at time.Time, days int) time.Time {
	if days == 0 {
		return time.Time{}
	}
	return at.AddDate(0, 0, -days)
}

// didNothing reports whether a fire ended before an engine was called. The outcome of its slot says all about it.
func didNothing(r runlog.Record) bool {
	return r.Outcome == runlog.Gated || r.Outcome == runlog.Skipped || r.Outcome == runlog.Paused
}

// pruneBacktests removes the backtests and the distils that began before an instant, like the runs that they are about. An entry without a valid id counts as old.
func (c cleaner) pruneBacktests(ctx context.Context, before time.Time) (err error) {
	home := c.m.Runner.Home
	return errors.Join(
		pruneDirs(ctx, home.State("backtests"), before, func(id string) bool { return !lock.Free(home.Backtest(id, "lock")) }),
		pruneDirs(ctx, home.State("distils"), before, distil.Book{Home: home}.Placed), // the verdict of a gate stays
	)
}

// pruneDirs removes the directories in dir whose names are ids from before an instant, except those that keep names.
func pruneDirs(ctx context.Context, dir string, before time.Time, keep func(id string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if runlog.Began(e.Name()).Before(before) && !keep(e.Name()) && ctx.Err() == nil {
			err = errors.Join(err, store.RemoveAll(ctx, filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// replaced removes from kept the transcripts that a compaction replaced long ago; the compacted session begins with their summary. A
// current session, an open fork, its parent, and a transcript that was written lately stay.
func (c cleaner) replaced(list []transcript.Summary, kept map[string]bool, current map[string]string, fork session.Fork, at time.Time) {
	before := c.m.Retain.before(at, c.m.Retain.Transcripts)
	modified := map[string]time.Time{}
	for _, t := range list {
		modified[t.ID] = t.Modified
	}
	for _, t := range list {
		if written, there := modified[t.ParentID]; !t.Compacted || !there || !written.Before(before) {
			continue
		}
		if _, is := current[t.ParentID]; !is && t.ParentID != fork.Session && t.ParentID != fork.Parent {
			delete(kept, t.ParentID)
		}
	}
}

// pruneHistory removes events of sessions and fates of updates from before an instant; the zero time: none. Events of a session whose
// transcript still exists stay.
func (c cleaner) pruneHistory(ctx context.Context, before time.Time) error {
	if before.IsZero() {
		return nil
	}
	f := c.m.Runner
	known, err := f.Sessions.Current()
	if err != nil {
		return err
	}
	fork, _, err := f.Sessions.Fork(ctx)
	if err != nil {
		return err
	}
	list, _, err := transcript.Dir(f.Home.Sessions()).List("", nil)
	if err != nil {
		return err
	}
	played, err := script.Sessions(f.Home)
	if err != nil {
		return err
	}
	sealed, err := (&claudecode.Engine{Home: f.Home}).Sessions()
	if err != nil {
		return err
	}
	agents, err := acp.Sessions(f.Home)
	if err != nil {
		return err
	}
	there := map[string]bool{fork.Session: true, fork.Parent: true}
	for _, t := range slices.Concat(list, played, sealed, agents) {
		there[t.ID] = true
	}
	for id := range known {
		there[id] = true
	}
	if err := f.Sessions.Trim(ctx, before, func(id string) bool { return there[id] }); err != nil {
		return err
	}
	return f.Ledger.Trim(ctx, before)
}
