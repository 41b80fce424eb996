package run_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

// sealed is a fixture whose runs are sealed. steps has what was done with their sockets.
type sealed struct {
	*fixture

	steps  []string
	listen error
	closes func()
}

func newSealed(t *testing.T, e engine.Engine) *sealed {
	t.Helper()
	abi, err := seal.Check()
	if err != nil {
		testkit.Missing(t, "%v: run it on Linux 6.12 or later", err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &sealed{fixture: newFixture(t, filepath.Join(root, "data"), e), closes: func() {}}
	temp, tools := filepath.Join(root, "temp"), filepath.Join(root, "tools", "bin")
	err = errors.Join(os.Mkdir(temp, 0o700), os.MkdirAll(tools, 0o700), os.WriteFile(filepath.Join(tools, "tool"), nil, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	s.Host.Env = []string{"PATH=" + tools + ":/usr/bin:/bin", "HOME=" + root}
	s.Host.Sealing = run.Sealing{Mode: config.SealOn, Check: func() (int, error) { return abi, nil }, Temp: temp}
	s.Host.Serve = func(run.Service) run.Socket {
		return run.Socket{
			Path:   filepath.Join(temp, "socket"),
			Listen: func() error { s.steps = append(s.steps, "listen"); return s.listen },
			Close:  func() { s.steps = append(s.steps, "close"); s.closes() },
		}
	}
	return s
}

func isTools(dir string) bool { return strings.Contains(dir, "/tools") }

// starts starts a program under a seal.
func starts(ctx context.Context, s *seal.Seal) error {
	cmd := exec.CommandContext(ctx, "/bin/true")
	err := s.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	return err
}

// TestSealOfARun: a run whose agent starts a program has a socket and a directory for temporary files while it works, and neither
// afterwards. Its context has ended when they are closed. What the origin starts at the end has a seal of its own, and its context ends too.
func TestSealOfARun(t *testing.T) {
	t.Parallel()
	var agent, atEnd context.Context
	e := plays()
	s := newSealed(t, e)
	e.run = func(ctx context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
		agent = ctx
		err := errors.Join(starts(ctx, r.Scope.Seal), starts(ctx, r.Scope.Seal))
		if files, _ := filepath.Glob(s.Host.Sealing.Temp + "/ollim-" + r.Run.ID + "-*"); len(files) != 1 || !slices.Contains(r.Run.Vars, "TMPDIR="+files[0]) {
			t.Errorf("temporary files in %q, variables %q", files, r.Run.Vars)
		}
		if r.Run.Socket != filepath.Join(s.Host.Sealing.Temp, "socket") {
			t.Errorf("the socket is %q", r.Run.Socket)
		}
		return errors.Join(err, all(sink, answered()...))
	}
	s.closes = func() {
		if agent.Err() == nil {
			t.Error("the seal is closed before the context of the agent ends")
		}
	}
	spec := routine()
	spec.Origin = &caller{end: func(ctx context.Context, set *tools.Set) {
		atEnd = ctx
		if err := starts(ctx, set.World.Seal); err != nil {
			t.Error(err)
		}
		s.steps = append(s.steps, "end")
	}}
	got, err := s.Run(t.Context(), spec)
	if err != nil || got.Outcome != runlog.OK || got.Sealed == nil || got.Sealed.ABI == 0 || !slices.ContainsFunc(got.Sealed.Read, isTools) {
		t.Errorf("%s, %+v, %v", got.Outcome, got.Sealed, err)
	}
	if steps := strings.Join(s.steps, ", "); steps != "listen, close, listen, end, close" {
		t.Errorf("steps: %s", steps)
	}
	if atEnd.Err() == nil {
		t.Error("the context of the origin's programs has not ended")
	}
	if files, _ := filepath.Glob(s.Host.Sealing.Temp + "/*"); len(files) > 0 || len(s.warned) > 0 {
		t.Errorf("left %q, warned %q", files, s.warned)
	}
}

// TestRunWithoutPrograms: a run that starts no program makes no socket and no directory, and nothing can be started after it.
func TestRunWithoutPrograms(t *testing.T) {
	t.Parallel()
	var kept *seal.Seal
	e := plays()
	s := newSealed(t, e)
	e.run = func(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
		kept = r.Scope.Seal
		return all(sink, answered()...)
	}
	if got, err := s.Run(t.Context(), routine()); err != nil || got.Sealed == nil || len(s.steps) > 0 {
		t.Errorf("%+v, %v: %q", got.Sealed, err, s.steps)
	}
	if err := starts(t.Context(), kept); !errors.Is(err, seal.ErrClosed) {
		t.Errorf("a program is started after the run: %v", err)
	}
}

// TestSealThatCannotBeMade: a run whose seal cannot be made when its first program starts fails, whatever the agent makes of it.
func TestSealThatCannotBeMade(t *testing.T) {
	t.Parallel()
	e := plays()
	s := newSealed(t, e)
	s.listen = errTest
	e.run = func(ctx context.Context, r engine.Request, _ engine.Tools, _ engine.Sink) error {
		if err := starts(ctx, r.Scope.Seal); !errors.Is(err, errTest) {
			t.Errorf("a program is started: %v", err)
		}
		return ctx.Err()
	}
	if got, err := s.Run(t.Context(), routine()); !errors.Is(err, errTest) || got.Outcome != runlog.Failed || !strings.HasPrefix(got.Error, "seal: ") {
		t.Errorf("%s, %q, %v", got.Outcome, got.Error, err)
	}
}

// TestProtectedDirectory: a run that may write what is protected is refused, and the reason names the setting or the flag.
func TestProtectedDirectory(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"routine": "dirs: ", runlog.Ask: "--add-dir "} {
		s, spec := newSealed(t, plays()), routine()
		spec.Identity.Kind = kind
		spec.Policy.Dirs = []policy.Root{{Dir: string(s.Home), Writable: true}}
		got, err := s.Run(t.Context(), spec)
		if !errors.Is(err, run.ErrRefused) || got.Outcome != runlog.Refused || !strings.HasPrefix(got.Error, want) {
			t.Errorf("%s: %s, %q, %v", kind, got.Outcome, got.Error, err)
		}
	}
}

// TestProtectedModes: a warning and an update name the protected file whose mode a run has changed, and the command that restores the mode.
func TestProtectedModes(t *testing.T) {
	t.Parallel()
	e := plays()
	s := newSealed(t, e)
	gates := s.Home.Path("gates")
	e.run = func(ctx context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
		return errors.Join(starts(ctx, r.Scope.Seal), os.Chmod(gates, 0o755), all(sink, answered()...))
	}
	if err := os.Mkdir(gates, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), routine()); err != nil {
		t.Fatal(err)
	}
	text := gates + ": its mode was changed from 0700 to 0755 while a ran"
	if len(s.warned) != 1 || s.warned[0] != text+": chmod 700 "+gates {
		t.Errorf("warned %q", s.warned)
	}
	pending, err := s.Updates.Peek(t.Context())
	if err != nil || len(pending) != 1 || !strings.Contains(pending[0].Message, text) || !strings.Contains(pending[0].Message, "`chmod 700 "+gates+"`") {
		t.Errorf("told %+v, %v", pending, err)
	}
}

// TestRefusedCommands: the record says what the seal denied to commands that failed, each thing once, and nothing of those that were denied
// before they started or that succeeded.
func TestRefusedCommands(t *testing.T) {
	t.Parallel()
	const perhaps = "permission was denied, perhaps by the seal: read and write list what is open"
	used := func(id, command string) runlog.Event {
		return runlog.Event{Type: runlog.ToolUse, Tool: "Bash", ToolID: id, Input: []byte(`{"command":"` + command + `"}`)}
	}
	failed := func(id, output string) runlog.Event {
		return runlog.Event{Type: runlog.ToolResult, Tool: "Bash", ToolID: id, Text: output, IsError: true}
	}
	denied, said := runlog.Event{Type: runlog.Verdict, ToolID: "1", IsError: true}, failed("1", "x: Permission denied")
	for name, c := range map[string]struct {
		events []runlog.Event
		want   []string
	}{
		"none":          {nil, nil},
		"failed":        {[]runlog.Event{used("1", "x"), said}, []string{perhaps}},
		"twice":         {[]runlog.Event{used("1", "x"), said, said}, []string{perhaps}},
		"not started":   {[]runlog.Event{used("1", "x"), denied, said}, nil},
		"allowed":       {[]runlog.Event{used("1", "x"), {Type: runlog.Verdict, ToolID: "1"}, said}, []string{perhaps}},
		"succeeded":     {[]runlog.Event{used("1", "x"), {Type: runlog.ToolResult, Tool: "Bash", ToolID: "1", Text: "Permission denied"}, failed("2", "no")}, nil},
		"another cause": {[]runlog.Event{used("1", "x"), failed("1", "no")}, nil},
		"another tool":  {[]runlog.Event{{Type: runlog.ToolUse, Tool: "Read", ToolID: "1", Input: []byte(`{"command":"x"}`)}, said}, nil},
	} {
		e := plays()
		s := newSealed(t, e)
		e.run = func(ctx context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
			return errors.Join(starts(ctx, r.Scope.Seal), all(sink, answered(c.events...)...))
		}
		got, err := s.Run(t.Context(), routine())
		if err != nil || !slices.Equal(got.Sealed.Refused, c.want) {
			t.Errorf("%s: refused %q, %v", name, got.Sealed.Refused, err)
		}
	}
}

// TestHiddenFiles: no agent may reach the state of the data directory and the owner's secrets, and none any file if they are not known.
func TestHiddenFiles(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays())
	open, secret := s.Home.Path("a.md"), filepath.Join(t.TempDir(), "secret")
	for _, path := range []string{open, secret} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Host.Secret = []string{secret}
	for path, want := range map[string]bool{open: false, secret: true, s.Home.State(): true, s.Home.Path("none"): true} {
		if s.Hides(path) != want {
			t.Errorf("%s: hidden %v", path, !want)
		}
	}
	if s.Host.Secret = []string{"not-absolute"}; !s.Hides(open) {
		t.Error("with an unknown secret a file is not hidden")
	}
}
