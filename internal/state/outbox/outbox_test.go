package outbox

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stored is the first line of an entry, as Send writes it.
func stored(t *testing.T, m Message) string {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func TestEntryIsReadableByPeople(t *testing.T) {
	o := newOffice(t)
	o.script(t, "echo 'no network' >&2; exit 1")
	o.send(t, message("20260224-run.1"), Queued)
	o.now = start.Add(time.Minute)
	o.flush(t, Report{Queued: 1})
	want := `{"id":"20260224-run.1","run":"20260224-run","job":"a1b2c3d4","label":"Daily market analysis","kind":"ping",` +
		`"critical":false,"text":"text of 20260224-run.1","created":"2026-02-24T22:30:00Z"}
{"at":"2026-02-24T22:30:00Z","error":"exit status 1: no network"}
{"at":"2026-02-24T22:31:00Z","error":"exit status 1: no network"}
`
	if got := o.read(t, "state/outbox/20260224-run.1.jsonl"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	info, err := os.Stat(o.path("20260224-run.1"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	got, err := json.Marshal(o.pending(t)[0])
	for _, want := range []string{`"id":"20260224-run.1"`, `"attempts":2`, `"last_error":"exit status 1: no network"`, `"next_attempt":"2026-02-24T22:32:00Z"`, `"stuck":false`} {
		if !strings.Contains(string(got), want) || err != nil {
			t.Errorf("%s is missing in %s (%v)", want, got, err)
		}
	}
}

// The file must never be replaced: a process that has it open to lock it would lock another file.
func TestInodeStays(t *testing.T) {
	o := newOffice(t)
	o.script(t, "exit 1")
	o.send(t, message("r.1"), Queued)
	before, err := os.Stat(o.path("r.1"))
	if err != nil {
		t.Fatal(err)
	}
	o.now = start.Add(time.Hour)
	o.flush(t, Report{Queued: 1})
	if after, err := os.Stat(o.path("r.1")); err != nil || !os.SameFile(before, after) {
		t.Errorf("replaced (%v)", err)
	}
}

// Each step sets the clock, flushes, and reports whether an attempt is made.
func TestSchedule(t *testing.T) {
	t.Parallel()
	type step struct {
		at  time.Duration // since the message was created
		try bool
	}
	const day = 24 * time.Hour
	for name, steps := range map[string][]step{
		"doubling": {
			{59 * time.Second, false}, {time.Minute, true}, {119 * time.Second, false}, {2 * time.Minute, true}, {239 * time.Second, false},
			{4 * time.Minute, true}, {7 * time.Minute, false}, {8 * time.Minute, true},
		},
		"hourly at most":   {{5 * time.Hour, true}, {6*time.Hour - 1, false}, {6 * time.Hour, true}, {7 * time.Hour, true}},
		"a day late":       {{day, true}, {day + 59*time.Minute, false}, {day + time.Hour, true}},
		"stuck":            {{7*day - 1, true}, {7*day + time.Hour, true}, {7*day + 3*time.Hour, false}, {400 * day, false}},
		"slept for a week": {{time.Minute, true}, {9 * day, true}, {10 * day, false}},
		"clock set back":   {{5 * time.Hour, true}, {4 * time.Hour, true}, {4*time.Hour + 59*time.Minute, false}, {5 * time.Hour, true}},
		"back behind the creation": {
			{time.Minute, true}, {-3 * day, true}, {-3*day + 59*time.Second, false}, {-3*day + time.Minute, true},
		},
		"clock was far ahead":  {{4000 * day, true}, {2 * time.Hour, true}, {3*time.Hour - 1, false}, {3 * time.Hour, true}},
		"clock was far behind": {{0, false}, {20000 * day, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.script(t, `echo x >> "$data/tries"; exit 1`)
			o.send(t, message("r.1"), Queued)
			want := 1
			for _, s := range steps {
				o.now = start.Add(s.at)
				next, stuck := o.pending(t)[0].Next, o.pending(t)[0].Stuck
				if due := !stuck && !o.now.Before(next); due != s.try || stuck != next.IsZero() {
					t.Errorf("at %s Pending says next %s, stuck %v", s.at, next.Sub(start), stuck)
				}
				if s.try {
					want++
				}
				o.flush(t, Report{Queued: 1})
				if got := len(o.read(t, "tries")) / 2; got != want {
					t.Fatalf("at %s: %d attempts, want %d", s.at, got, want)
				}
			}
			if e := o.pending(t)[0]; e.Attempts != want {
				t.Errorf("%d attempts on record, want %d", e.Attempts, want)
			}
		})
	}
}

func TestWithoutCommand(t *testing.T) {
	for _, command := range [][]string{nil, {""}} {
		o := newOffice(t)
		o.Command = command
		if o.Configured() {
			t.Errorf("%q is configured", command)
		}
		m := message("r.1")
		m.Created = time.Time{}
		o.send(t, m, Queued)
		o.now = start.Add(30 * 24 * time.Hour)
		o.flush(t, Report{})
		e := o.pending(t)
		if len(e) != 1 || e[0].Attempts != 0 || e[0].Stuck || !e[0].Created.Equal(start) || !e[0].Next.Equal(start) {
			t.Errorf("%+v", e)
		}
		o.script(t, "exit 0")
		if !o.Configured() {
			t.Error("a command is not configured")
		}
		o.flush(t, Report{Sent: 1})
	}
	o := newOffice(t)
	future := message("r.1")
	future.Created = start.Add(time.Hour) // the clock was set back since
	o.send(t, future, Queued)
	if e := o.pending(t); !e[0].Next.Equal(start) {
		t.Errorf("next %s", e[0].Next)
	}
	o.script(t, "exit 0")
	o.flush(t, Report{Sent: 1})
}

func TestFlushOldestFirst(t *testing.T) {
	o := newOffice(t)
	for id, age := range map[string]time.Duration{"b": 3, "a": 1, "c": 2, "d": 2} {
		m := message(id)
		m.Created = start.Add(-age * time.Minute)
		o.send(t, m, Queued)
	}
	o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"
case $OLLIM_MESSAGE_ID in c) exit 77;; d) exit 1;; esac`)
	var listed string
	for _, e := range o.pending(t) {
		listed += e.ID
	}
	o.flush(t, Report{Sent: 2, Queued: 1, Refused: 1})
	if got := o.read(t, "sent"); got != "b\nc\nd\na\n" || listed != "bcda" {
		t.Errorf("sent %q, listed %q", got, listed)
	}
	if len(o.warned) != 1 || o.files(t) != "d.jsonl" {
		t.Errorf("warned %q, left %q", o.warned, o.files(t))
	}
}

func TestMessageIDs(t *testing.T) {
	o := newOffice(t)
	o.script(t, "exit 0")
	for _, id := range []string{"a", "20260224T223000-1f.12", "A_b-c..d", "-x", strings.Repeat("x", 128)} {
		o.send(t, message(id), Sent)
	}
	for _, id := range []string{"", ".", "..", ".a", "a/b", "../a", "a b", "a\n", "a\x00", "é", strings.Repeat("x", 129)} {
		if fate, err := o.try(t.Context(), message(id)); !errors.Is(err, errID) || fate != "" {
			t.Errorf("%q: %q, %v", id, fate, err)
		}
	}
	if left, err := filepath.Glob(o.Home.State("*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestIDIsTaken(t *testing.T) {
	o := newOffice(t)
	o.send(t, message("r.1"), Queued)
	m := message("r.1")
	m.Text = "another"
	if fate, err := o.try(t.Context(), m); !errors.Is(err, ErrTaken) || fate != "" {
		t.Errorf("%q, %v", fate, err)
	}
	if e := o.pending(t); len(e) != 1 || e[0].Text != "text of r.1" || o.files(t) != "r.1.jsonl" {
		t.Errorf("%+v, %s", e, o.files(t))
	}
	o.file(t, ".r.2.new", stored(t, message("r.2")))
	if fate, err := o.try(t.Context(), message("r.2")); !errors.Is(err, ErrTaken) || fate != "" {
		t.Errorf("%q, %v", fate, err)
	}
	o.script(t, "exit 0")
	o.flush(t, Report{Sent: 2})
}

func TestTornTail(t *testing.T) {
	for name, tail := range map[string]string{
		"attempt":       `{"at":"2026-02-24T22:30:00Z","error":"one"}` + "\n" + `{"at":"2026-02-24T22:40:00Z","err`,
		"no newline":    `{"at":"2026-02-24T22:30:00Z","error":"one"}`,
		"garbage":       "\x00\x00\x00\n" + `{"at":"2026-02-24T22:30:00Z","error":"one"}` + "\n{}\n[]\n",
		"unknown field": `{"at":"2026-02-24T22:30:00Z","error":"one","by":"hand"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.script(t, "echo two >&2; exit 2")
			o.file(t, "r.1.jsonl", stored(t, message("r.1"))+tail)
			if e := o.pending(t); len(e) != 1 || e[0].Attempts != 1 || e[0].LastError != "one" || !e[0].LastTry.Equal(start) {
				t.Fatalf("%+v", e)
			}
			o.now = start.Add(time.Minute)
			o.flush(t, Report{Queued: 1})
			if e := o.pending(t); len(e) != 1 || e[0].Attempts != 2 || e[0].LastError != "exit status 2: two" || !e[0].LastTry.Equal(o.now) {
				t.Errorf("after another attempt: %+v", e)
			}
			if len(o.warned) != 0 {
				t.Errorf("warned %q", o.warned)
			}
		})
	}
}

func TestNoMessageIsSetAside(t *testing.T) {
	good := stored(t, message("r.1"))
	for name, data := range map[string]string{
		"torn":               good[:len(good)/2],
		"torn, then attempt": good[:len(good)/2] + "\n" + `{"at":"2026-02-24T22:30:00Z","error":"one"}` + "\n",
		"of another name":    stored(t, message("r.2")),
		"of no name":         `{"text":"x"}` + "\n",
		"of no time":         `{"id":"r.1","text":"x"}` + "\n",
		"not an object":      "[1]\n",
		"null":               "null\n",
		"wrong type":         `{"id":"r.1","text":5}` + "\n",
		"blank":              "\n\n",
		"bytes":              "\x00\x01\xff",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"`)
			o.file(t, "r.1.jsonl", data)
			o.send(t, message("r.0"), Sent)
			o.file(t, "r.9.jsonl", stored(t, message("r.9")))
			if e := o.pending(t); len(e) != 1 || e[0].ID != "r.9" || len(o.warned) != 1 || !strings.Contains(o.warned[0], "r.1.jsonl: not a message") {
				t.Errorf("Pending: %+v, warned %q", e, o.warned)
			}
			o.warned = nil
			o.flush(t, Report{Sent: 1})
			const aside = "r.1.jsonl.corrupt-20260224T223000.000000Z"
			if got := o.read(t, "state/outbox/"+aside); got != data || o.files(t) != aside {
				t.Errorf("kept %q among %q, want %q", got, o.files(t), data)
			}
			if len(o.warned) != 1 || !strings.Contains(o.warned[0], aside) {
				t.Errorf("warned %q", o.warned)
			}
			o.warned = nil
			o.flush(t, Report{})
			if got := o.read(t, "sent"); got != "r.0\nr.9\n" || len(o.warned) != 0 {
				t.Errorf("sent %q, then warned %q", got, o.warned)
			}
		})
	}
}

// What cannot be read now is no reason to move it, nor to keep the others waiting.
func TestUnreadableEntryStays(t *testing.T) {
	o := newOffice(t)
	o.script(t, "exit 0")
	if err := os.MkdirAll(o.path("r.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	o.send(t, message("r.2"), Sent)
	o.file(t, "r.3.jsonl", stored(t, message("r.3")))
	if r, err := o.Flush(t.Context()); err == nil || r != (Report{Sent: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	if files := o.files(t); files != "r.1.jsonl" {
		t.Errorf("in the outbox: %q", files)
	}

	o.file(t, "r.4.jsonl", stored(t, message("r.4")))
	ioError := errors.New("input/output error")
	if err := o.setAside(entry{Message: message("r.4"), broken: ioError}); !errors.Is(err, ioError) || len(o.warned) != 0 {
		t.Errorf("%v, warned %q", err, o.warned)
	}
	if files := o.files(t); files != "r.1.jsonl r.4.jsonl" {
		t.Errorf("in the outbox: %q", files)
	}
}

// Every state that a sender killed while it made an entry can leave.
func TestDraftsAreFinished(t *testing.T) {
	good := stored(t, message("r.1"))
	for name, tc := range map[string]struct {
		draft  string
		linked bool
		want   Report
		files  string
	}{
		"empty":    {"", false, Report{}, ""},
		"torn":     {good[:40], false, Report{}, "r.1.jsonl.corrupt-20260224T223000.000000Z"},
		"complete": {good, false, Report{Sent: 1}, ""},
		"linked":   {good, true, Report{Sent: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"`)
			o.file(t, ".r.1.new", tc.draft)
			if tc.linked {
				if err := os.Link(o.draft("r.1"), o.path("r.1")); err != nil {
					t.Fatal(err)
				}
			}
			o.flush(t, tc.want)
			if got, want := o.read(t, "sent"), strings.Repeat("r.1\n", tc.want.Sent); got != want || o.files(t) != tc.files {
				t.Errorf("sent %q, left %q; want %q, %q", got, o.files(t), want, tc.files)
			}
		})
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	o := newOffice(t)
	o.script(t, "exit 0")
	const files = ".hidden.jsonl .r.1.jsonl.tmp-12 README a b.jsonl r.1.jsonl.corrupt-20260224T223000.000000Z"
	for _, name := range []string{".hidden.jsonl", ".r.1.jsonl.tmp-12", "README", "a b.jsonl", "r.1.jsonl.corrupt-20260224T223000.000000Z"} {
		o.file(t, name, "x")
	}
	o.flush(t, Report{})
	if got := o.files(t); got != files || len(o.pending(t)) != 0 || len(o.warned) != 0 {
		t.Errorf("in the outbox %q, warned %q", got, o.warned)
	}
}

// A file that another process has just opened, as it was removed, is not a message.
func TestEmptyEntry(t *testing.T) {
	o := newOffice(t)
	o.script(t, "exit 0")
	o.file(t, "r.1.jsonl", "")
	if e := o.pending(t); len(e) != 0 || len(o.warned) != 0 {
		t.Errorf("%+v, warned %q", e, o.warned)
	}
	o.flush(t, Report{})
	if files := o.files(t); files != "" || len(o.warned) != 0 {
		t.Errorf("left %q, warned %q", files, o.warned)
	}
}

// A message that the owner deletes while it is being sent stays deleted.
func TestDeletedMeanwhile(t *testing.T) {
	o := newOffice(t)
	o.script(t, `rm "$data/state/outbox/r.1.jsonl"; exit 1`)
	o.send(t, message("r.1"), Queued)
	if files := o.files(t); files != "" {
		t.Errorf("left %q", files)
	}
}

func FuzzEntry(f *testing.F) {
	good, err := json.Marshal(message("r.1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good) + "\n")
	f.Add(string(good) + "\n" + `{"at":"2026-02-24T22:30:00Z","error":"one"}` + "\n" + `{"at":"9999-02-24T22:30:00Z","error":""}`)
	f.Add("null\n{}\n")
	o := officeAt(f.TempDir())
	f.Fuzz(func(t *testing.T, data string) {
		o.file(t, "r.1.jsonl", data)
		e := o.load("r.1")
		if e.ID != "r.1" {
			t.Errorf("read as %q", e.ID)
		}
		if e.broken == nil && !e.done && e.Stuck != e.Next.IsZero() {
			t.Errorf("neither stuck nor to be tried: %+v", e)
		}
		if e.broken == nil && !e.Stuck && e.Attempts == 0 && !e.needsWork(start) {
			t.Errorf("never tried and not due: %+v", e)
		}
	})
}

// TestUnreadableEntry: a message that cannot be read waits, and says why.
func TestUnreadableEntry(t *testing.T) {
	o := newOffice(t)
	o.script(t, "exit 0")
	o.file(t, "r.9.jsonl", stored(t, message("r.9")))
	path := o.path("r.1")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	e := o.pending(t)
	if len(e) != 2 || len(o.warned) != 1 || o.warned[0] != path+": is a directory" {
		t.Fatalf("%+v, warned %q", e, o.warned)
	}
	at := slices.IndexFunc(e, func(e entry) bool { return e.ID == "r.1" })
	if got := e[at]; got.Attempts != 1 || got.LastError != o.warned[0] || got.Created.IsZero() || got.Stuck {
		t.Errorf("%+v", got)
	}
	if r, err := o.Flush(t.Context()); err == nil || r.Sent != 1 {
		t.Errorf("Flush: %+v, %v", r, err)
	}
}
