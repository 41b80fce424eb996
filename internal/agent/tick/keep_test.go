package tick_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// TestIdleRuns: the records of fires that did nothing go before those of others; their slots stay as long as those of others.
func TestIdleRuns(t *testing.T) {
	c := newClock(t)
	c.routine("a", "0 9 * * *", "")
	c.minute.Keep, c.minute.Retain = 90, tick.Retain{Idle: 14}
	c.tick()
	var ids []string
	for _, outcome := range []runlog.Outcome{runlog.OK, runlog.Gated, runlog.Paused, runlog.Skipped, runlog.Refused} {
		r := c.fire("a")
		r.Outcome = outcome
		if err := store.WriteJSON(c.home.Run(r.ID, "run.json"), r, store.Buffered); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
		c.wait(time.Second)
	}
	there := func() (list []string) {
		for _, id := range ids {
			if r, err := c.minute.Runner.Runs.Load(id); err == nil {
				list = append(list, string(r.Outcome))
			}
		}
		return list
	}
	for range 14 {
		c.wait(24 * time.Hour)
		c.tick()
	}
	if got := strings.Join(there(), " "); got != "ok gated paused skipped refused" {
		t.Errorf("after two weeks: %s", got)
	}
	for range 20 {
		c.wait(24 * time.Hour)
		c.tick()
	}
	if got := strings.Join(there(), " "); got != "ok refused" {
		t.Errorf("after five weeks: %s", got)
	}
}

// TestReplacedTranscripts: what a compaction has replaced goes after its time; a current session, and what is said of sessions that are
// still there, stays.
func TestReplacedTranscripts(t *testing.T) {
	c := newClock(t)
	c.minute.Keep, c.minute.Retain = 10, tick.Retain{Transcripts: 20, History: 30}
	book := c.minute.Runner.Sessions
	paths := map[string]string{}
	for _, s := range []struct {
		id, parent string
		compacted  bool
	}{{"n-first", "", false}, {"n-second", "n-first", true}, {"n-main", "n-second", true}, {"n-branch", "n-second", false}, {"n-alone", "", false}} {
		file, err := transcript.Dir(c.home.Sessions()).Create(transcript.Header{
			ID: s.id, Cwd: string(c.home), Provider: "anthropic", Timestamp: c.now, ParentID: s.parent, Compacted: s.compacted,
		})
		event := session.Event{SessionID: s.id, ParentSessionID: s.parent, Event: session.Created}
		if err = errors.Join(err, book.Log(t.Context(), event), os.Chtimes(file.Path, c.now, c.now)); err != nil {
			t.Fatal(err)
		}
		paths[s.id] = file.Path
	}
	err := errors.Join(book.SetMain("n-main"), book.Log(t.Context(), session.Event{SessionID: "n-gone", Event: session.IsolatedBg}),
		c.minute.Runner.Updates.Add(t.Context(), "old", "owner"))
	if _, clearErr := c.minute.Runner.Updates.Clear(t.Context(), "owner"); errors.Join(err, clearErr) != nil {
		t.Fatal(err, clearErr)
	}
	if err := c.minute.Runner.Updates.Add(t.Context(), "pending", "owner"); err != nil {
		t.Fatal(err)
	}
	state := func() string {
		var there []string
		for _, id := range []string{"n-first", "n-second", "n-main", "n-branch", "n-alone"} {
			if _, err := os.Stat(paths[id]); err == nil {
				there = append(there, id)
			}
		}
		for e, err := range book.History(nil) {
			if err != nil {
				t.Fatal(err)
			}
			if e.SessionID == "n-gone" {
				there = append(there, "event")
			}
		}
		list, err := c.minute.Runner.Updates.Peek(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 1 || list[0].By != "owner" {
			t.Errorf("who reported the pending update: %+v", list)
		}
		for f, err := range c.minute.Runner.Updates.Fates(time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			there = append(there, f.Message)
		}
		return strings.Join(there, " ")
	}
	c.tick()
	for range 20 {
		c.wait(24 * time.Hour)
		c.tick()
	}
	if got := state(); got != "n-first n-second n-main n-branch n-alone event old" {
		t.Errorf("within the time: %s", got)
	}
	if err := c.minute.Runner.Heartbeats.Done(t.Context(), heartbeat.Calls{"a": {}}); err != nil { // the newest day of the ledger stays
		t.Fatal(err)
	}
	for range 15 {
		c.wait(24 * time.Hour)
		c.tick()
	}
	if got := state(); got != "n-main n-branch n-alone" {
		t.Errorf("after the time: %s", got)
	}
}

// TestOldBacktests: a backtest goes with the runs of its time, unless it is carried out.
func TestOldBacktests(t *testing.T) {
	c := newClock(t)
	c.minute.Keep = 10
	var ids []string
	for _, at := range []time.Time{c.now, c.now.AddDate(0, 0, 30)} {
		id, err := runlog.NewID(at, strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Replace(c.home.Backtest(id, "plan.json"), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	busy, err := c.minute.Runner.Disk.Locks.TryGuard(c.home.Backtest(ids[0], "lock"))
	if err != nil {
		t.Fatal(err)
	}
	there := func(days int) (list []bool) {
		for range days {
			c.tick()
			c.wait(24 * time.Hour)
		}
		for _, id := range ids {
			list = append(list, store.Exists(c.home.Backtest(id, "plan.json")))
		}
		return list
	}
	if got := there(25); !got[0] || !got[1] {
		t.Errorf("a backtest that is carried out is gone: %v", got)
	}
	busy.Release()
	if got := there(5); got[0] || !got[1] {
		t.Errorf("an old backtest stays, or a new one goes: %v", got)
	}
}
