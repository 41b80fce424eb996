package conversation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

// topic is a conversation of the tests. It records each saved id and the session history at that time.
type topic struct {
	history History
	policy  UpdatePolicy
	sealed  error // of Save
	book    *Book
	saved   []string
}

func (*topic) Traits() Traits                          { return Traits{Mode: "topic"} }
func (*topic) Key() string                             { return "topic" }
func (c *topic) Open(context.Context) (History, error) { return c.history, nil }
func (c *topic) Updates() UpdatePolicy                 { return c.policy }
func (*topic) Event() session.Kind                     { return "topic" }

func (c *topic) Save(_ context.Context, id string) error {
	events := 0
	for range c.book.Sessions.History(nil) {
		events++
	}
	c.saved = append(c.saved, strings.Repeat("+", events)+id)
	return c.sealed
}

// answers is an engine that plays one list of events, or one error, for each turn.
type answers struct {
	engine.Engine

	turns [][]runlog.Event
	fails []error
	asked *[]engine.Request
}

func (e answers) Run(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	n := len(*e.asked)
	*e.asked = append(*e.asked, r)
	if e.fails[n] != nil {
		return engine.Result{}, e.fails[n]
	}
	for _, event := range e.turns[n] {
		if err := sink(event); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{}, nil
}

func (e answers) Compact(_ context.Context, r engine.Request, _ string, sink engine.Sink) (engine.Compaction, error) {
	return engine.Compaction{}, sink(runlog.Event{Type: runlog.Compacted, Session: r.Session.ID + "'"})
}

// begin opens a turn of a conversation in a data directory of its own.
func begin(t *testing.T, c *topic, e answers) (*Turn, *[]engine.Request) {
	t.Helper()
	dir := paths.Dir(t.TempDir())
	disk := store.Disk{Now: func() time.Time { return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC) }, Warn: func(m string) { t.Error(m) }}
	runs := runlog.Book{Home: dir, Disk: disk, Zone: time.UTC}
	b := Book{
		Home: dir, Runs: runs, Sessions: session.Book{Home: dir, Disk: disk, Zone: time.UTC},
		Updates: update.Box{Ledger: ledger.New(dir, disk, update.Facts()), Home: dir, Disk: disk, Zone: time.UTC},
		Sleep:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	run, err := runs.Open(runlog.Record{ID: "20260302T090000.000Z-aaaaaa", Subject: runlog.Subject{Job: "j", Name: "j"}, Started: disk.Now()})
	if err == nil {
		err = b.Updates.Add(t.Context(), "The kettle boils.", "x")
	}
	if err != nil {
		t.Fatal(err)
	}
	c.book, e.asked = &b, &[]engine.Request{}
	turn, err := b.Begin(t.Context(), c, Parts{Engine: e, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(turn.Close)
	return turn, e.asked
}

func named(id string) []runlog.Event {
	return []runlog.Event{{Type: runlog.Session, Session: id}, {Type: runlog.Text, Text: "yes"}, {Type: runlog.UsageEvent, Usage: &runlog.Usage{}}}
}

// TestMissingSession: each kind of history says what its turn does if the engine does not have the session.
func TestMissingSession(t *testing.T) {
	for name, tc := range map[string]struct {
		missing missing
		asked   int
		note    bool // the prompt says that the session is gone
		lost    bool // the record does
		fails   bool
	}{
		"fail":   {missing: fail, asked: 1, fails: true},
		"new":    {missing: startNew, asked: 2},
		"afresh": {missing: startAfresh, asked: 2, note: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &topic{history: History{Session: "old", Missing: tc.missing}}
			turn, asked := begin(t, c, answers{turns: [][]runlog.Event{nil, named("new")}, fails: []error{engine.ErrSessionUnknown, nil}})
			err := turn.Say(t.Context(), prompt.Input{Task: prompt.Task{Body: "Go.", Persistent: true}})
			if errors.Is(err, engine.ErrSessionUnknown) != tc.fails || len(*asked) != tc.asked {
				t.Fatalf("%v, asked %d times", err, len(*asked))
			}
			last := (*asked)[len(*asked)-1]
			if tc.asked == 2 && last.Session.ID != "" {
				t.Errorf("the second request continues %q", last.Session.ID)
			}
			if got := strings.Contains(last.Input.Prompt, "Your earlier session is gone"); got != tc.note {
				t.Errorf("a note: %v", got)
			}
			lost := false
			for e := range turn.book.Runs.Events(turn.Run.ID, nil) {
				lost = lost || e.Type == runlog.SessionLost && e.Session == "old"
			}
			if lost != tc.lost {
				t.Errorf("recorded: %v", lost)
			}
		})
	}
}

// TestSavedAtOnce: the id is saved before the history has it, when a session begins, and after it, when a summary takes its place.
// Killed in between, the session goes on as it was, and a summary always has its parent.
func TestSavedAtOnce(t *testing.T) {
	c := &topic{}
	turn, _ := begin(t, c, answers{turns: [][]runlog.Event{named("s")}, fails: []error{nil}})
	if err := turn.Say(t.Context(), prompt.Input{}); err != nil {
		t.Fatal(err)
	}
	if err := turn.Run.Event(t.Context(), runlog.Event{Type: runlog.CompactWish, Text: "all"}); err != nil {
		t.Fatal(err)
	}
	if err := turn.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.saved, []string{"s", "++s'"}) || turn.Session() != "s'" {
		t.Errorf("saved %q, the session is %q", c.saved, turn.Session())
	}
}

// TestSaveFails: a turn ends if the id of its session cannot be saved, because the next turn would not find the session.
func TestSaveFails(t *testing.T) {
	c := &topic{sealed: errors.New("full")}
	turn, _ := begin(t, c, answers{turns: [][]runlog.Event{named("s")}, fails: []error{nil}})
	if err := turn.Say(t.Context(), prompt.Input{}); !errors.Is(err, c.sealed) {
		t.Errorf("%v", err)
	}
	if len(c.saved) != 1 {
		t.Errorf("saved %q", c.saved)
	}
}

// TestUpdatePolicy: updates are shown as the conversation says, and popped ones are pending again if the agent never began to answer.
func TestUpdatePolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		policy UpdatePolicy
		fails  error
		shown  bool
		left   int
	}{
		"none":            {left: 1},
		"peek":            {policy: UpdatePolicy{Show: Peek}, shown: true, left: 1},
		"later ones":      {policy: UpdatePolicy{Show: Peek, Since: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}, left: 1},
		"but of this run": {policy: UpdatePolicy{Show: Peek, Skip: func(run string) bool { return run == "x" }}, left: 1},
		"pop":             {policy: UpdatePolicy{Show: pop}, shown: true},
		"pop in vain":     {policy: UpdatePolicy{Show: pop}, fails: engine.ErrUnavailable, shown: true, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &topic{policy: tc.policy}
			turn, asked := begin(t, c, answers{turns: [][]runlog.Event{named("s")}, fails: []error{tc.fails}})
			if err := turn.Say(t.Context(), prompt.Input{}); !errors.Is(err, tc.fails) {
				t.Fatal(err)
			}
			if got := strings.Contains((*asked)[0].Input.Prompt, "The kettle boils."); got != tc.shown {
				t.Errorf("shown: %v", got)
			}
			left, err := turn.book.Updates.Peek(t.Context())
			if err != nil || len(left) != tc.left {
				t.Errorf("%d left, %v", len(left), err)
			}
		})
	}
}

// TestOverloaded: a request to an overloaded service is repeated, for a limited time, while nothing with effects has happened.
func TestOverloaded(t *testing.T) {
	busy := &engine.Overloaded{Reason: "busy", After: time.Minute}
	effect := []runlog.Event{{Type: runlog.ToolUse, Tool: "Bash", ToolID: "1"}}
	for name, tc := range map[string]struct {
		patience time.Duration
		before   []runlog.Event
		asked    int
		works    bool
	}{
		"again":       {asked: 3, works: true},
		"impatient":   {patience: 90 * time.Second, asked: 2},
		"had effects": {before: effect, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			turn, asked := begin(t, &topic{}, answers{turns: [][]runlog.Event{nil, nil, named("s")}, fails: []error{busy, busy, nil}})
			for _, e := range tc.before {
				if err := turn.Run.Event(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			turn.Request.Limits.Patience = tc.patience
			err := turn.Say(t.Context(), prompt.Input{})
			if (err == nil) != tc.works || len(*asked) != tc.asked {
				t.Errorf("%v, asked %d times", err, len(*asked))
			}
		})
	}
}
