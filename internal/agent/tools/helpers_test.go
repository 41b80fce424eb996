package tools_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

var ctx = context.Background()

// fixture is the toolbox of a run in a data directory of its own, at 2026-02-24 14:30 in Prague.
type fixture struct {
	*tools.Set
	t      testing.TB
	now    time.Time
	busy   bool
	asked  int // how often busy was
	names  []string
	warned []string
}

// newFixture opens a run of that record. Its mode is forked, and its tools are the mode's, unless the record says otherwise.
func newFixture(t testing.TB, r runlog.Record) *fixture {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Prague")
	if err != nil {
		t.Fatal(err)
	}
	d := &fixture{t: t, now: time.Date(2026, 2, 24, 14, 30, 0, 0, zone)}
	dir := paths.Dir(t.TempDir())
	disk := store.Disk{Now: func() time.Time { return d.now }, Warn: func(m string) { d.warned = append(d.warned, m) }}
	stores := state.Of(dir, disk, zone)
	d.Set = &tools.Set{
		World: tools.World{
			Embeds: func() bool { return true },
			Home:   dir, Disk: disk, Zone: zone, Random: rand.Reader,
			Secret: []string{dir.Path("secrets.env")},
			Env:    []string{"PATH=" + os.Getenv("PATH")},
		},
		Stores: stores,
		Sender: outbox.Post{Home: dir, Disk: disk, Env: []string{"PATH=" + os.Getenv("PATH")}},
		Busy:   func() bool { d.asked++; return d.busy },
		SetNames: func(user, bot string) error {
			d.names = append(d.names, user+"/"+bot)
			return nil
		},
	}
	d.open(stores.Runs, r)
	return d
}

// open begins the fixture's run; a fixture may have several, one after the other.
func (d *fixture) open(runs runlog.Book, r runlog.Record) {
	d.t.Helper()
	r.Mode, r.Kind = cmp.Or(r.Mode, string(job.Forked)), cmp.Or(r.Kind, string(job.Routine))
	mode := job.Mode(r.Mode) // the traits that the conversation of this mode has
	if mode == job.Foreground {
		r.Key = cmp.Or(r.Key, session.MainKey)
	}
	r.Foreground, r.Shared, r.Persistent = mode == job.Foreground, mode == job.Foreground || mode == job.Forked, mode == job.Persistent
	if r.Tools == nil {
		r.Tools = policy.DefaultBackground()
		if r.Mode == string(job.Foreground) {
			r.Tools = policy.DefaultMain()
		}
	}
	id, err := runlog.NewID(d.now, rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	r.ID, r.Started, r.Job, r.Name = id, d.now, "w1", "watch"
	if d.Run, err = runs.Open(r); err != nil {
		d.t.Fatal(err)
	}
}

// another is the fixture with a new run of that record.
func (d *fixture) another(r runlog.Record) *fixture {
	d.t.Helper()
	d.open(runlog.Book{Home: d.World.Home, Disk: d.World.Disk, Zone: d.World.Zone}, r)
	return d
}

// talks is a record that may ping and reports on a ping.
func talks() runlog.Record { return runlog.Record{AllowPing: true, Update: string(job.OnPing)} }

// inMain is a record of the main conversation.
func inMain() runlog.Record { return runlog.Record{Mode: string(job.Foreground), AllowPing: true} }

// post is the fixture's sender.
func (d *fixture) post() outbox.Post { return d.Sender.(outbox.Post) }

// delivers makes a shell command the delivery.
func (d *fixture) delivers(command string) *fixture {
	post := d.post()
	post.Command = []string{"sh", "-c", command}
	d.Sender = post
	return d
}

// call uses a tool; the answer of a failed call begins with "error: ".
func (d *fixture) call(tool, input string) string {
	d.t.Helper()
	answer := d.Call(ctx, tool, json.RawMessage(input))
	if answer.IsError {
		return "error: " + answer.Text
	}
	return answer.Text
}

// says expects exactly this answer.
func (d *fixture) says(tool, input, want string) {
	d.t.Helper()
	if got := d.call(tool, input); got != want {
		d.t.Errorf("%s %s\n got %q\nwant %q", tool, clip(input), clip(got), want)
	}
}

// begins expects an answer that begins like this.
func (d *fixture) begins(tool, input, want string) {
	d.t.Helper()
	if got := d.call(tool, input); !strings.HasPrefix(got, want) {
		d.t.Errorf("%s %s\n got %q\nwant %q…", tool, clip(input), clip(got), want)
	}
}

func clip(s string) string { return s[:min(len(s), 400)] }

// object is JSON of keys and values in turn.
func object(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// events are the types of what the run's record holds, with those of refusals' tools.
func (d *fixture) events() string {
	d.t.Helper()
	var list []string
	for e, err := range (runlog.Book{Home: d.World.Home, Disk: d.World.Disk, Zone: d.World.Zone}).Events(d.Run.ID, nil) {
		if err != nil {
			d.t.Fatal(err)
		}
		word := string(e.Type)
		if e.Type == runlog.Refusal {
			word += ":" + e.Tool
		}
		list = append(list, word)
	}
	return strings.Join(list, " ")
}

func (d *fixture) recorded(want string) {
	d.t.Helper()
	if got := d.events(); got != want {
		d.t.Errorf("recorded %q, want %q", got, want)
	}
}

// budgeted expects the tokens that are left, and the counts of the day.
func (d *fixture) budgeted(left float64, used, critical int) {
	d.t.Helper()
	s, err := d.Budget.Status()
	if err != nil || s.Available != left || s.DailyUsed != used || s.CriticalUsed != critical {
		d.t.Errorf("%v left, %d and %d used, %v; want %v, %d and %d", s.Available, s.DailyUsed, s.CriticalUsed, err, left, used, critical)
	}
}

// pending expects these updates, one a line.
func (d *fixture) pending(want ...string) {
	d.t.Helper()
	list, err := d.Updates.Peek(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	var got []string
	for _, u := range list {
		got = append(got, u.Message)
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		d.t.Errorf("pending %.600q, want %q", got, want)
	}
}

// write makes a file of the data directory.
func (d *fixture) write(name, text string) string {
	d.t.Helper()
	path := d.World.Home.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d *fixture) read(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.World.Home.Path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// reminders are those that are set.
func (d *fixture) reminders() []job.Job {
	d.t.Helper()
	s, err := d.Jobs.Load()
	if err != nil || len(s.Faults) > 0 {
		d.t.Fatal(err, s.Faults)
	}
	return s.Only(job.Reminder).Jobs
}

// reminder is the only one that is set.
func (d *fixture) reminder() job.Job {
	d.t.Helper()
	all := d.reminders()
	if len(all) != 1 {
		d.t.Fatalf("%d reminders", len(all))
	}
	return all[0]
}
