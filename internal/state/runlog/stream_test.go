package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// next is what a stream yields now: the job's name and the type of each line, with a text.
func (d *desk) next(s *stream) string {
	d.t.Helper()
	var words []string
	for line, err := range s.Next() {
		if err != nil {
			words = append(words, "error:"+line.Run)
			continue
		}
		word := line.Name + ":" + string(line.Type)
		if line.Text != "" {
			word += "=" + line.Text
		}
		if (line.Record != nil) != (line.Type == runEnded) || line.Record != nil && line.Record.ID != line.Run {
			d.t.Errorf("%s has the record %+v", word, line.Record)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (d *desk) later(by time.Duration) { d.now = d.now.Add(by) }

func (d *desk) text(r *Run, text string) {
	d.later(time.Second)
	d.event(r, Event{Type: Text, Text: text})
}

func (d *desk) finish(r *Run, o Outcome) {
	d.t.Helper()
	d.later(time.Second)
	if err := r.Finish(o, ""); err != nil {
		d.t.Fatal(err)
	}
}

// wants compares what the stream yields now.
func (d *desk) wants(s *stream, want string) {
	d.t.Helper()
	if got := d.next(s); got != want {
		d.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Runs that overlap are one stream in the order of time, and what comes later is yielded once.
func TestStream(t *testing.T) {
	d := newDesk(t)
	s := d.Stream(time.Time{})
	d.wants(s, "")
	a := d.open(Record{Subject: Subject{Name: "a"}})
	d.text(a, "a1")
	b := d.open(Record{Subject: Subject{Name: "b"}})
	d.text(b, "b1")
	d.text(a, "a2")
	d.finish(b, OK)
	d.wants(s, "a:run_started a:text=a1 b:run_started b:text=b1 a:text=a2 b:run_ended")
	d.wants(s, "")
	d.text(a, "a3")
	skipped := d.open(Record{Subject: Subject{Name: "c"}})
	d.finish(skipped, Skipped)
	d.wants(s, "a:text=a3 c:run_started c:run_ended")
	d.text(b, "late") // about a run that has ended
	d.finish(a, Failed)
	d.wants(s, "b:text=late a:run_ended")
	d.later(time.Hour)
	d.wants(s, "")
	d.event(a, Event{Type: Text, Text: "much later"})
	d.wants(s, "")
	d.wants(d.Stream(time.Time{}), "a:run_started a:text=a1 b:run_started b:text=b1 a:text=a2 b:run_ended a:text=a3 c:run_started c:run_ended "+
		"b:text=late a:run_ended a:text=much later")
}

// A line has the run, and the fields of the event as they are on disk.
func TestStreamLine(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Subject: Subject{Name: "a", Job: "j", Kind: "routine"}})
	huge := strings.Repeat("x", large)
	d.event(r, Event{Type: ToolUse, Tool: "Read", Input: json.RawMessage(`{"a":"<b>"}`)}, Event{Type: Text, Text: huge})
	n := 0
	for line, err := range d.Stream(time.Time{}).Next() {
		text, jsonErr := json.Marshal(line)
		var got map[string]any
		if err != nil || jsonErr != nil || json.Unmarshal(text, &got) != nil || got["run"] != r.ID || got["job"] != "j" || got["kind"] != "routine" || got["name"] != "a" ||
			got["at"] != "2026-03-02T10:00:00+01:00" {
			t.Errorf("%v, %v: %.300s", err, jsonErr, text)
		}
		if n == 1 && fmt.Sprint(got["input"]) != "map[a:<b>]" || n == 2 && got["text"] != huge {
			t.Errorf("%.300s", text)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d lines", n)
	}
}

// A run that waits ends, goes on and ends again, also if both happen between two looks.
func TestStreamOfAWaitingRun(t *testing.T) {
	for _, looks := range []bool{true, false} {
		d := newDesk(t)
		s := d.Stream(time.Time{})
		r := d.open(Record{Subject: Subject{Name: "a"}})
		d.text(r, "which?")
		d.finish(r, Waiting)
		d.wants(s, "a:run_started a:text=which? a:run_ended")
		d.later(24 * time.Hour)
		d.wants(s, "")
		r, err := d.Reopen(t.Context(), r.ID, func(*Record) {})
		if err != nil {
			t.Fatal(err)
		}
		d.event(r, Event{Type: Answered, Text: "this"})
		if looks {
			d.wants(s, "a:answered=this")
			d.wants(s, "")
		}
		d.text(r, "done")
		d.finish(r, OK)
		if looks {
			d.wants(s, "a:text=done a:run_ended")
		} else {
			d.wants(s, "a:answered=this a:text=done a:run_ended")
		}
		d.wants(s, "")
	}
}

// The stream begins at an instant: of a run that began before, only what happened since.
func TestStreamSince(t *testing.T) {
	d := newDesk(t)
	old, waiting := d.open(Record{Subject: Subject{Name: "old"}}), d.open(Record{Subject: Subject{Name: "w"}})
	d.finish(old, OK)
	d.finish(waiting, Waiting)
	a := d.open(Record{Subject: Subject{Name: "a"}})
	d.text(a, "a1")
	d.later(time.Hour)
	since := d.now
	files, before := []string{"run.json", "events.jsonl"}, since.Add(-time.Minute)
	for _, id := range []string{old.ID, waiting.ID, a.ID} { // as if they were written at the desk's time
		for _, file := range files {
			if err := os.Chtimes(d.Home.Run(id, file), before, before); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(d.Home.Questions(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Home.Question(waiting.ID), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := d.Hold(a.ID) // as the process of a run in progress does
	if err != nil {
		t.Fatal(err)
	}
	defer held.Leave()
	s := d.Stream(since)
	d.wants(s, "")
	d.text(a, "a2")
	again, err := d.Reopen(t.Context(), waiting.ID, func(*Record) {})
	if err != nil {
		t.Fatal(err)
	}
	d.text(again, "w1")
	d.text(d.open(Record{Subject: Subject{Name: "new"}}), "n1")
	d.wants(s, "a:text=a2 w:text=w1 new:run_started new:text=n1")
}

// A line that is being written is yielded when it is complete; one that cannot be read is skipped and counted; a run that is removed or
// has no record is none; a record that cannot be read is an error of that run, once.
func TestStreamOfDamage(t *testing.T) {
	d := newDesk(t)
	s := d.Stream(time.Time{})
	ids := d.several("a", "b", "c", "d")
	d.write(ids[1], "run.json", "{")
	if err := os.Remove(d.Home.Run(ids[2], "run.json")); err != nil {
		t.Fatal(err)
	}
	d.wants(s, "a:run_started error:"+ids[1]+" d:run_started")
	line := `{"at":"2026-03-02T09:00:00Z","type":"text","text":"x"}` + "\n"
	for i, cut := range []int{0, 1, 20, len(line) - 1} {
		d.write(ids[0], "events.jsonl", strings.Repeat(line, i)+line[:cut])
		if i == 0 {
			d.wants(s, "")
		} else {
			d.wants(s, "a:text=x")
		}
	}
	if err := os.RemoveAll(d.Home.Run(ids[0])); err != nil {
		t.Fatal(err)
	}
	d.write(ids[3], "events.jsonl", "nonsense\n\n"+line)
	d.wants(s, "d:text=x")
	if s.Bad != 1 {
		t.Errorf("%d bad lines, want 1", s.Bad)
	}
	d.several("e")
	d.wants(s, "e:run_started")
	if err := os.RemoveAll(d.Home.Runs()); err != nil {
		t.Fatal(err)
	}
	d.wants(s, "")
	if err := os.WriteFile(d.Home.Runs(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.wants(s, "error:")
}

// A reader that stops early loses nothing that it has not seen of the runs that it did not reach.
func TestStreamThatIsLeft(t *testing.T) {
	d := newDesk(t)
	d.several("a", "b", "c")
	s := d.Stream(time.Time{})
	for line := range s.Next() {
		if line.Name == "b" {
			break
		}
	}
	if got := strings.Fields(d.next(s)); !slices.Contains(got, "c:run_started") || slices.Contains(got, "a:run_started") {
		t.Errorf("%s", got)
	}
}

// TestStreamOfManyAtOnce: more runs than a process can open files have events of the same time.
func TestStreamOfManyAtOnce(t *testing.T) {
	d := newDesk(t)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	const files, runs = 200, 400
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) }()
	for n := range runs {
		at := d.now.Add(time.Duration(n) * time.Millisecond)
		id := newID(t, at, byte(n))
		end := at.Add(time.Hour)
		d.put(Record{ID: id, Started: at, Finished: &end, Outcome: OK})
		d.write(id, "events.jsonl", fmt.Sprintf(`{"at":%q,"type":"text","text":"%d"}`+"\n", d.now.Add(time.Minute).Format(time.RFC3339), n))
	}
	got := map[eventType]int{}
	for line, err := range d.Stream(time.Time{}).Next() {
		if err != nil {
			t.Fatal(err)
		}
		got[line.Type]++
	}
	if got[runStarted] != runs || got[Text] != runs || got[runEnded] != runs {
		t.Errorf("%v, want each %d times", got, runs)
	}
}

// TestStreamOfLateEvents: what is added to a run of an earlier day, after its end, is found although the other runs of that day are not
// looked at.
func TestStreamOfLateEvents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	run := d.open(Record{})
	d.finish(run, OK)
	day := filepath.Dir(d.Home.Run(run.ID))
	if err := os.Chtimes(day, d.now, d.now); err != nil {
		t.Fatal(err)
	}
	d.later(72 * time.Hour)
	if _, err := d.Tally(d.Midnight(start)); err != nil { // fills the cache
		t.Fatal(err)
	}
	since := d.now
	d.wants(d.Stream(since), "")
	d.later(time.Minute)
	late, err := d.At(run.ID)
	if err != nil {
		t.Fatal(err)
	}
	d.event(late, Event{Type: Delivered, Text: "sent"})
	if err := os.Chtimes(d.Home.Run(run.ID, "events.jsonl"), d.now, d.now); err != nil {
		t.Fatal(err)
	}
	if got := d.next(d.Stream(since)); !strings.Contains(got, "delivered") {
		t.Errorf("%q", got)
	}
}

// TestStreamOfAnyHistory: whatever happens, a stream that uses what is kept of the days is that of all runs.
func TestStreamOfAnyHistory(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(testkit.Full(2, 1)) {
		r := rand.New(rand.NewPCG(seed, 3))
		d := newDesk(t)
		var open, ended, waiting []*Run
		take := func(from *[]*Run) *Run {
			i := r.IntN(len(*from))
			one := (*from)[i]
			*from = slices.Delete(*from, i, i+1)
			return one
		}
		late := start // when an event was added to a run that had ended
		for step := range testkit.Full(250, 150) {
			d.later(time.Duration(r.IntN(900)) * time.Second)
			switch n := r.IntN(14); {
			case n < 5 || len(open) == 0:
				open = append(open, d.open(Record{}))
				d.text(open[len(open)-1], "begins")
			case n < 8:
				one := take(&open)
				d.finish(one, OK)
				ended = append(ended, one)
			case n < 9:
				one := take(&open)
				d.finish(one, Waiting)
				waiting = append(waiting, one)
			case n < 10 && len(waiting) > 0:
				again, err := d.Reopen(t.Context(), take(&waiting).ID, func(*Record) {})
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, again)
			case n < 11 && len(ended) > 0:
				d.text(ended[r.IntN(len(ended))], "late")
				info, err := os.Stat(d.Home.Runs())
				if err != nil {
					t.Fatal(err)
				}
				late = info.ModTime()
			case n < 12 && len(ended) > 0:
				if err := take(&ended).Remove(); err != nil {
					t.Fatal(err)
				}
			default:
				d.text(open[r.IntN(len(open))], "goes on")
			}
			d.dated(step, late)
			if r.IntN(10) == 0 {
				if _, err := d.Tally(d.Midnight(start)); err != nil {
					t.Fatal(err)
				}
			}
			since := d.now.Add(-time.Duration(r.IntN(4*3600)) * time.Second)
			got := d.next(d.Stream(since))
			cache, aside := d.Home.State("cache"), d.Home.State("aside")
			_ = os.Rename(cache, aside)
			want := d.next(d.Stream(since))
			_ = os.Rename(aside, cache)
			if got != want {
				t.Fatalf("seed %d, step %d:\n%s\nwant\n%s", seed, step, got, want)
			}
			if strings.Contains(want, "late") {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("no late event")
	}
}

// dated gives the files that were written since the last call the time of the desk, and the directory of all runs the time late.
func (d *desk) dated(step int, late time.Time) {
	d.t.Helper()
	err := os.Chtimes(d.Home.Runs(), late, late)
	for path, dayErr := range d.days() {
		at := time.Now().Add(time.Duration(step-3600) * time.Second) // older than the cache, and another one at each step
		err = errors.Join(err, dayErr, os.Chtimes(path, at, at))
	}
	ids, listErr := d.After(time.Time{})
	err = errors.Join(err, listErr)
	for _, id := range ids {
		for _, file := range []string{"run.json", "events.jsonl", "lock"} {
			if info, statErr := os.Stat(d.Home.Run(id, file)); statErr == nil && info.ModTime().After(d.now) {
				err = errors.Join(err, os.Chtimes(d.Home.Run(id, file), d.now, d.now))
			}
		}
	}
	if err != nil {
		d.t.Fatal(err)
	}
}
