package turn

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// entering is an agent that asks for a fork in its first turn, which then fails if fails is set. The owner may open one meanwhile.
func entering(t *testing.T, r *run.Runner, opened, fails bool) func(n int, use func(tool, input string) error) error {
	t.Helper()
	return func(n int, use func(tool, input string) error) error {
		if n > 1 {
			return nil
		}
		if err := use("enter_fork", `{"topic":" tea "}`); err != nil {
			t.Error(err)
		}
		if opened {
			if _, err := (Forks{r}).Open(t.Context(), "milk"); err != nil {
				t.Error(err)
			}
		}
		return map[bool]error{true: errors.New("broken")}[fails]
	}
}

// TestAgentEntersFork: a fork that the agent asks for opens at the end of its turn, and its first turn follows, for the owner who waits, or
// delivered if nobody does. None opens if the turn fails, and one that the owner has opened meanwhile stays.
func TestAgentEntersFork(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fails, opened, abandoned bool
		turns                    int
		fork                     string // its topic
	}{
		"owner waits": {turns: 2, fork: "tea"},
		"abandoned":   {abandoned: true, turns: 2, fork: "tea"},
		"failed":      {fails: true, turns: 1},
		"opened":      {opened: true, turns: 1, fork: "milk"},
	} {
		a, post := &agent{}, &carrier{}
		r := runtest.New(t, a)
		r.Outbox.Carriers = []outbox.Carrier{post}
		a.acts = entering(t, r, c.opened, c.fails)
		var seen []string
		o := Options{Owner: true, Observe: run.Observer{Event: func(e runlog.Event) {
			if e.Type == runlog.Fork {
				seen = append(seen, e.Tool+" "+e.Text)
			}
		}}}
		record, err := runlog.Record{}, error(nil)
		if c.abandoned {
			abandon(t, r, Message{Text: "hi"}, o)
			err = Queue{r}.AnswerAbandoned(t.Context(), o)
		} else {
			record, err = Queue{r}.Chat(t.Context(), Message{Text: "hi"}, o)
		}
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", what, err)
		}
		f := forkOf(t, r)
		if len(a.asked) != c.turns || (f != nil) != (c.fork != "") || f != nil && f.Topic != c.fork {
			t.Errorf("%s: %d turns, fork %+v", what, len(a.asked), f)
		}
		if c.turns == 2 {
			first := a.asked[1]
			if !first.Session.Fork || first.Session.ID != "s-1" || first.Input.Awaited == c.abandoned || !strings.HasPrefix(first.Input.Prompt, "[fork-started] ") ||
				!strings.Contains(first.Input.Prompt, "Topic: tea") || f.Parent != "s-1" || f.Turns != 1 || f.Heard != 0 {
				t.Errorf("%s: %+v, fork %+v", what, first, f)
			}
			if n := map[bool]int{true: 2}[c.abandoned]; len(post.sent) != n {
				t.Errorf("%s: sent %+v", what, post.sent)
			}
		}
		if want := []string{"opened tea", "continued tea"}; what == "owner waits" && (!slices.Equal(seen, want) || f.MainRun != record.ID || f.ID != record.ID) {
			t.Errorf("saw %q, fork %+v of %s", seen, f, record.ID)
		}
	}
}

// TestFollow: the first turn of a fork follows a run of main that has opened it and ended well, and no other run.
func TestFollow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key     string
		outcome runlog.Outcome
		id      string
		turns   int
	}{
		{session.MainKey, runlog.OK, "f", 1}, {session.MainKey, runlog.Failed, "f", 0}, {session.ForkKey, runlog.OK, "f", 0}, {session.MainKey, runlog.OK, "g", 0},
	} {
		a := &agent{}
		r := runtest.New(t, a)
		if err := r.Sessions.OpenFork(t.Context(), session.Fork{ID: "f", Parent: "main"}); err != nil {
			t.Fatal(err)
		}
		Forks{r}.Follow(t.Context(), runlog.Record{ID: c.id, Key: c.key, Outcome: c.outcome}, false, Options{})
		if len(a.asked) != c.turns {
			t.Errorf("%+v: asked %d times", c, len(a.asked))
		}
	}
}

// forkEnding is how the owner's turn in the fork tea of main ends.
type forkEnding struct {
	acts   func(r *run.Runner, use func(tool, input string) error) error
	events []string
	open   bool
	main   string
}

func forkEndings(t *testing.T) map[string]forkEnding {
	t.Helper()
	return map[string]forkEnding{
		"nothing": {nil, nil, true, "main"},
		"exit":    {func(_ *run.Runner, use func(string, string) error) error { return use("exit_fork", "{}") }, []string{"dropped tea"}, false, "main"},
		"save":    {func(_ *run.Runner, use func(string, string) error) error { return use("save_context", "{}") }, []string{"saved tea"}, false, "main-fork"},
		"report": {func(_ *run.Runner, use func(string, string) error) error {
			return use("report_updates", `{"message":"It boils."}`)
		}, []string{"reported tea"}, false, "main"},
		"save and report": {func(_ *run.Runner, use func(string, string) error) error {
			return errors.Join(use("report_updates", `{"message":"It boils."}`), use("save_context", "{}"))
		}, []string{"saved tea"}, false, "main-fork"},
		"save, and main has moved": {func(r *run.Runner, use func(string, string) error) error {
			return errors.Join(use("save_context", "{}"), r.Sessions.SetMain("other"))
		}, []string{"kept " + session.ErrMainMoved.Error()}, true, "other"},
		"save, and main is in a turn": {func(r *run.Runner, use func(string, string) error) error {
			if err := use("save_context", "{}"); err != nil {
				return err
			}
			guard, err := lock.TryGuard(r.Home.ConversationLock(session.MainKey))
			t.Cleanup(guard.Release)
			return err
		}, []string{"kept " + session.ErrMainMoved.Error()}, true, "main"},
		"its file is removed": {func(r *run.Runner, _ func(string, string) error) error { return os.Remove(r.Home.Fork()) }, nil, false, "main"},
	}
}

// TestForkEnds: the agent's tool decides at the end of the owner's turn what becomes of the fork.
func TestForkEnds(t *testing.T) {
	t.Parallel()
	for what, c := range forkEndings(t) {
		a := &agent{}
		r := runtest.New(t, a)
		now := clockOf(r)
		if err := r.Sessions.SetMain("main"); err != nil {
			t.Fatal(err)
		}
		f, err := Forks{r}.Open(t.Context(), "tea")
		if err != nil {
			t.Fatal(err)
		}
		a.acts = func(_ int, use func(string, string) error) error {
			if *now = now.Add(time.Minute); c.acts != nil {
				return c.acts(r, use)
			}
			return nil
		}
		begun := *now
		record, err := Queue{r}.Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true})
		if err != nil || record.Kind != kindChat || record.Key != session.ForkKey || record.Path != session.ForkKey {
			t.Errorf("%s: %+v, %v", what, record, err)
		}
		events, _ := forkEvents(t, r, record.ID)
		if want := append([]string{"continued tea"}, c.events...); !slices.Equal(events, want) {
			t.Errorf("%s: %q, want %q", what, events, want)
		}
		left := forkOf(t, r)
		if main, err := r.Sessions.Main(); main != c.main || err != nil || (left != nil) != c.open {
			t.Errorf("%s: main is %q, %v, fork %+v", what, main, err, left)
		}
		if left != nil && (left.ID != f.ID || left.Heard != 1 || left.Turns != 1 || !left.Last.Equal(begun.Add(time.Minute))) {
			t.Errorf("%s: %+v", what, left)
		}
	}
}

// TestForkReport: an agent that does not report when the owner ends the fork is reminded twice; then an update says so.
func TestForkReport(t *testing.T) {
	t.Parallel()
	for at, end := range map[int]string{2: "reported tea", 3: "reported tea", 4: "reported tea", 5: "silent tea"} {
		a := &agent{acts: func(n int, use func(string, string) error) error {
			if n == at {
				return use("report_updates", `{"message":"It boils."}`)
			}
			return nil
		}}
		r := runtest.New(t, a)
		if _, err := (Forks{r}).Start(t.Context(), "tea", Options{Owner: true}); err != nil {
			t.Fatal(err)
		}
		record, err := Forks{r}.Report(t.Context(), Options{Owner: true})
		if err != nil || record.Kind != kindFork || record.Outcome != runlog.OK {
			t.Errorf("%d: %+v, %v", at, record, err)
		}
		turns := min(at, 4)
		events, nudges := forkEvents(t, r, record.ID)
		if len(a.asked) != turns || nudges != turns-2 || !slices.Equal(events, []string{"continued tea", end}) || forkOf(t, r) != nil {
			t.Errorf("%d: %d turns, %d reminders, %q", at, len(a.asked), nudges, events)
		}
		for i, asked := range a.asked[1:] {
			if asked.Input.Nudge != (i > 0) || (i > 0) != (asked.Input.Prompt == prompt.ForkReportNudge) || i == 0 && !strings.HasPrefix(asked.Input.Prompt, "[system] ") {
				t.Errorf("%d: asked %+v", at, asked.Input)
			}
		}
		want := "It boils."
		if at == 5 {
			want = prompt.ForkUnreported("tea")
		}
		if list, err := r.Updates.Peek(t.Context()); err != nil || len(list) != 1 || list[0].Message != want || list[0].By != record.ID {
			t.Errorf("%d: updates %+v, %v", at, list, err)
		}
	}
}

// TestNoForkToEnd: a fork that is not open, or that had no turn, cannot be ended.
func TestNoForkToEnd(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fork               session.Fork
		exit, save, report error
	}{
		"none":            {session.Fork{}, session.ErrNoFork, session.ErrNoFork, session.ErrNoFork},
		"without a turn":  {session.Fork{ID: "f"}, nil, session.ErrNoTurn, session.ErrNoTurn},
		"of another main": {session.Fork{ID: "f", Session: "s", Parent: "old", Turns: 1}, nil, session.ErrMainMoved, nil},
	} {
		for name, end := range map[string]struct {
			call func(Forks) error
			want error
		}{
			"exit":   {func(k Forks) error { _, err := k.Exit(t.Context()); return err }, c.exit},
			"save":   {func(k Forks) error { _, err := k.Save(t.Context()); return err }, c.save},
			"report": {func(k Forks) error { _, err := k.Report(t.Context(), Options{}); return err }, c.report},
		} {
			r := runtest.New(t, &agent{})
			if c.fork.ID != "" {
				if err := r.Sessions.OpenFork(t.Context(), c.fork); err != nil {
					t.Fatal(err)
				}
			}
			if err := end.call(Forks{r}); !errors.Is(err, end.want) || (err == nil) != (end.want == nil) {
				t.Errorf("%s, %s: %v, want %v", what, name, err, end.want)
			}
			if open := forkOf(t, r) != nil; open != (c.fork.ID != "" && end.want != nil) {
				t.Errorf("%s, %s: open %v", what, name, open)
			}
			if !lock.Free(r.Home.ConversationLock(session.ForkKey)) || !lock.Free(r.Home.ConversationLock(session.MainKey)) {
				t.Errorf("%s, %s: a lock is left", what, name)
			}
		}
	}
}

// TestForkBegins: a fork without a topic waits for the owner; with one its agent begins. Its model is the typed one, that of the
// run that it branches, or main's.
func TestForkBegins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ topic, typed, run, want string }{
		{" ", "", "", ""}, {" tea\n", "", "", "opus"}, {"tea", "haiku", "", "haiku"}, {"", "", "sonnet", "sonnet"}, {"", "haiku", "sonnet", "haiku"},
	} {
		a := &agent{}
		r := runtest.New(t, a)
		r.Settings.Main.Model, r.Settings.Main.Thinking, r.Settings.Main.Forks = "opus", "high", "off"
		o := Options{Owner: true, Model: c.typed}
		var err error
		if c.run != "" {
			err = r.Sessions.OpenFork(t.Context(), session.Fork{ID: "f", Parent: "s", Run: "r", Model: c.run})
			if err == nil {
				_, err = Queue{r}.Chat(t.Context(), Message{Text: "hi"}, o)
			}
		} else {
			_, err = Forks{r}.Start(t.Context(), c.topic, o)
		}
		if err != nil || len(a.asked) != map[bool]int{true: 1}[c.want != ""] {
			t.Errorf("%+v: %d turns, %v", c, len(a.asked), err)
			continue
		}
		if f := forkOf(t, r); f == nil || f.Topic != strings.TrimSpace(c.topic) {
			t.Errorf("%+v: %+v", c, f)
		}
		if c.want != "" && (a.asked[0].Model.Name != c.want || a.asked[0].Model.Thinking != "off" || !a.asked[0].Input.Awaited) {
			t.Errorf("%+v: %+v", c, a.asked[0])
		}
	}
}

// nudged checks that the agent of the fork is asked now whether to end it, with words that contain want, or that it is not if want is "".
func nudged(t *testing.T, r *run.Runner, a *agent, want string) {
	t.Helper()
	turns := len(a.asked)
	_, idle, err := Forks{r}.Idle(t.Context())
	if err != nil || idle != (want != "") {
		t.Errorf("idle %v, %v", idle, err)
	}
	record, err := Forks{r}.Nudge(t.Context(), Options{})
	if err != nil || (record.ID != "") != (want != "") || len(a.asked)-turns != map[bool]int{true: 1}[want != ""] {
		t.Errorf("%d turns more, %+v, %v", len(a.asked)-turns, record, err)
		return
	}
	if want == "" {
		return
	}
	if in := a.asked[turns].Input; record.Kind != kindFork || !strings.HasPrefix(in.Prompt, "[fork-timeout] ") || !strings.Contains(in.Prompt, want) || in.Awaited {
		t.Errorf("asked %+v", in)
	}
}

// TestNudge: the agent of a fork in which nothing happens is asked twice to end it, ten minutes apart; a message of the owner's begins
// that again.
func TestNudge(t *testing.T) {
	t.Parallel()
	a, post := &agent{}, &carrier{}
	r := runtest.New(t, a)
	r.Outbox.Carriers = []outbox.Carrier{post}
	r.Spend.Limits.PerDay = 100
	now := clockOf(r)
	k := Forks{r}
	nudge := func(want string) { t.Helper(); nudged(t, r, a, want) }
	nudge("") // there is no fork
	if _, err := k.Start(t.Context(), "tea", Options{Owner: true}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(ForkIdle - time.Second)
	nudge("")
	*now = now.Add(time.Second)
	guard, err := lock.TryGuard(r.Home.ConversationLock(session.ForkKey))
	if err != nil {
		t.Fatal(err)
	}
	nudge("") // it is in a turn
	guard.Release()
	if err := r.Spend.Pause(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	nudge("") // everything is paused
	if err := r.Spend.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		nudge("for 10 minutes. If its topic is done, end it (`save_context`, ")
		nudge("")
		*now = now.Add(ForkIdle)
		nudge("for 20 minutes. This is the last reminder")
		*now = now.Add(ForkIdle)
		nudge("")
		if _, err := (Queue{r}).Chat(t.Context(), Message{Text: "Wait."}, Options{Owner: true}); err != nil {
			t.Fatal(err)
		}
		if f := forkOf(t, r); f.Prompts != 0 || f.Heard == 0 {
			t.Errorf("%+v", f)
		}
		*now = now.Add(ForkIdle)
	}
	if len(post.sent) != 4 { // what it said about the reminders
		t.Errorf("sent %d messages", len(post.sent))
	}
}

// TestNudgeOfTwoProcesses: only one of two processes that find the fork idle asks its agent.
func TestNudgeOfTwoProcesses(t *testing.T) {
	t.Parallel()
	a := &agent{}
	r := runtest.New(t, a)
	now := clockOf(r)
	if err := r.Sessions.OpenFork(t.Context(), session.Fork{ID: "f", Parent: "s", Run: "r", Begun: *now, Last: *now}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(ForkIdle)
	other := *r
	r.Disk.Now = func() time.Time {
		r.Disk.Now = other.Disk.Now
		if record, err := (Forks{&other}).Nudge(t.Context(), Options{}); record.ID == "" || err != nil {
			t.Errorf("%+v, %v", record, err)
		}
		return *now
	}
	if record, err := (Forks{r}).Nudge(t.Context(), Options{}); record.ID != "" || err != nil || len(a.asked) != 1 {
		t.Errorf("%+v, %v, asked %d times", record, err, len(a.asked))
	}
	if text := a.asked[0].Input.Prompt; strings.Contains(text, "save_context") {
		t.Errorf("a fork of a run cannot be saved: %s", text)
	}
	if f := forkOf(t, r); f.Prompts != 1 || fmt.Sprint(f.Last) != fmt.Sprint(now.In(r.Zone)) {
		t.Errorf("%+v", f)
	}
}
