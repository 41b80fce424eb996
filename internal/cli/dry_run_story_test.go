package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// plan is what `fire --dry-run --json` prints.
type plan struct {
	Model, Thinking, Session, System, Prompt, Refused string
	Branch                                            bool
	Tools, Refuses, Patterns                          []string
}

func (w *world) plan(job string) (p plan) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.must("fire", "--dry-run", "--json", job)), &p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// jobsOfAllModes writes a job of each mode, and with what changes its tools.
func (w *world) jobsOfAllModes() []string {
	w.write("skills/prose/SKILL.md", "---\nname: prose\ndescription: d\n---\nWrite.\n")
	jobs := map[string][]string{
		"talk":       nil,
		"branch":     {"--background", "--allowed-tools", "WebFetch", "--allowed-tools", "Bash(git log *)"},
		"silent":     {"--background", "--allow-ping=false", "--update-main-session", "blocked"},
		"alone":      {"--background", "--isolated", "--model", "haiku", "--thinking", "off"},
		"persistent": {"--background", "--session", "persistent", "--skills", "prose"},
	}
	for name, flags := range jobs {
		w.must(append(append([]string{"routine", "add", name, "--cron", "0 9 * * *"}, flags...), "Look at "+name+".")...)
	}
	return slices.Sorted(maps.Keys(jobs))
}

// What --dry-run says is what the request carries: tools, patterns, model, session and words. The second fire of each job has
// a session to continue or to branch.
func TestDryRunIsExact(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	jobs := w.jobsOfAllModes()
	for _, job := range slices.Concat(jobs, jobs) {
		text := w.must("fire", "--dry-run", job)
		p := w.plan(job)
		api.Reply(anthropicapi.Reply{Text: "Heard " + job + "."})
		w.now = w.now.Add(-3e9) // the prompt names the minute, but news are counted from the second
		w.must("fire", job)
		requests := api.Requests()
		q, record := requests[len(requests)-1], w.last()

		if names := q.ToolNames(); !slices.Equal(p.Tools, slices.Sorted(slices.Values(names))) {
			t.Errorf("%s: tools\n%q, the request has\n%q", job, p.Tools, names)
		}
		if p.Model != q.Model || p.System != q.System {
			t.Errorf("%s: model %s, the request has %s; system prompt\n%s\nthe request has\n%s", job, p.Model, q.Model, p.System, q.System)
		}
		if got := strings.TrimSuffix(q.LastUserText(), "\n"); !strings.HasSuffix(got, strings.TrimSuffix(p.Prompt, "\n")) {
			t.Errorf("%s: prompt\n%s\nthe request has\n%s", job, p.Prompt, got)
		}
		if patterns := texts(record["tools"]); !slices.Equal(p.Patterns, patterns) {
			t.Errorf("%s: patterns %q, the run has %q", job, p.Patterns, patterns)
		}
		before, parent := record["session_before"], record["parent_session"]
		if session := any(p.Session); p.Session != "" && (session != before && !p.Branch || session != parent && p.Branch) || p.Session == "" && (before != nil || parent != nil) {
			t.Errorf("%s: session %q (branch %v), the run has %v, parent %v", job, p.Session, p.Branch, before, parent)
		}
		if (p.Session != "") != (len(q.Messages) > 1) {
			t.Errorf("%s: session %q, the request has %d messages", job, p.Session, len(q.Messages))
		}
		for _, name := range p.Refuses {
			if !slices.Contains(p.Tools, name) || !strings.Contains(text, "\ntool: "+name+" (refused when called)\n") {
				t.Errorf("%s: refuses %s, in\n%s", job, name, text)
			}
		}
		for _, line := range []string{"\nmodel: " + p.Model + "\n", "\nsession: ", "\n\n" + p.Prompt} {
			if !strings.Contains(text, line) {
				t.Errorf("%s: no %q in\n%s", job, line, text)
			}
		}
		if n := strings.Count(text, "\ntool: "); n != len(p.Tools) {
			t.Errorf("%s: %d tools in text, %d in JSON", job, n, len(p.Tools))
		}
		if n := strings.Count(text, "\npattern: "); n != len(p.Patterns) {
			t.Errorf("%s: %d patterns in text, %d in JSON", job, n, len(p.Patterns))
		}
		w.pass(1e9)
	}
}

func texts(v any) (list []string) {
	items, _ := v.([]any)
	for _, item := range items {
		list = append(list, item.(string))
	}
	return list
}

// A tool that --dry-run calls refused is refused when the model calls it, and only such a tool.
func TestDryRunNamesRefusedTools(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.jobsOfAllModes()
	inputs := map[string]any{
		"ping_user": map[string]string{"message": "m"}, "report_updates": map[string]string{"message": "m"},
		"list_reminders": map[string]any{}, "search_docs": map[string]string{"query": "cron"}, "update_names": map[string]string{"user_name": "Ann"},
		"Glob": map[string]string{"pattern": "routines/*.md"}, "Write": map[string]string{"file_path": "notes.md", "content": "x"},
	}
	for _, job := range []string{"branch", "silent", "alone"} {
		p := w.plan(job)
		for name, input := range inputs {
			if !slices.Contains(p.Tools, name) {
				continue
			}
			api.Reply(anthropicapi.Use(name, input), anthropicapi.Reply{Text: "Done."})
			w.run("fire", job)
			log := w.must("run", "log", "last")
			if refused := strings.Contains(log, "tool_result "+name+" (error)"); refused != slices.Contains(p.Refuses, name) {
				t.Errorf("%s: %s: refused %v, the plan refuses %q\n%s", job, name, refused, p.Refuses, log)
			}
		}
	}
}

// A session that is gone is not continued: the plan begins one, and its prompt says so.
func TestDryRunOfLostSession(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "own", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Look.")
	w.write("state/routine_sessions/"+w.routineID("own"), "n-0123456789ab")
	p := w.plan("own")
	api.Reply(anthropicapi.Reply{Text: "Done."})
	w.must("fire", "own")
	if p.Session != "" || w.prompt() != p.Prompt || !strings.Contains(p.Prompt, "Your earlier session is gone") {
		t.Errorf("session %q, prompt\n%s\nwant\n%s", p.Session, p.Prompt, w.prompt())
	}
}

// routineID is the id of the routine of a name.
func (w *world) routineID(name string) string {
	w.t.Helper()
	for line := range strings.Lines(w.must("routine", "list")) {
		if cells := strings.Split(line, "\t"); len(cells) > 1 && cells[1] == name {
			return cells[0]
		}
	}
	w.t.Fatalf("there is no routine %s", name)
	return ""
}
