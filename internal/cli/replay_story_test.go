package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/agent/replay"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// replayed returns the result of a replay as JSON.
func (w *world) replayed(run string) (r replay.Result, status int) {
	w.t.Helper()
	got := w.run("run", "replay", "--json", run)
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		w.t.Fatalf("%+v: %v", got, err)
	}
	return r, got.status
}

// TestReplay: a run about which nothing has changed is the same, and a change of what its agent sees is named with its place. Nothing is
// sent, and the data directory stays as it is.
func TestReplay(t *testing.T) {
	t.Parallel()
	w, api := newJudgedWorld(t, 2, wise)
	ids := []string{w.runs()[0]["id"].(string), w.runs()[1]["id"].(string)}
	asked, before := len(api.Requests()), w.tree()
	for i, want := range []int{3, 2} {
		if r, status := w.replayed(ids[i]); status != 0 || !r.Same || r.Requests != want || r.Of != want || r.Uses != 1 || r.Difference != nil {
			t.Errorf("%+v", r)
		}
	}
	w.wants(w.must("run", "replay", ids[0]), "run "+ids[0]+": same: 3 requests and 1 decision about tools\n")
	if after := w.tree(); !slices.Equal(after, before) {
		t.Errorf("the data directory changed from\n%q\nto\n%q", before, after)
	}
	file := w.read("routines/disk.md")
	for _, c := range []struct {
		change func()
		want   replay.Difference
	}{
		{func() { w.must("config", "set", "native.model", "haiku") }, replay.Difference{Request: 1, Field: "model", Line: 1}},
		{func() { w.write("routines/disk.md", strings.Replace(file, "---\n", "---\nthinking: \"off\"\n", 1)) }, replay.Difference{Request: 1, Field: "thinking"}},
		{func() { w.write("routines/disk.md", strings.Replace(file, "---\n", "---\nallow-ping: false\n", 1)) }, replay.Difference{Request: 1, Field: "system"}},
		{func() { w.write("routines/disk.md", strings.Replace(file, "above 90 %", "above 80 %", 1)) }, replay.Difference{Request: 1, Field: "messages", Place: "message 1 content 1 text", Then: "Read data/disk.txt. Ping if it is above 90 %.", Now: "Read data/disk.txt. Ping if it is above 80 %."}},
	} {
		c.change()
		r, status := w.replayed(ids[0])
		d := r.Difference
		if status != 1 || r.Same || d == nil || d.Request != c.want.Request || d.Field != c.want.Field {
			t.Errorf("got %d %+v %+v, want %+v", status, r, d, c.want)
			continue
		}
		if c.want.Then != "" && (d.Place != c.want.Place || d.Then != c.want.Then || d.Now != c.want.Now || d.Line == 0) {
			t.Errorf("got %+v, want %+v", d, c.want)
		}
		w.write("routines/disk.md", file)
		w.must("config", "set", "native.model", "sonnet")
	}
	if n := len(api.Requests()); n != asked {
		t.Errorf("%d requests were sent", n-asked)
	}
}

// TestReplayIsRefused: a run that cannot be replayed is named once, with the reason.
func TestReplayIsRefused(t *testing.T) {
	t.Parallel()
	w, _ := newJudgedWorld(t, 1, wise)
	id := w.runs()[0]["id"].(string)
	whole := map[string]string{}
	for _, name := range []string{"events.jsonl", "requests.jsonl", "prompt.txt"} {
		whole[name] = w.read(runFile(id, name))
	}
	for _, c := range []struct {
		run    string
		status int
		want   string
		before func()
	}{
		{"nope", 66, "ollim: run replay: no run \"nope\"", func() {}},
		{id, 65, "run " + id + " cannot be replayed: requests.jsonl has 2 of its 3 requests", func() { w.keepLines(runFile(id, "requests.jsonl"), 3) }},
		{id, 65, "run " + id + " cannot be replayed: events.jsonl has lines that cannot be read, or lacks some", func() { w.keepLines(runFile(id, "events.jsonl"), 3) }},
		{id, 65, "run " + id + " cannot be replayed: events.jsonl has lines that cannot be read, or lacks some", func() { w.remove(runFile(id, "events.jsonl")) }},
		{id, 65, "run " + id + " cannot be replayed: requests.jsonl has a request twice", func() {
			lines := strings.SplitAfter(w.read(runFile(id, "requests.jsonl")), "\n")
			w.write(runFile(id, "requests.jsonl"), strings.Join(slices.Insert(lines, 2, lines[1]), ""))
		}},
		{id, 65, "run " + id + " cannot be replayed: its requests are not kept", func() { w.remove(runFile(id, "requests.jsonl")) }},
		{id, 65, "run " + id + " cannot be replayed: it has no prompt", func() { w.remove(runFile(id, "prompt.txt")) }},
		{id, 65, "run " + id + " cannot be replayed: events.jsonl has lines that cannot be read", func() { w.write(runFile(id, "events.jsonl"), "{\n") }},
	} {
		c.before()
		r := w.run("run", "replay", c.run)
		if r.status != c.status || !strings.Contains(r.errOut, c.want) || strings.Count(r.errOut, c.run) != 1 || r.out != "" {
			t.Errorf("%+v, want %d %s", r, c.status, c.want)
		}
		for name, text := range whole {
			w.write(runFile(id, name), text)
		}
	}
}

// TestReplayOfADistil: the run of a distil is refused with the reason.
func TestReplayOfADistil(t *testing.T) {
	t.Parallel()
	w, _ := newJudgedWorld(t, 12, writes(goodFilter))
	w.must("distil", "disk")
	if r := w.run("run", "replay", "last"); r.status != 65 || !strings.Contains(r.errOut, "cannot be replayed: it is a distil, ") {
		t.Errorf("%+v", r)
	}
}

// keepLines removes all but the first n lines of a file.
func (w *world) keepLines(path string, n int) {
	w.t.Helper()
	lines := strings.SplitAfter(w.read(path), "\n")
	if len(lines) <= n+1 {
		w.t.Fatalf("%s has %d lines", path, len(lines)-1)
	}
	w.write(path, strings.Join(lines[:n], ""))
}

// TestReplayJudgesTools: a use of a tool that today's patterns judge otherwise is a difference, after the requests.
func TestReplayJudgesTools(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("data/disk.txt", "full\n")
	api.Reply(anthropicapi.Use("Read", map[string]string{"file_path": "data/disk.txt"}), anthropicapi.Use("Read", map[string]string{"file_path": "USER.md"}), anthropicapi.Reply{Text: "Done."})
	w.must("chat", "hi")
	if got, status := w.replayed("last"); status != 0 || got.Uses != 2 {
		t.Errorf("%d %+v", status, got)
	}
	w.write("tool-policy.yaml", "main:\n  additional-allowed: [Read(./data/**)]\n")
	w.approvePolicy()
	got, status := w.replayed("last")
	if d := got.Difference; status != 1 || d == nil || d.Field != "policy" || d.Request != 0 || d.Now != "allowed" || !strings.HasPrefix(d.Then, "refused: ") || !strings.Contains(d.Place, "data/disk.txt") || got.Requests != 3 {
		t.Errorf("%d %+v %+v", status, got, d)
	}
	w.wants(w.run("run", "replay", "last").out, ": differs: policy, Read {\"file_path\":\"data/disk.txt\"}\n    then: refused: ", "\n    now:  allowed\n")
}

// TestReplayOfAJobThatIsGone: a job that does not exist any more has its file from the record, and a broken file is an error.
func TestReplayOfAJobThatIsGone(t *testing.T) {
	t.Parallel()
	w, _ := newJudgedWorld(t, 1, wise)
	file := w.read("routines/disk.md")
	w.write("routines/disk.md", strings.Replace(file, "---\n", "---\nno: field\n", 1))
	if r := w.run("run", "replay", "last"); r.status != 65 || !strings.Contains(r.errOut, "routines/disk.md:2: no: unknown key") {
		t.Errorf("%+v", r)
	}
	w.remove("routines/disk.md")
	if got, status := w.replayed("last"); status != 0 || got.Requests != 3 {
		t.Errorf("%d %+v", status, got)
	}
}

// TestReplayWaitsForTheEnd: a run in progress cannot be replayed.
func TestReplayWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	begun, end := make(chan struct{}), make(chan struct{})
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		close(begun)
		return anthropicapi.Reply{Text: "Hello.", Hold: end}
	})
	var talking sync.WaitGroup
	talking.Go(func() { w.run("chat", "hi") })
	<-begun
	if r := w.run("run", "replay", "last"); r.status != 75 || !strings.Contains(r.errOut, "the run is in progress: replay it when it has ended") {
		t.Errorf("%+v", r)
	}
	close(end)
	talking.Wait()
	if got, status := w.replayed("last"); status != 0 || got.Requests != 1 {
		t.Errorf("%d %+v", status, got)
	}
}

// TestReplayOfTypedOptions: what was typed for one run is an input, and no setting of today takes its place.
func TestReplayOfTypedOptions(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Done."} })
	w.must("routine", "add", "look", "--cron", "0 9 * * *", "--background", "--isolated", "--update-main-session", "freely", "--allow-ping=false", "Look.")
	for _, line := range [][]string{
		{"fire", "look", "--model", "haiku"}, {"-p", "-n", "--model", "haiku", "--system-prompt", "Be a poet.", "Why?"},
		{"-p", "-n", "--append-system-prompt", "Be short.", "--allowed-tools", "Read(./*.md)", "Why?"}, {"chat", "--model", "haiku", "hi"},
	} {
		w.must(line...)
		if got, status := w.replayed("last"); status != 0 || got.Requests != 1 {
			t.Errorf("%q: %d %+v %+v", line, status, got, got.Difference)
		}
	}
}

// TestReplayOfSessions: branches of main, turns of main, and a session that is compacted long after it began are built again from what
// their transcripts had then.
func TestReplayOfSessions(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "--update-main-session", "freely", "Look.")
	w.must("routine", "add", "diary", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--update-main-session", "freely", "Write.")
	var lines [][]string
	do := func(line ...string) { w.must(line...); lines = append(lines, line) }
	done := anthropicapi.Reply{Text: "Done.", Thinking: "Hm."}
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return done })
	do("chat", "hello")
	do("fire", "branch")
	do("chat", "again")
	do("fire", "branch")
	do("fire", "diary")
	do("fire", "diary")
	begun := false
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		if begun {
			return done
		}
		begun = true
		return anthropicapi.Use("compact_session", map[string]string{"instructions": "Keep all."})
	})
	do("fire", "diary")
	do("fire", "diary")
	runs := w.runs()
	if len(runs) != len(lines) {
		t.Fatalf("%d runs of %d", len(runs), len(lines))
	}
	for i, r := range runs {
		got, status := w.replayed(r["id"].(string))
		if status != 0 || got.Requests != got.Of || got.Of == 0 || len(got.Notes) > 0 {
			t.Errorf("%q: %d %+v %+v", lines[i], status, got, got.Difference)
		}
	}
	for _, r := range runs { // without the transcripts, what the session said is read from the first request
		w.remove("sessions")
		if got, status := w.replayed(r["id"].(string)); r["compactions"].(float64) == 0 && (status != 0 || got.Requests != got.Of) {
			t.Errorf("without transcripts: %d %+v %+v", status, got, got.Difference)
		}
	}
}
