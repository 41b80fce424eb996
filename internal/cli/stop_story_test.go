package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
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
