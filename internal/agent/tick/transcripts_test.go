package tick_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/object"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// TestTranscripts: those of forked and isolated runs go after a week, unless somebody continues with what became of them. All others
// stay: of main, of routines, of questions, of other engines, and what they came from.
func TestTranscripts(t *testing.T) {
	c := newClock(t)
	sessions := c.home.Sessions()
	book := c.minute.Runner.Sessions
	paths := map[string]string{}
	begin := func(id, cwd, parent string, age time.Duration, kind session.Kind) {
		t.Helper()
		file, err := transcript.Dir(sessions).Create(transcript.Header{ID: id, Cwd: cwd, Provider: "anthropic", Timestamp: c.now, ParentID: parent})
		if err == nil && kind != "" {
			err = book.Log(t.Context(), session.Event{SessionID: id, ParentSessionID: parent, Event: kind})
		}
		if err == nil {
			err = os.Chtimes(file.Path, c.now.Add(-age), c.now.Add(-age))
		}
		if err != nil {
			t.Fatal(err)
		}
		paths[id] = file.Path
	}
	const week = 7 * 24 * time.Hour
	here := string(c.home)
	begin("n-first", here, "", 9*week, session.Created)
	begin("n-main", here, "n-first", 9*week, session.Compacted)
	begin("n-daily", here, "", 9*week, session.PersistentBg)
	begin("n-was-weekly", here, "", 9*week, session.PersistentBg)
	begin("n-forgotten", here, "", 9*week, session.Created)
	begin("n-old-fork", here, "n-main", week+time.Minute, session.BgFork)
	begin("n-old-compacted", here, "n-old-fork", week+time.Minute, session.Compacted)
	begin("n-young-fork", here, "n-main", week-time.Minute, session.BgFork)
	begin("n-old-alone", here, "", 9*week, session.IsolatedBg)
	begin("n-became-daily", here, "", 9*week, session.IsolatedBg)
	begin("n-weekly", here, "n-became-daily", 9*week, session.Compacted)
	begin("n-old-talk", here, "n-main", 9*week, session.InteractiveFork)
	begin("n-saved", here, "n-main", 9*week, session.InteractiveFork)
	begin("n-replied-to", here, "", 9*week, session.IsolatedBg)
	begin("n-open", here, "n-replied-to", 9*week, session.InteractiveFork)
	begin("n-asked", "/elsewhere", "", 9*week, "")
	begin("n-asked-here", here, "", 9*week, "")
	for _, err := range []error{book.SetMain("n-main"), book.SetRoutine("daily", "n-daily"), book.SetRoutine("weekly", "n-weekly"),
		book.Log(t.Context(), session.Event{SessionID: "n-saved", ParentSessionID: "n-main", Event: session.Swapped}),
		book.OpenFork(t.Context(), session.Fork{ID: "f", Session: "n-open", Parent: "n-replied-to", Prompts: 2})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	begin("s-script", here, "", 9*week, session.Created)
	play := func(id, parent string, age time.Duration, kind session.Kind) {
		t.Helper()
		path := filepath.Join(c.home.ScriptSessions(), id+".jsonl")
		c.write(path, fmt.Sprintf(`{"type":"session","id":%q,"parent_id":%q}`+"\n", id, parent))
		err := book.Log(t.Context(), session.Event{SessionID: id, ParentSessionID: parent, Event: kind})
		if err = errors.Join(err, os.Chtimes(path, c.now.Add(-age), c.now.Add(-age))); err != nil {
			t.Fatal(err)
		}
		paths[id] = path
	}
	play("s-old-alone", "", week+time.Minute, session.IsolatedBg)
	play("s-old-fork", "s-daily", week+time.Minute, session.BgFork)
	play("s-young-alone", "", week-time.Minute, session.IsolatedBg)
	play("s-daily", "", 9*week, session.PersistentBg)
	play("s-became-daily", "", 9*week, session.IsolatedBg)
	play("s-compacted", "s-became-daily", 9*week, session.Compacted)
	if err := book.SetRoutine("played", "s-compacted"); err != nil {
		t.Fatal(err)
	}
	claude := func(name string, age time.Duration, kind session.Kind) string {
		t.Helper()
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", len(paths))
		dir := filepath.Join(c.home.ClaudeSessions(), id)
		file := filepath.Join(dir, name, id+".jsonl")
		c.write(file, "{}\n")
		err := errors.Join(os.Chtimes(file, c.now.Add(-age), c.now.Add(-age)), os.Chtimes(dir, c.now.Add(-9*week), c.now.Add(-9*week)))
		if err == nil && kind != "" {
			err = book.Log(t.Context(), session.Event{SessionID: id, Event: kind})
		}
		if err != nil {
			t.Fatal(err)
		}
		paths[id] = dir
		return id
	}
	const began = "projects/-here"
	claude(began, 9*week, session.PersistentBg)
	claude(began, week-time.Minute, session.IsolatedBg)
	claude(began, 9*week, "") // a question
	old, empty := claude(began, week+time.Minute, session.IsolatedBg), claude("none", 9*week, "")
	c.tick()
	c.wait(week)
	c.tick()
	for id, path := range paths {
		gone := map[string]bool{old: true, empty: true, "n-old-talk": true, "n-old-fork": true, "n-old-compacted": true, "n-old-alone": true, "s-old-alone": true, "s-old-fork": true}[id]
		if _, err := os.Stat(path); os.IsNotExist(err) != gone {
			t.Errorf("%s: %v, want it gone: %v", id, err, gone)
		}
	}
}

// TestObjects: the images and documents that no transcript names go a day after they were last shown.
func TestObjects(t *testing.T) {
	c := newClock(t)
	box := object.Box{Home: c.home, Disk: c.minute.Runner.Disk}
	put := func(content string) string {
		t.Helper()
		hash, err := box.Put(t.Context(), []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	named, unnamed := put("named"), put("unnamed")
	file, err := transcript.Dir(c.home.Sessions()).Create(transcript.Header{ID: "n-main", Cwd: string(c.home), Timestamp: c.now})
	if err != nil {
		t.Fatal(err)
	}
	shown := (&transcript.Source{MediaType: "image/png", Size: 5, SHA256: named}).Block()
	message := transcript.Message{Role: transcript.User, Content: transcript.Blocks{shown}}
	if err := file.Append(store.Buffered, transcript.Entry{Message: message, At: c.now}); err != nil {
		t.Fatal(err)
	}
	c.wait(25 * time.Hour)
	young := put("young")
	c.tick()
	for hash, want := range map[string]bool{named: true, unnamed: false, young: true} {
		if _, err := box.Get(hash); (err == nil) != want {
			t.Errorf("%.8s: %v, want it kept: %v", hash, err, want)
		}
	}
}
