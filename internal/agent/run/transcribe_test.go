package run_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// question is a question at a shell, in a session; "" begins one.
func question(session string, branch bool) run.Spec {
	spec := routine()
	spec.Identity.Subject = runlog.Subject{Kind: runlog.Ask}
	spec.Conversation = conversation.Question{Session: session, Branch: branch}
	spec.Engine.Transcribe = true
	return spec
}

// said returns what the transcript of a session has, one message on each line, and its parent.
func (s *fixture) said(t *testing.T, session string) (lines []string, parent string) {
	t.Helper()
	kept, err := transcript.Dir(s.Home.Sessions()).Find(session)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := kept.Load(new(int))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text := e.Message.Role
		for _, b := range e.Message.Content {
			last := strings.Split(strings.TrimSpace(b.Text), "\n")
			text += " " + b.Type + " " + last[len(last)-1]
		}
		lines = append(lines, text)
	}
	return lines, kept.ParentID
}

// TestTranscript: each question is written to the transcript of its session once, with the answer; a branch has a transcript of its own,
// which names its parent. The transcript is locked while the engine works.
func TestTranscript(t *testing.T) {
	t.Parallel()
	id := "s"
	e := plays()
	s := newFixture(t, t.TempDir(), e)
	kept := func() string {
		file, err := transcript.Dir(s.Home.Sessions()).Find(id)
		if err != nil {
			t.Error(err)
		}
		return file.Path
	}
	e.run = func(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
		if r.Session.ID == id && !r.Session.Fork && lock.Free(kept()) {
			t.Error("the transcript is free before the session goes on")
		}
		for _, e := range answered() {
			if e.Session != "" {
				e.Session = id
			}
			if err := sink(e); err != nil {
				return err
			}
			if lock.Free(kept()) {
				t.Error("the transcript is free while the engine works")
			}
		}
		return nil
	}
	image := s.Home.Path("x.png")
	if err := os.WriteFile(image, []byte("image"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, spec := range []run.Spec{question("", false), question("s", false), question("s", true)} {
		if i == 1 {
			spec.Input.Piped.Files = []engine.Attachment{{Name: "x.png", Type: "image/png", Path: image}}
		}
		if i == 2 {
			id = "branch"
		}
		if _, err := s.Run(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if !lock.Free(kept()) {
			t.Error("the transcript is locked after the turn")
		}
	}
	lines, parent := s.said(t, "s")
	if want := []string{"user text Go.", "assistant text done"}; len(lines) != 4 || !slices.Equal(lines[:2], want) || lines[3] != want[1] || parent != "" {
		t.Errorf("the transcript has %q, of %q", lines, parent)
	}
	if len(lines) == 4 && !strings.HasPrefix(lines[2], "user image") {
		t.Errorf("the image is %q", lines[2])
	}
	if lines, parent := s.said(t, "branch"); len(lines) != 2 || parent != "s" {
		t.Errorf("the branch has %q, of %q", lines, parent)
	}
}

// TestTranscriptOfATurnStartedAgain: a turn that the engine is asked for again, because its service was overloaded, has one prompt.
func TestTranscriptOfATurnStartedAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	e := plays()
	e.run = func(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) error {
		if asked++; asked == 1 {
			return errors.Join(sink(runlog.Event{Type: runlog.Session, Session: "s"}), &engine.Overloaded{Reason: "busy"})
		}
		return all(sink, answered()...)
	}
	s := newFixture(t, t.TempDir(), e)
	if _, err := s.Run(t.Context(), question("", false)); err != nil {
		t.Fatal(err)
	}
	if lines, _ := s.said(t, "s"); !slices.Equal(lines, []string{"user text Go.", "assistant text done"}) {
		t.Errorf("the transcript has %q", lines)
	}
}

// TestTranscriptThatIsBusy: a session goes on when nobody else writes its transcript; a run that ends before does not ask its engine.
func TestTranscriptThatIsBusy(t *testing.T) {
	t.Parallel()
	e := plays(answered()...)
	s := newFixture(t, t.TempDir(), e)
	if _, err := s.Run(t.Context(), question("", false)); err != nil {
		t.Fatal(err)
	}
	file, err := transcript.Dir(s.Home.Sessions()).Find("s")
	if err != nil {
		t.Fatal(err)
	}
	guard, err := lock.TryGuard(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Release()
	e.run = func(context.Context, engine.Request, engine.Tools, engine.Sink) error {
		t.Error("the engine is asked")
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	spec := question("s", false)
	spec.Origin = &caller{complete: func(*engine.Request) error { cancel(); return nil }}
	if got, err := s.Run(ctx, spec); got.Outcome != runlog.Interrupted || err == nil {
		t.Errorf("%s, %v", got.Outcome, err)
	}
}
