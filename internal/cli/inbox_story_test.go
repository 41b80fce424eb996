package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/payload"
)

// accepts puts an event for a webhook into the inbox, and returns its run.
func (w *world) accepts(hook, value string) string {
	w.t.Helper()
	h := homeOf(w.t, w.deps(nil, nil, nil))
	r, err := h.Inbox.Receive()
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	data := []payload.Datum{{Key: "branch", Value: json.RawMessage(value)}}
	run, _, err := r.Add(w.t.Context(), inbox.Entry{Hook: hook, Hash: value, Data: data})
	if err != nil {
		w.t.Fatal(err)
	}
	return run
}

const branchHook = `---
id: ci
fields: {properties: {branch: {type: string}}}
isolated: true
allow-ping: false
update-main-session: blocked
---
Look at {branch}.
`

// An event that waits is shown by status, run show and tick --dry-run. Its run has the id that its sender was given, its data, and the
// time of its arrival if that is long ago; it is run once.
func TestEventIsRunFromTheInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.write("webhooks/ci.md", branchHook)
	run := w.accepts("ci", `"release 1"`)
	w.pass(10 * time.Minute)
	if out := w.must("status"); !strings.Contains(out, "inbox\t10:00:01\tci\t1\n") {
		t.Errorf("status: %q", out)
	}
	if out := w.must("tick", "--dry-run"); !strings.Contains(out, "ci\tstart\tMon 2026-03-02 10:00") {
		t.Errorf("tick --dry-run: %q", out)
	}
	if r := w.run("run", "show", run); r.status != 75 || !strings.Contains(r.errOut, "the event waits in the inbox of webhook ci since Mon 2026-03-02 10:00") {
		t.Errorf("run show: %+v", r)
	}
	w.must("fire", "--inbox", run)
	prompt := w.read(runFile(run, "prompt.txt"))
	if !strings.HasPrefix(prompt, "[webhook:ci] [late: arrived at 10:00 AM, running now] ") || !strings.Contains(prompt, "- branch: \"release 1\"\n") {
		t.Errorf("prompt: %q", prompt)
	}
	if record := w.last(); record["id"] != run || record["outcome"] != "ok" || record["scheduled_for"] != "2026-03-02T10:00:01Z" {
		t.Errorf("%v", record)
	}
	if r := w.run("fire", "--inbox", run); r.status != 66 || len(w.runs()) != 1 {
		t.Errorf("again: %+v, %d runs", r, len(w.runs()))
	}
	if out := w.must("status"); strings.Contains(out, "inbox") {
		t.Errorf("status afterwards: %q", out)
	}
}

// An event waits for the owner's approval and for the end of a pause, with the same exit status as other fires.
func TestEventWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.write("webhooks/ci.md", strings.Replace(branchHook, "isolated: true", "isolated: true\nallowed-tools: [Bash(ls *)]", 1))
	run := w.accepts("ci", `"main"`)
	if r := w.run("fire", "--inbox", run); r.status != 77 || !strings.Contains(r.errOut, "not approved") {
		t.Errorf("not approved: %+v", r)
	}
	w.approveJob("ci")
	w.must("pause")
	if r := w.run("fire", "--inbox", run); r.status != 75 || !strings.Contains(r.errOut, "everything is paused") {
		t.Errorf("paused: %+v", r)
	}
	if n := len(w.runs()); n != 0 {
		t.Errorf("%d runs", n)
	}
	w.must("resume")
	w.must("fire", "--inbox", run)
	if record := w.last(); record["id"] != run || record["outcome"] != "ok" {
		t.Errorf("%v", record)
	}
}

func TestInboxTakesNoJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"fire", "--inbox", "x", "ci"}, {"fire"}} {
		if r := w.run(args...); r.status != 64 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := w.run("fire", "--inbox", "20260302T100001.000Z-4f8a01"); r.status != 66 || !strings.Contains(r.errOut, "not in the inbox") {
		t.Errorf("%+v", r)
	}
}

// The events of a webhook whose file is deleted are not forgotten: rm, status and a pending update say so.
func TestEventsOfADeletedWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.write("webhooks/build.md", branchHook)
	w.accepts("ci", `"a"`)
	w.accepts("ci", `"b"`)
	if out := w.must("status"); !strings.Contains(out, "\tbuild\t2\n") {
		t.Errorf("status: %q", out)
	}
	if r := w.run("webhook", "rm", "build"); r.status != 0 || !strings.Contains(r.errOut, "ci: the inbox still has 2 accepted events,") {
		t.Errorf("webhook rm: %+v", r)
	}
	w.must("tick")
	if out := w.must("status"); !strings.Contains(out, "\tci\t2\tno valid file has this id\n") || !strings.Contains(out, "updates\t1\n") {
		t.Errorf("status: %q", out)
	}
}
