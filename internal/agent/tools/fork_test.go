package tools_test

import (
	"testing"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// inFork is the fixture of a turn in the interactive fork that is open.
func inFork(t *testing.T, f session.Fork) *fixture {
	t.Helper()
	d := newFixture(t, runlog.Record{Mode: "fork", Key: session.ForkKey})
	d.Run.Foreground, d.Run.Shared = true, true
	f.ID, f.Begun = "f", d.now
	if err := d.Sessions.OpenFork(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestForkEndsAfterTheOwnersTurn: no tool ends a fork in which the owner has said nothing; all are refused, and recorded.
func TestForkEndsAfterTheOwnersTurn(t *testing.T) {
	t.Parallel()
	const early = "error: The owner has said nothing in this fork yet: wait for their first message."
	d := inFork(t, session.Fork{Session: "s", Turns: 1})
	d.says("exit_fork", `{}`, early)
	d.says("save_context", `{}`, early)
	d.says("report_updates", `{"message":"x"}`, early)
	d.recorded("refusal:exit_fork refusal:save_context refusal:report_updates")
	if list, err := d.Updates.Peek(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("updates %v, %v", list, err)
	}
}

func TestForkTools(t *testing.T) {
	t.Parallel()
	d := inFork(t, session.Fork{Session: "s", Heard: 1})
	d.says("enter_fork", `{}`, "error: enter_fork is for the main conversation only.")
	d.says("save_context", `{}`, "Noted: the fork becomes the main conversation when this turn ends.")
	d.says("exit_fork", `{}`, "Not dropped: the fork becomes the main conversation when this turn ends, as save_context asked.")
	d.says("report_updates", `{"message":"x"}`, "Reported: the main session will see it in its next turn.")
	standing, err := d.Run.Standing()
	if err != nil || standing.LeaveFork != runlog.SaveContext || standing.Reports != 1 {
		t.Errorf("a fork that is to be saved is not dropped: %+v, %v", standing, err)
	}
}

// TestSaveContextIsRefused where the fork cannot become the main session.
func TestSaveContextIsRefused(t *testing.T) {
	t.Parallel()
	for _, f := range []session.Fork{
		{Session: "s", Heard: 1, Parent: "m0"},                   // main has another session now
		{Session: "s", Heard: 1, Parent: "m", MainRun: "before"}, // main had a turn
		{Session: "s", Heard: 1, Parent: "m", Run: "r"},          // of a background run
	} {
		d := inFork(t, f)
		if err := d.Sessions.SetMain("m"); err != nil {
			t.Fatal(err)
		}
		d.begins("save_context", `{}`, "error: Not possible: ")
		d.recorded("refusal:save_context")
	}
}

func TestEnterFork(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runlog.Record{Mode: "foreground"})
	d.says("enter_fork", `{"topic":" taxes "}`, "Noted: the interactive fork opens when this turn ends. End the turn now, and go on with the topic there.")
	if standing, err := d.Run.Standing(); err != nil || !standing.EnterFork || standing.Topic != "taxes" {
		t.Errorf("%+v, %v", standing, err)
	}
	if err := d.Sessions.OpenFork(t.Context(), session.Fork{ID: "f"}); err != nil {
		t.Fatal(err)
	}
	d.says("enter_fork", `{}`, "error: An interactive fork is already open.")
}
