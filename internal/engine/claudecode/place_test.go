package claudecode

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// newSealedWorld is a world that is sealed; where nothing can be, the test is skipped.
func newSealedWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	if w.seal != nil {
		return w
	}
	testkit.Missing(t, "nothing can be sealed here: run the test on Linux 6.12 or later")
	return nil
}

// turn is one more turn of a session, begun or continued or branched, and returns its session.
func (w *world) turn(prompt string, s engine.Session) string {
	w.t.Helper()
	r, err := w.run(engine.Request{Input: engine.Input{Prompt: prompt}, Session: s}, "mcp__ollim__note")
	if err != nil {
		w.t.Fatalf("%s: %v", prompt, err)
	}
	return r.Session
}

// knows reports whether the model was sent all texts with the last request.
func (w *world) knows(texts ...string) bool {
	requests := w.api.Requests()
	for _, text := range texts {
		if !requests[len(requests)-1].Has(text) {
			return false
		}
	}
	return true
}

// TestSealOnAndOff: a session goes on whether the seal is on or off, in the file in which it began; branches and compactions too.
func TestSealOnAndOff(t *testing.T) {
	t.Parallel()
	for name, sealedFirst := range map[string]bool{"begun sealed": true, "begun unsealed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			anthropicapi.InCI(t)
			w := newSealedWorld(t)
			on := w.seal
			use := func(sealed bool) {
				w.seal = on
				if !sealed {
					w.seal = nil
				}
			}
			use(sealedFirst)
			id := w.turn("FIRST", engine.Session{})
			began := w.transcripts()
			use(!sealedFirst)
			w.turn("SECOND", engine.Session{ID: id})
			if !w.knows("FIRST") {
				t.Error("the second turn does not know the first")
			}
			w.root = t.TempDir() // a session is found in any working directory
			use(sealedFirst)
			w.turn("THIRD", engine.Session{ID: id})
			if now := w.transcripts(); !w.knows("FIRST", "SECOND") || len(now) != 1 || now[0] != began[0] {
				t.Errorf("the third turn does not know both, or %q became %q", began, now)
			}
			use(!sealedFirst)
			if branch := w.turn("BRANCH", engine.Session{ID: id, Fork: true}); branch == id || !w.knows("FIRST", "SECOND", "THIRD") {
				t.Error("the branch does not know all turns")
			}
			if now := w.transcripts(); len(now) != 2 {
				t.Errorf("transcripts %q", now)
			}
			w.compact(id)
		})
	}
}

func (w *world) compact(id string) {
	w.t.Helper()
	c, err := w.engine.Compact(w.t.Context(), engine.Request{
		Run: engine.Run{ID: w.id}, Session: engine.Session{ID: id}, Scope: engine.Scope{Root: w.root, Seal: w.seal},
	}, "be short", func(runlog.Event) error { return nil })
	if err != nil || c.Session == id || len(w.engine.transcripts(id)) != 1 {
		w.t.Errorf("%+v %v", c, err)
		return
	}
	if w.turn("AFTER", engine.Session{ID: c.Session}); !w.knows("Summary of") {
		w.t.Errorf("the compacted session does not begin with the summary %q", c.Summary)
	}
}

// program makes a shell script in the working directory.
func (w *world) program(name, text string) {
	w.t.Helper()
	if err := testkit.WriteFile(filepath.Join(w.root, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		w.t.Fatal(err)
	}
}

// TestSealedAgent: whatever the hook allows, a command of the agent reaches the directory of its session alone.
func TestSealedAgent(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newSealedWorld(t)
	other := w.place(filepath.Join(w.engine.config("other"), "projects"), "other.jsonl", "HIDDEN")
	login := w.place(w.engine.shared(), ".credentials.json", "HIDDEN")
	settings := w.place(w.engine.shared(), "settings.json", "{}")
	w.program("probe", `cat '`+other+`' '`+login+`' '`+w.engine.Home.State("canary")+`'
echo x >'`+settings+`'; echo x >'`+w.engine.Home.Run(w.id, "settings.json")+`'
ls '`+w.engine.Home.ClaudeSessions()+`'
echo own >"$CLAUDE_CONFIG_DIR/own" && cat "$CLAUDE_CONFIG_DIR/own"
echo '{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:1"}}' >"$CLAUDE_CONFIG_DIR/.claude.json"; chmod 0 "$CLAUDE_CONFIG_DIR/backups"
tr '\0' '\n' <"/proc/$PPID/environ" | grep -c 'API_KEY=test'
true
`)
	w.ask("Bash", map[string]any{"command": "./probe all", "description": "look"})
	r, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}}, "Bash(./probe *)")
	if err != nil {
		t.Fatal(err)
	}
	text := w.result("Bash").Text
	t.Log(text)
	if strings.Contains(text, "HIDDEN") || strings.Contains(text, "SECRET") || !strings.Contains(text, "own\n0") || strings.Count(text, "ermission denied") != 6 {
		t.Errorf("the agent's command printed %q", text)
	}
	if text, err := os.ReadFile(settings); err != nil || string(text) != "{}" {
		t.Errorf("the owner's settings became %q, %v", text, err)
	}
	if w.turn("and now?", engine.Session{ID: r.Session}); !w.knows("go", "and now?") {
		t.Error("the next turn asks another server, as the agent's settings say")
	}
}

// TestUnwritableTemporaryFiles: the command would print nothing and exit 0.
func TestUnwritableTemporaryFiles(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newSealedWorld(t)
	w.engine.Env = append(w.engine.Env, "TMPDIR="+w.engine.Home.State())
	_, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}}, "mcp__ollim__note")
	if err == nil || !strings.Contains(err.Error(), "cannot write its temporary files") || len(w.api.Requests()) > 0 {
		t.Errorf("%v, after %d requests", err, len(w.api.Requests()))
	}
}

// TestLeftoversOfAKilledFire: what an earlier process of a session left behind has ended before the next one begins.
func TestLeftoversOfAKilledFire(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newSealedWorld(t)
	id := w.turn("FIRST", engine.Session{})
	left, err := process.Open(process.Call{Argv: []string{"sleep", "1000"}, Env: []string{"PATH=/usr/bin:/bin", sessionVariable + "=" + id}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close(time.Second)
	w.api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		if left.End(0) == "" && left.End(time.Minute) == "" {
			t.Error("it writes beside the next process")
		}
		return anthropicapi.Reply{Text: "done"}
	})
	w.turn("SECOND", engine.Session{ID: id})
}

// TestPlantedLink: what an agent plants in the directory of its session leads nowhere for us.
func TestPlantedLink(t *testing.T) {
	e := &Engine{Home: newHome(t, "r"), Env: []string{"HOME=" + t.TempDir()}}
	const id = "5e0c3c06-9f0a-4b9e-8a51-0f4d3f6f2a11"
	dir := filepath.Join(e.config(id), "projects", "-x")
	name, other := filepath.Join(dir, id+".jsonl"), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(other, []byte("{}\n"), 0o600), os.Symlink(other, name)); err != nil {
		t.Fatal(err)
	}
	if found := e.transcripts(id); len(found) != 0 {
		t.Errorf("a link: %q", found)
	}
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if found := e.transcripts(id); len(found) != 0 {
		t.Errorf("a pipe: %q", found)
	}
	if err := errors.Join(os.Remove(name), os.WriteFile(name, []byte("{}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	found := e.transcripts(id)
	if len(found) != 1 {
		t.Fatalf("a file: %q", found)
	}
	beside := strings.TrimSuffix(name, ".jsonl")
	if err := errors.Join(os.Symlink(filepath.Dir(other), beside), os.Remove(name), os.Symlink(other, name)); err != nil {
		t.Fatal(err)
	}
	rules := e.rules(engine.Request{}, e.config(id), source{past: history{file: found[0]}, grows: true})
	for _, path := range append(rules.Read, rules.Write...) {
		if strings.HasPrefix(path, command.Followed(filepath.Dir(other))) {
			t.Errorf("%s is granted, to which a link leads that has been made since", path)
		}
	}
}

// BenchmarkSealedTurn compares turns with a command and a use of the tool server, sealed and not, in turns: the medians in milliseconds, and
// by how many percent the sealed one is longer.
func BenchmarkSealedTurn(b *testing.B) {
	w := newSealedWorld(b)
	on, took := w.seal, map[bool][]time.Duration{}
	w.program("probe", "true")
	turn := func(sealed bool) {
		w.seal = on
		if !sealed {
			w.seal = nil
		}
		w.ask("Bash", map[string]any{"command": "./probe all", "description": "look"})
		w.ask("mcp__ollim__note", map[string]any{})
		w.api.Reply(anthropicapi.Reply{Text: "done"})
		begin := time.Now()
		if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}}, "Bash(./probe *)", "mcp__ollim__note"); err != nil {
			b.Fatal(err)
		}
		took[sealed] = append(took[sealed], time.Since(begin))
	}
	turn(true)
	turn(false)
	clear(took)
	for b.Loop() {
		turn(true)
		turn(false)
	}
	median := func(sealed bool) float64 {
		slices.Sort(took[sealed])
		return took[sealed][len(took[sealed])/2].Seconds() * 1000
	}
	b.ReportMetric(median(true), "sealed-ms")
	b.ReportMetric(median(false), "unsealed-ms")
	b.ReportMetric((median(true)/median(false)-1)*100, "%-longer")
}
