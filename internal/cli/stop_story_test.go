package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// background is a command line that runs beside the test. Its engine's delays last until release or the end of the run.
type background struct {
	release func()
	ended   chan result
}

// start runs a command line beside the test and returns when its engine is in its first delay.
func (w *world) start(args ...string) background {
	w.t.Helper()
	var out, errOut bytes.Buffer
	released, delayed := make(chan struct{}), make(chan struct{})
	b := background{release: sync.OnceFunc(func() { close(released) }), ended: make(chan result, 1)}
	once := sync.OnceFunc(func() { close(delayed) })
	d := w.deps(strings.NewReader(""), &out, &errOut)
	d.Sleep = func(ctx context.Context, _ time.Duration) error {
		once()
		select {
		case <-released:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	go func() {
		status := execute(w.t.Context(), d, args)
		b.ended <- result{status, out.String(), errOut.String()}
	}()
	w.t.Cleanup(b.release)
	select {
	case <-delayed:
	case r := <-b.ended:
		w.t.Fatalf("ollim %s ended before its engine waited: %+v", strings.Join(args, " "), r)
	}
	w.pass(time.Second)
	return b
}

const slowScript = "turns:\n  - - text: begun\n    - delay: 1m\n    - text: done\n"

// record is what `run show NAME` prints.
func (w *world) record(name string) (record map[string]any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.must("run", "show", name)), &record); err != nil {
		w.t.Fatal(err)
	}
	return record
}

// A job names its run that is alive, whatever fires were skipped meanwhile, and else the latest run that was one.
func TestJobNamesTheRunThatIsAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(slowScript)
	w.must("routine", "add", "slow", "--cron", "0 9 * * *", "--background", "Work.")
	slow := w.start("fire", "slow")
	if r := w.run("fire", "slow"); r.status != int(statusTempFail) {
		t.Fatalf("the second fire: %+v", r)
	}
	w.pass(time.Second)
	if r := w.record("slow"); r["outcome"] != nil {
		t.Errorf("run show slow is a run that is %v, want the one that is alive", r["outcome"])
	}
	if out := w.must("run", "log", "slow"); !strings.Contains(out, "text begun") {
		t.Errorf("run log slow is not of the run that is alive: %s", out)
	}
	if r := w.record("last"); r["outcome"] != "skipped" {
		t.Errorf("run show last is %v, want the newest record, which is skipped", r["outcome"])
	}
	slow.release()
	<-slow.ended
	for name, outcome := range map[string]string{"slow": "ok", "slow~0": "ok", "last": "skipped"} {
		if r := w.record(name); r["outcome"] != outcome {
			t.Errorf("run show %s is %v, want %s", name, r["outcome"], outcome)
		}
	}
	w.must("pause")
	w.run("fire", "--scheduled", "slow")
	if r := w.record("slow"); r["outcome"] != "ok" {
		t.Errorf("after a paused fire run show slow is %v, want ok", r["outcome"])
	}
}

// A question may go on after a later one has ended.
func TestEarlierQuestionIsFoundWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(slowScript)
	first := w.start("ask", "first")
	w.script("turns:\n  - - text: quick\n")
	w.must("ask", "second")
	if r := w.record("ask"); r["outcome"] != nil {
		t.Errorf("run show ask is %v, want the question that goes on", r["outcome"])
	}
	first.release()
	<-first.ended
	if r := w.record("ask"); r["text"] != "quick" {
		t.Errorf("run show ask is %v, want the latest", r)
	}
}

// foreign makes the record of a run one that another PID namespace wrote: its process id means nothing here.
func (w *world) foreign(id string) {
	w.t.Helper()
	name := runFile(id, "run.json")
	text := w.read(name)
	changed := regexp.MustCompile(`"pid_namespace": "[^"]*"`).ReplaceAllString(text, `"pid_namespace": "pid:[1]"`)
	if changed == text {
		testkit.Missing(w.t, "the record names no PID namespace: run the test on Linux with /proc mounted")
	}
	w.write(name, changed)
}

// stop runs `ollim stop` in real time, because it waits for another process.
func (w *world) stop(args ...string) result {
	var out, errOut bytes.Buffer
	d := w.deps(strings.NewReader(""), &out, &errOut)
	d.Sleep = process.Sleep
	status := execute(w.t.Context(), d, append([]string{"stop"}, args...))
	return result{status, out.String(), errOut.String()}
}

// A run of another PID namespace is alive while its lock is held, ends when it finds that it was asked to, and is ended by nobody
// else.
func TestStopOfAForeignRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(slowScript)
	w.must("routine", "add", "slow", "--cron", "0 9 * * *", "--background", "Work.")
	slow := w.start("fire", "slow")
	id := w.last()["id"].(string)
	w.foreign(id)
	w.must("tick")
	if r := w.record(id); r["outcome"] != nil {
		t.Fatalf("while its lock is held the run is %v, %v", r["outcome"], r["error"])
	}
	if r := w.stop("slow"); r.status != 0 {
		t.Fatalf("stop: %+v", r)
	}
	if r := w.run("fire", "--dry-run", "slow"); r.status != 0 {
		t.Errorf("after the stop: %+v", r)
	}
	if r := <-slow.ended; r.status == 0 || !strings.Contains(r.errOut, "stopped by ollim stop") {
		t.Errorf("the fire: %+v", r)
	}
	if r := w.record(id); r["outcome"] != "interrupted" || r["error"] != "stopped by ollim stop" {
		t.Errorf("the record: %v, %v", r["outcome"], r["error"])
	}
	if _, err := os.Stat(filepath.Join(w.dir, runFile(id, "running"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the run's file is left, with the request: %v", err)
	}
}

// The native engine obeys as well, in the middle of an answer.
func TestStopOfAForeignNativeRun(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	hold := make(chan struct{})
	defer close(hold)
	asked := make(chan struct{})
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		close(asked)
		return anthropicapi.Reply{Text: "late", Hold: hold}
	})
	ended := make(chan result, 1)
	go func() { ended <- w.run("chat", "hello") }()
	<-asked
	id := w.last()["id"].(string)
	w.foreign(id)
	if r := w.stop("main"); r.status != 0 {
		t.Fatalf("stop: %+v", r)
	}
	<-ended
	if r := w.record(id); r["outcome"] != "interrupted" || r["error"] != "stopped by ollim stop" {
		t.Errorf("the record: %v, %v", r["outcome"], r["error"])
	}
}

// A foreign run whose lock is free has ended, whatever process has its number here.
func TestForeignRunWithoutLockHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.must("routine", "add", "slow", "--cron", "0 9 * * *", "--background", "Work.")
	w.must("fire", "slow")
	id := w.last()["id"].(string)
	w.foreign(id)
	name := runFile(id, "run.json")
	record := w.last()
	delete(record, "finished")
	delete(record, "outcome")
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	w.write(name, string(text)) // as if it had been killed
	if r := w.record(id); r["outcome"] != "interrupted" {
		t.Errorf("shown as %v", r["outcome"])
	}
	w.must("tick")
	if r := w.last(); r["outcome"] != "interrupted" || r["finished"] == nil {
		t.Errorf("after a tick: %v", r["outcome"])
	}
}
