package run

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// pastRun is a run of a conversation that ended a minute after it started.
func pastRun(minute string, change func(*runlog.Record)) runlog.Record {
	started, err := time.Parse(time.RFC3339, "2026-03-02T09:"+minute+":00Z")
	if err != nil {
		panic(err)
	}
	finished := started.Add(time.Minute)
	r := runlog.Record{
		ID: "20260302T09" + minute + "00.000Z-aaaaaa", Mode: "m", Key: "k", Engine: "e", Model: "one", Shared: true,
		Started: started, Finished: &finished, Usage: runlog.Usage{In: 1}, Requests: 3,
	}
	if change != nil {
		change(&r)
	}
	return r
}

// TestPastOfARun: the past of a run are the ended runs of the same conversation, mode and engine that reached the engine, newest first. It
// leads from each to the one before, or without a key through all that began earlier.
func TestPastOfARun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*runlog.Record){
		"counts":             nil,
		"another mode":       func(r *runlog.Record) { r.Mode = "other" },
		"another key":        func(r *runlog.Record) { r.Key = "other" },
		"another engine":     func(r *runlog.Record) { r.Engine = "other" },
		"in progress":        func(r *runlog.Record) { r.Finished = nil },
		"reached no engine":  func(r *runlog.Record) { r.Usage = runlog.Usage{} },
		"began later":        func(r *runlog.Record) { r.ID = "20260302T095900.000Z-aaaaaa" },
		"begins it all anew": func(r *runlog.Record) { r.Previous = "" },
	} {
		for _, key := range []string{"k", ""} {
			with := func(r *runlog.Record) { r.Key = key }
			r, _ := bench(t, runlog.Record{})
			oldest := pastRun("01", with)
			middle := pastRun("02", func(r *runlog.Record) {
				with(r)
				if r.Previous = oldest.ID; change != nil {
					change(r)
				}
			})
			latest := pastRun("03", func(r *runlog.Record) { with(r); r.Previous = middle.ID })
			for _, old := range []runlog.Record{oldest, middle, latest} {
				if err := store.WriteJSON(r.Home.Run(old.ID, "run.json"), old, store.Buffered); err != nil {
					t.Fatal(err)
				}
			}
			now := pastRun("04", func(r *runlog.Record) { with(r); r.Previous = latest.ID; r.Finished = nil })
			want := latest.ID + " "
			later := name == "began later"
			if change == nil || name == "begins it all anew" || later && key != "" {
				want += middle.ID + " "
			}
			if name != "begins it all anew" || key == "" {
				want += oldest.ID + " "
			}
			got := ""
			for _, old := range r.past().of(now, 5) {
				got += old.ID + " "
			}
			if got != want {
				t.Errorf("%s, key %q: %s, want %s", name, key, got, want)
			}
			if one := r.past().of(now, 1); len(one) != 1 || one[0].ID != latest.ID {
				t.Errorf("%s, key %q: the latest is %v", name, key, one)
			}
		}
	}
}

// TestPastOfABranch: only the latest records are searched for branches.
func TestPastOfABranch(t *testing.T) {
	t.Parallel()
	r, _ := bench(t, runlog.Record{})
	branch := func(r *runlog.Record) { r.Key = "" }
	old, now := pastRun("01", branch), pastRun("59", branch)
	write := func(record runlog.Record) {
		t.Helper()
		if err := store.WriteJSON(r.Home.Run(record.ID, "run.json"), record, store.Buffered); err != nil {
			t.Fatal(err)
		}
	}
	write(old)
	for n := range pastRecords {
		if n == pastRecords-1 {
			if got := r.past().of(now, 5); len(got) != 1 || got[0].ID != old.ID {
				t.Errorf("behind %d others: %+v", n, got)
			}
		}
		other := pastRun("02", func(r *runlog.Record) { r.ID = fmt.Sprintf("20260302T0902%02d.%03dZ-aaaaaa", n/60, n%60) })
		write(other)
	}
	if got := r.past().of(now, 5); len(got) > 0 {
		t.Errorf("behind %d others: %+v", pastRecords, got)
	}
}

// TestPreviousRun: the run before is the one that the conversation's lock notes; a run that continues has its own predecessor.
func TestPreviousRun(t *testing.T) {
	t.Parallel()
	r, _ := bench(t, runlog.Record{})
	continues := pastRun("02", func(r *runlog.Record) { r.Previous = "before" })
	if err := store.WriteJSON(r.Home.Run(continues.ID, "run.json"), continues, store.Buffered); err != nil {
		t.Fatal(err)
	}
	guard, err := lock.TryGuard(r.Home.ConversationLock("k"))
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Release()
	if err := guard.Note(continues.ID + "\n"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, id, want string }{
		{"k", "new", continues.ID}, {"k", continues.ID, "before"}, {"other", "new", ""}, {"", "new", ""},
	} {
		if got := r.past().previous(c.key, c.id); got != c.want {
			t.Errorf("%q before %q: %q, want %q", c.key, c.id, got, c.want)
		}
	}
}

// TestPaceOfAConversation: its pace is that of the gaps between its runs of the same model and this one; a session that is not continued has
// none, and then the schedule of the job says it.
func TestPaceOfAConversation(t *testing.T) {
	t.Parallel()
	again := Spec{Limits: Limits{Again: time.Hour}}
	for name, c := range map[string]struct {
		past     []runlog.Record // newest first
		change   func(*runlog.Record)
		gaps     []time.Duration
		requests float64
	}{
		"none":          {nil, nil, []time.Duration{time.Hour}, 0},
		"one":           {[]runlog.Record{pastRun("05", nil)}, nil, []time.Duration{4 * time.Minute}, 3},
		"two":           {[]runlog.Record{pastRun("05", nil), pastRun("02", func(r *runlog.Record) { r.Requests = 1 })}, nil, []time.Duration{4 * time.Minute, 2 * time.Minute}, 2},
		"another model": {[]runlog.Record{pastRun("05", func(r *runlog.Record) { r.Model = "two" }), pastRun("02", nil)}, nil, []time.Duration{7 * time.Minute}, 3},
		"at once":       {[]runlog.Record{pastRun("10", nil)}, nil, []time.Duration{0}, 3},
		"a branch":      {[]runlog.Record{pastRun("05", func(r *runlog.Record) { r.Key = "" })}, func(r *runlog.Record) { r.Key = "" }, []time.Duration{4 * time.Minute}, 3},
		"its own":       {[]runlog.Record{pastRun("05", func(r *runlog.Record) { r.Key = "" })}, func(r *runlog.Record) { r.Key, r.Shared = "", false }, []time.Duration{time.Hour}, 0},
	} {
		r, _ := bench(t, runlog.Record{})
		now := pastRun("10", func(r *runlog.Record) { r.ID = "20260302T091000.000Z-bbbbbb" })
		last := &now
		for i := range c.past {
			last.Previous, last = c.past[i].ID, &c.past[i]
		}
		if c.change != nil {
			c.change(&now)
		}
		for _, old := range c.past {
			if err := store.WriteJSON(r.Home.Run(old.ID, "run.json"), old, store.Buffered); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.past().pace(again, now); !slices.Equal(got.Gaps, c.gaps) || got.Requests != c.requests {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPatternsOfATask: an override takes tools from runs in the background, and none from those in the foreground, which have the tools of
// the main conversation.
func TestPatternsOfATask(t *testing.T) {
	t.Parallel()
	for override, left := range map[string]int{"": len(policy.DefaultBackground()), "background:\n  override: []\n": 0} {
		r, _ := bench(t, runlog.Record{})
		if err := store.Replace(r.Home.ToolPolicy(), []byte(override)); err != nil {
			t.Fatal(err)
		}
		own, main, err := r.Patterns(true)
		if err != nil || len(own) != left || !slices.Equal(main, policy.DefaultMain()) {
			t.Errorf("%q: background %q, main %q, %v", override, own, main, err)
		}
		if own, main, err = r.Patterns(false); err != nil || !slices.Equal(own, main) || !slices.Equal(main, policy.DefaultMain()) {
			t.Errorf("%q: foreground %q, main %q, %v", override, own, main, err)
		}
	}
}

// TestContinuedSession: only a persistent session tells its agent how long it has become.
func TestContinuedSession(t *testing.T) {
	t.Parallel()
	for _, persistent := range []bool{true, false} {
		r, _ := bench(t, runlog.Record{})
		old := pastRun("01", func(r *runlog.Record) { r.SessionAfter, r.Context = "s", 100 })
		if err := store.WriteJSON(r.Home.Run(old.ID, "run.json"), old, store.Buffered); err != nil {
			t.Fatal(err)
		}
		now := pastRun("02", func(r *runlog.Record) {
			r.SessionBefore, r.Previous, r.Persistent, r.Finished = "s", old.ID, persistent, nil
		})
		if in, err := r.input(Spec{}, now); err != nil || (in.Context.Tokens == 100) != persistent {
			t.Errorf("persistent %v: %+v, %v", persistent, in.Context, err)
		}
	}
}

// TestRequestsOfAScript: a script has no cache, so nobody asks for the pace of its conversation.
func TestRequestsOfAScript(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"script:a.yaml": 0, engine.Native: 1} {
		r, run := bench(t, runlog.Record{Engine: name})
		s := Spec{Limits: Limits{Again: time.Hour}, Origin: completes{}}
		if got, err := r.requestOf(s, run, r.ToolsOf(run, nil)); err != nil || len(got.Session.Pace.Gaps) != want {
			t.Errorf("%s: %+v, %v", name, got.Session.Pace, err)
		}
	}
}

// completes is an origin that has nothing to add.
type completes struct{ origin }

func (completes) Complete(*engine.Request) error { return nil }

// TestUnreadableBudget: only a run in the background that may ping needs the budget of pings.
func TestUnreadableBudget(t *testing.T) {
	t.Parallel()
	r, _ := bench(t, runlog.Record{})
	if err := os.MkdirAll(r.Home.PingBudget(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, task := range []prompt.Task{{}, {Background: true}, {AllowPing: true}, {Background: true, AllowPing: true}} {
		_, err := r.input(Spec{Input: prompt.Input{Task: task}}, runlog.Record{})
		if fails := task.Background && task.AllowPing; (err != nil) != fails {
			t.Errorf("%+v: %v", task, err)
		}
	}
}
