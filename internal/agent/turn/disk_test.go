package turn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/testkit"
)

// theRun is the id of the first run that begins while a call of TestEachFault is made.
const theRun = "20260302T090000.000Z-010101"

// ids is a source of random numbers that are 1, 2, and so on.
type ids struct{ last byte }

func (i *ids) Read(p []byte) (int, error) {
	i.last++
	for at := range p {
		p[at] = i.last
	}
	return len(p), nil
}

// damaged is a call that TestEachFault makes.
type damaged struct {
	files func(home paths.Dir) []string                           // whose calls fail, one after the other: files, or directories with all in them
	acts  func(n int, use func(tool, input string) error) error   // what the agent does
	prep  func(t *testing.T, r *run.Runner)                       // what is on disk
	call  func(t *testing.T, r *run.Runner) (said any, err error) // what is called, and what it has returned
}

// fixture is a runner that keeps its warnings.
type fixture struct {
	*run.Runner

	agent  *agent
	warned []string
}

func newFixture(t *testing.T, dir string, c damaged) *fixture {
	t.Helper()
	d := &fixture{agent: &agent{brief: true}}
	d.Runner = runtest.In(t, dir, store.Disk{Now: time.Now, Warn: func(text string) { d.warned = append(d.warned, text) }}, d.agent)
	d.Queue.Runs, d.Random = func(string) queue.Fate { return queue.Fate{} }, &ids{}
	now := clockOf(d.Runner)
	*now = now.Add(-time.Hour)
	if err := d.Sessions.SetMain("main"); err != nil {
		t.Fatal(err)
	}
	if c.prep != nil {
		c.prep(t, d.Runner)
	}
	*now = now.Add(time.Hour)
	d.agent.acts, d.Random = c.acts, &ids{}
	return d
}

// stands describes what is on disk: the conversation, its fork, the updates and what waits.
func (d *fixture) stands(t *testing.T) string {
	t.Helper()
	main, err := d.Sessions.Main()
	if err != nil {
		t.Error(err)
	}
	fork := "none"
	if f := forkOf(t, d.Runner); f != nil {
		fork = fmt.Sprintf("%q of %s in %q, run %q", f.Topic, f.Parent, f.Session, f.Run)
	}
	list, err := d.Updates.Peek(t.Context())
	if err != nil {
		t.Error(err)
	}
	var updates []string
	for _, u := range list {
		updates = append(updates, u.Message)
	}
	return fmt.Sprintf("main %q, fork %s, updates %q, waiting %q", main, fork, slices.Compact(updates), waiting(t, d.Runner))
}

// counts describes what the fork and the history count.
func (d *fixture) counts(t *testing.T) string {
	t.Helper()
	var counts []string
	if f := forkOf(t, d.Runner); f != nil {
		counts = append(counts, fmt.Sprint(f.Turns, f.Heard, f.Prompts, f.Last.Unix()))
	}
	for e, err := range d.Sessions.History(nil) {
		if err != nil {
			t.Error(err)
		}
		counts = append(counts, fmt.Sprint(e.Event, e.SessionID))
	}
	for record, err := range d.Runs.List() {
		events, nudges := forkEvents(t, d.Runner, record.ID)
		counts = append(counts, fmt.Sprint(record.Kind, record.Outcome, events, nudges, err))
	}
	return strings.Join(counts, ", ")
}

// TestEachFault: whichever system call fails, a call returns an error, warns, or has done all that it does without a fault. It leaves no
// file open and no lock held. The same call without a fault does what it did not do.
func TestEachFault(t *testing.T) {
	t.Parallel()
	calls := damagedTurns()
	maps.Copy(calls, damagedReplies())
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sound := newFixture(t, testkit.MemoryDir(t), c)
			said, err := c.call(t, sound.Runner)
			if err != nil || len(sound.warned) > 0 {
				t.Fatalf("without a fault: %v, warned %q", err, sound.warned)
			}
			want, stands := fmt.Sprint(said, sound.counts(t)), sound.stands(t)
			for i := range c.files("") {
				for fault := range testkit.Faults(t, syscall.EIO) {
					dir := testkit.MemoryDir(t)
					d := newFixture(t, dir, c)
					var said any
					var err error
					files := testkit.OpenFiles(t, dir)
					fault.In(c.files(paths.Dir(dir))[i], func() { said, err = c.call(t, d.Runner) })
					for _, left := range testkit.OpenFiles(t, dir, files...) {
						t.Errorf("%s fails: %s is left open", fault.Call, left)
					}
					for _, key := range []string{"session-main", "session-fork", "fork", "queue", "sessions", "fork_messages"} {
						if !lock.Free(d.Home.Lock(key)) {
							t.Errorf("%s fails: the lock %s is left", fault.Call, key)
						}
					}
					if err != nil && !strings.Contains(err.Error(), syscall.EIO.Error()) {
						t.Errorf("%q fails: %v", fault.Call, err)
					}
					if got := fmt.Sprint(said, d.counts(t)); err == nil && len(d.warned) == 0 && (got != want || d.stands(t) != stands) {
						t.Errorf("%s fails, no error: %s, %s, want %s, %s", fault.Call, d.stands(t), got, stands, want)
					}
					if now := d.stands(t); now != stands {
						d.agent.asked = nil
						if _, again := c.call(t, d.Runner); again != nil || d.stands(t) != stands {
							t.Errorf("%s fails: %v: %s; again: %v: %s, want %s", fault.Call, err, now, again, d.stands(t), stands)
						}
					}
				}
			}
		})
	}
}

// inFork opens a fork of main with a turn, in which the owner has spoken.
func inFork(t *testing.T, r *run.Runner) {
	t.Helper()
	err := r.Sessions.OpenFork(t.Context(), session.Fork{
		ID: "f", Topic: "tea", Parent: "main", Session: "main-fork", Turns: 1, Heard: 1, Begun: r.Disk.Now(), Last: r.Disk.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// uses is an agent that uses a tool in its first turn.
func uses(tool, input string) func(int, func(string, string) error) error {
	return func(n int, use func(string, string) error) error {
		if n == 1 {
			return use(tool, input)
		}
		return nil
	}
}

// all, inEvents and ofFork are files of damaged calls.
func all(home paths.Dir) []string      { return []string{string(home)} }
func inEvents(home paths.Dir) []string { return []string{home.Run(theRun, "events.jsonl")} }
func ofFork(home paths.Dir) []string   { return []string{home.Lock("fork")} }

func damagedTurns() map[string]damaged {
	chat := func(t *testing.T, r *run.Runner) (any, error) {
		record, err := Queue{r}.Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true})
		return record.Text, err
	}
	enters := func(n int, use func(string, string) error) error {
		err := uses("enter_fork", `{"topic":"tea"}`)(n, use)
		if err != nil && strings.HasPrefix(err.Error(), "enter_fork is for the main conversation") {
			return nil // it is in the fork already
		}
		return err
	}
	return map[string]damaged{
		"chat":             {files: func(home paths.Dir) []string { return []string{home.Queue()} }, call: chat},
		"the agent exits":  {files: inEvents, prep: inFork, acts: uses("exit_fork", "{}"), call: chat},
		"the agent enters": {files: ofFork, acts: enters, call: chat},
		"start": {files: ofFork, call: func(t *testing.T, r *run.Runner) (any, error) {
			record, err := Forks{r}.Start(t.Context(), "tea", Options{Owner: true})
			if errors.Is(err, session.ErrForkOpen) { // it stays open if its first turn fails
				return chat(t, r)
			}
			return record.Text, err
		}},
		"report": {files: inEvents, prep: inFork, call: func(t *testing.T, r *run.Runner) (any, error) {
			record, err := Forks{r}.Report(t.Context(), Options{Owner: true})
			return record.Text, err
		}},
		"exit": {files: all, prep: inFork, call: func(t *testing.T, r *run.Runner) (any, error) {
			f, err := Forks{r}.Exit(t.Context())
			return f.ID, err
		}},
		"save": {files: all, prep: inFork, call: func(t *testing.T, r *run.Runner) (any, error) {
			f, err := Forks{r}.Save(t.Context())
			return f.ID, err
		}},
		"clear": {files: all, call: func(t *testing.T, r *run.Runner) (any, error) { return nil, New(r).Clear(t.Context()) }},
		"open": {files: all, call: func(t *testing.T, r *run.Runner) (any, error) {
			f, err := Forks{r}.Open(t.Context(), "tea")
			return f.ID, err
		}},
		"nudge": {files: ofFork, prep: inFork, call: func(t *testing.T, r *run.Runner) (any, error) {
			record, err := Forks{r}.Nudge(t.Context(), Options{})
			return record.Text, err
		}},
		"abandoned": {
			files: func(home paths.Dir) []string { return []string{home.Lock("queue"), home.Lock("fork")} },
			prep:  func(t *testing.T, r *run.Runner) { abandon(t, r, Message{Text: "hi"}, Options{}) },
			call: func(t *testing.T, r *run.Runner) (any, error) {
				return nil, Queue{r}.AnswerAbandoned(t.Context(), Options{})
			},
		},
	}
}

func damagedReplies() map[string]damaged {
	sent := func(t *testing.T, r *run.Runner) { pinged(t, r, runlog.Record{}, "noted", "latest") }
	late := func(t *testing.T, r *run.Runner) {
		sent(t, r)
		r.Engines = func(string) (engine.Engine, error) {
			return &agent{plan: func(engine.Request) (engine.Plan, error) { return engine.Plan{}, engine.ErrSessionUnknown }}, nil
		}
	}
	reply := func(t *testing.T, r *run.Runner) (any, error) {
		m, err := Replies{r}.Replying(t.Context(), "42", Message{Text: "Which?"}, Options{})
		return m.Text, err
	}
	asking := func(t *testing.T, r *run.Runner) {
		t.Helper()
		id := pinged(t, r, runlog.Record{}, "noted", "latest")
		q := question.Question{Run: id, Message: session.MessageID(id, 1), Asked: r.Disk.Now(), Expires: r.Disk.Now().Add(24 * time.Hour)}
		if err := r.Questions.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]damaged{
		"reply":           {files: all, prep: sent, call: reply},
		"reply in a fork": {files: ofFork, prep: func(t *testing.T, r *run.Runner) { sent(t, r); inFork(t, r) }, call: reply},
		"late reply":      {files: func(home paths.Dir) []string { return []string{home.MainSession()} }, prep: late, call: reply},
		"asked":           {files: all, prep: asking, call: func(t *testing.T, r *run.Runner) (any, error) { return Replies{r}.Asked(t.Context(), "42") }},
	}
}
