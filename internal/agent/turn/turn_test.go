package turn

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// killed leaves the record of a run that a killed process had begun in the main conversation, and a temporary file of it.
func killed(t *testing.T, r *run.Runner, kind string) (id, temporary string) {
	t.Helper()
	id, err := runlog.NewID(r.Disk.Now(), r.Random)
	if err == nil {
		_, err = r.Runs.Open(runlog.Record{ID: id, Started: r.Disk.Now(), Key: session.MainKey, Subject: runlog.Subject{Kind: kind}})
	}
	var guard *lock.Guard
	if err == nil {
		guard, err = lock.TryGuard(r.Home.ConversationLock(session.MainKey))
	}
	if err == nil {
		temporary = filepath.Join(r.Host.Sealing.Temp, "ollim-"+id+"-1")
		err = errors.Join(guard.Note(id+"\n"), os.Mkdir(temporary, 0o700))
		guard.Release()
	}
	if err != nil {
		t.Fatal(err)
	}
	return id, temporary
}

// TestRecordOfAKilledTurn: the next turn of a conversation ends the record of the last one if its process died, and removes its temporary
// files. The records of jobs are ended by what fires them.
func TestRecordOfAKilledTurn(t *testing.T) {
	t.Parallel()
	for kind, ended := range map[string]bool{kindChat: true, kindSession: true, kindFork: true, "routine": false} {
		r := runtest.New(t, &agent{})
		r.Host.Sealing.Temp = t.TempDir()
		id, temporary := killed(t, r, kind)
		if _, err := (Queue{r}).Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true}); err != nil {
			t.Fatal(err)
		}
		record, err := r.Runs.Load(id)
		if err != nil || record.Done() != ended || (record.Outcome == runlog.Interrupted) != ended {
			t.Errorf("%s: %+v, %v", kind, record, err)
		}
		if _, err := os.Stat(temporary); errors.Is(err, os.ErrNotExist) != ended {
			t.Errorf("%s: temporary files: %v", kind, err)
		}
	}
}

// TestRecordOfATurnInProgress: a turn that waits for another one's end leaves its record alone, and warns if it cannot end one.
func TestRecordOfATurnInProgress(t *testing.T) {
	t.Parallel()
	var warned []string
	r := runtest.New(t, &agent{})
	r.Host.Sealing.Temp = t.TempDir()
	r.Disk.Warn = func(text string) { warned = append(warned, text) }
	id, _ := killed(t, r, kindChat)
	origin := &turnOrigin{runner: r}
	held, err := r.Runs.Hold(id)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(key string) runlog.Record {
		if err := origin.Begin(&runlog.Record{Key: key, Subject: runlog.Subject{Kind: kindChat}}); err != nil {
			t.Error(err)
		}
		record, err := r.Runs.Load(id)
		if err != nil {
			t.Error(err)
		}
		return record
	}
	if record := begin(session.MainKey); record.Done() || len(warned) > 0 {
		t.Errorf("in progress: %+v, warned %q", record, warned)
	}
	held.Leave()
	for _, other := range []string{"", session.ForkKey} {
		if record := begin(other); record.Done() || len(warned) > 0 {
			t.Errorf("key %q: %+v, warned %q", other, record, warned)
		}
	}
	if err := os.Mkdir(r.Home.Run(id, "events.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if begin(session.MainKey); len(warned) != 1 || !strings.Contains(warned[0], "events.jsonl") {
		t.Errorf("warned %q", warned)
	}
}

// TestPausedTurn: while everything is paused only the owner's turns run. The owner hears of a refused turn that they did not begin.
func TestPausedTurn(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		owner, pause, limit bool
		outcome             runlog.Outcome
		told                bool
	}{
		"paused":       {pause: true, outcome: runlog.Paused},
		"owner paused": {owner: true, pause: true, outcome: runlog.OK},
		"limit":        {limit: true, outcome: runlog.Refused, told: true},
		"owner":        {owner: true, limit: true, outcome: runlog.OK},
	} {
		a := &agent{}
		r := runtest.New(t, a)
		if c.limit {
			r.Spend.Limits.RunsPerDay = 1
			if _, err := New(r).Ask(t.Context(), Question{Text: "How?"}, Options{}); err != nil {
				t.Fatal(err)
			}
			a.asked = nil
		}
		if c.pause {
			if err := r.Spend.Pause(t.Context(), time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		record, err := New(r).Ask(t.Context(), Question{Text: "Why?"}, Options{Owner: c.owner})
		if record.Outcome != c.outcome || (err == nil) != (c.outcome == runlog.OK) || (len(a.asked) == 1) != (err == nil) {
			t.Errorf("%s: %+v, %v", what, record, err)
		}
		if told := !r.Notices.Empty(); told != c.told {
			t.Errorf("%s: told %v", what, told)
		}
	}
}
