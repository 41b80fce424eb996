package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/job"
)

const widenedRoutine = "---\nid: w1\ncron: \"@daily\"\ngate: check\n---\nWatch.\n"

// deskOf is a data directory with one widened routine and its gate, as commands see it; env is the environment.
func deskOf(t *testing.T, env map[string]string) (d *deps, stderr *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	stderr = &bytes.Buffer{}
	d = &deps{
		App: &app.App{
			DataDir: dir,
			Machine: app.Machine{
				Now:    func() time.Time { return time.Date(2026, 2, 24, 13, 30, 0, 0, time.UTC) },
				Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			},
		},
		Out: io.Discard, Stderr: stderr, logFormat: "text",
	}
	d.Warn = d.warn
	for name, text := range map[string]string{"config.yaml": "timezone: UTC\n", "routines/watch.md": widenedRoutine, "gates/check": "a"} {
		put(t, filepath.Join(dir, name), text)
	}
	return d, stderr
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// watch is the routine and whether it is approved.
func watch(t *testing.T, d *deps) (h app.Home, j job.Job, approved bool) {
	t.Helper()
	h = homeOf(t, d)
	s, err := h.Jobs.Load()
	if err != nil || len(s.Jobs) != 1 {
		t.Fatal(s.Faults, err)
	}
	subject, _, err := h.Approvals.Of(s.Jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	approved, err = h.Approvals.Approved(subject)
	if err != nil {
		t.Fatal(err)
	}
	return h, s.Jobs[0], approved
}

// answers is somebody at the terminal, who types what say returns when it is first read.
type answers struct {
	say  func() string
	text *strings.Reader
}

func (a *answers) Read(p []byte) (int, error) {
	if a.text == nil {
		a.text = strings.NewReader(a.say())
	}
	return a.text.Read(p)
}

// What changes between the showing and the answer is not approved.
func TestApproveWhatWasShown(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"gate":    func(t *testing.T, dir string) { put(t, filepath.Join(dir, "gates/check"), "b") },
		"job": func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "routines/watch.md"), strings.Replace(widenedRoutine, "Watch", "Rob", 1))
		},
		"plain": func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "routines/watch.md"), strings.Replace(widenedRoutine, "gate: check\n", "", 1))
		},
		"gone": func(_ *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "routines/watch.md")) },
		"bad":  func(t *testing.T, dir string) { put(t, filepath.Join(dir, "routines/watch.md"), "---\nid: w1\n---\n") },
	} {
		t.Run(name, func(t *testing.T) {
			d, stderr := deskOf(t, nil)
			h, j, _ := watch(t, d)
			a := approver{d: d, h: h, failed: failures{d: d, verb: "approve"}}
			if err := a.addJob(j); err != nil {
				t.Fatal(err)
			}
			screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			tty := &terminalOf{screen, newAsker(&answers{say: func() string { meanwhile(t, d.DataDir); return "y\n" }})}
			err = a.ask(context.Background(), tty, a.found[0])
			_, known, _ := h.Approvals.Last("w1")
			if name == "nothing" {
				if err != nil || !known {
					t.Errorf("%v, approved %v", err, known)
				}
				return
			}
			if known || statusOf(err) != statusTempFail {
				t.Errorf("%v, approved %v, said %q", err, known, stderr)
			}
		})
	}
}

func TestAskIsInterrupted(t *testing.T) {
	t.Parallel()
	screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	ctx, cancel := context.WithCancel(context.Background())
	waits := make(chan struct{})
	defer close(waits)
	tty := &terminalOf{screen, newAsker(&answers{say: func() string { cancel(); <-waits; return "y\n" }})}
	if yes, err := tty.agrees(ctx, screen, "?", true); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", yes, err)
	}
}

func TestApproveOwn(t *testing.T) {
	t.Parallel()
	d, stderr := deskOf(t, nil)
	own := func(want bool, warns string) {
		t.Helper()
		stderr.Reset()
		h, j, _ := watch(t, d)
		err := d.approveOwn(context.Background(), h, j)
		if _, _, approved := watch(t, d); err != nil || approved != want {
			t.Errorf("%v, approved %v", err, approved)
		}
		if said := stderr.String(); (said != "") != (warns != "") || !strings.Contains(said, warns) {
			t.Errorf("said %q", said)
		}
	}
	own(true, "")
	own(true, "")
	put(t, filepath.Join(d.DataDir, "routines/watch.md"), strings.Replace(widenedRoutine, "Watch", "Wait", 1))
	own(true, "")
	put(t, filepath.Join(d.DataDir, "gates/check"), "b") // not through us
	own(false, "watch waits for approval: changed since it was approved: gates/check: ollim approve watch")
	put(t, filepath.Join(d.DataDir, "gates/check"), "a")
	put(t, filepath.Join(d.DataDir, "routines/watch.md"), strings.Replace(widenedRoutine, "gate: check\n", "", 1))
	h, j, _ := watch(t, d)
	if err := d.approveOwn(context.Background(), h, j); err != nil {
		t.Error(err)
	}
}

func TestApproveOwnInARun(t *testing.T) {
	t.Parallel()
	d, stderr := deskOf(t, map[string]string{"OLLIM_RUN": "20260101T000000.000Z-abcdef"})
	h, j, _ := watch(t, d)
	err := d.approveOwn(context.Background(), h, j)
	if _, _, approved := watch(t, d); err != nil || approved || !strings.Contains(stderr.String(), "watch waits for approval: not allowed") {
		t.Errorf("%v, approved %v, said %q", err, approved, stderr)
	}
}

func TestApproveOwnUnfit(t *testing.T) {
	t.Parallel()
	d, stderr := deskOf(t, nil)
	h, j, _ := watch(t, d)
	gate := filepath.Join(d.DataDir, "gates/check")
	if err := errors.Join(os.Remove(gate), os.Mkdir(gate, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := d.approveOwn(context.Background(), h, j); err != nil || !strings.Contains(stderr.String(), "watch waits for approval: gates/check: ") {
		t.Errorf("%v, said %q", err, stderr)
	}
}
