package run_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// talker is an engine that continues one session.
type talker struct{ runtest.Fake }

func (e talker) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	result, err := e.Fake.Run(ctx, r, tools, sink)
	result.Session = "s"
	return result, err
}

// TestPastOfASession: the past of a session is known however many other runs there were since, and only as far as it is wanted.
func TestPastOfASession(t *testing.T) {
	t.Parallel()
	r := runtest.New(t, talker{runtest.Plays(nil, runlog.Event{Type: runlog.Session, Session: "s"}, runlog.Event{Type: runlog.UsageEvent, Usage: &runlog.Usage{In: 10, Out: 1}})})
	r.Spend.Limits.RunsPerDay = 10_000
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	r.Disk.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	text := "---\nid: weekly\ncron: \"@weekly\"\nbackground: true\nsession: persistent\nupdate-main-session: freely\n---\nGo.\n"
	if err := store.Replace(r.Home.Path("routines", "weekly.md"), []byte(text)); err != nil {
		t.Fatal(err)
	}
	var last runlog.Record
	var ids []string
	for range 3 {
		var err error
		if last, err = fire.New(r).Fire(t.Context(), "weekly", fire.Options{}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, last.ID)
	}
	for n := range run.PastRecords + 1 {
		other := last
		other.ID, other.Job, other.Key = fmt.Sprintf("20260302T100000.%03dZ-aaaaaa", n), "other", ""
		if err := store.WriteJSON(r.Home.Run(other.ID, "run.json"), other, store.Buffered); err != nil {
			t.Fatal(err)
		}
	}
	next, err := fire.New(r).Fire(t.Context(), "weekly", fire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if next.Previous != last.ID {
		t.Errorf("previous %q, want %q", next.Previous, last.ID)
	}
	var got []string
	for _, old := range r.Past(next, 2) {
		got = append(got, old.ID)
	}
	if want := []string{ids[2], ids[1]}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}
