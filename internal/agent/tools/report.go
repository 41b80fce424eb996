package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
	"github.com/ollim/ollim/man"
)

func reports(b *Set) error {
	switch {
	case inFork(b.Run):
		return nil
	case b.Run.Foreground:
		return &Refused{"This is the main session itself: say it in your answer."}
	case b.Run.Record.Update == string(job.Blocked):
		return &Refused{"Reporting is disabled for this task (update-main-session: blocked)."}
	}
	return nil
}

func callReport(ctx context.Context, b *Set, in struct {
	Message string `json:"message"`
}) (string, error) {
	if inFork(b.Run) {
		if err := b.mayLeave(ctx); err != nil {
			return "", err
		}
	}
	if err := b.report(ctx, in.Message); err != nil {
		return "", err
	}
	const reported = "Reported: the main session will see it in its next turn."
	if !inFork(b.Run) {
		return reported, nil
	}
	saved, err := b.savesFork()
	if err != nil || saved {
		return reported, err
	}
	return reported + " The fork is dropped when this turn ends.", nil
}

func (b *Set) report(ctx context.Context, message string) error {
	err := b.Updates.Add(ctx, message, b.Run.ID)
	if errors.Is(err, update.ErrEmpty) {
		return errors.New("bad arguments: message is empty")
	}
	if err != nil {
		return err
	}
	return b.Run.Event(ctx, runlog.Event{Type: runlog.Report, Text: message})
}

// MostNudges is how often an agent is reminded of a report before its run ends without one.
const MostNudges = 2

var errNothingDue = errors.New("nothing is due")

// Nudge returns the reminder of a report that the run owes, and records it; "" if it owes none or was reminded often enough. The
// engine's hook and the run itself both call it, so that together they remind no more than twice.
func (b *Set) Nudge(ctx context.Context) (text string, err error) {
	due := func(s runlog.Standing) bool { // of a run that waits the report is due at its end
		return b.Run.Owes(s) && s.Nudges < MostNudges && !s.Asking()
	}
	if standing, err := b.Run.Standing(); err != nil || !due(standing) { // nothing is to be written, and no lock is needed
		return "", err
	}
	err = b.Run.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		if !due(s) {
			return runlog.Event{}, errNothingDue
		}
		text = prompt.Nudge(job.UpdateMode(b.Run.Record.Update))
		return runlog.Event{Type: runlog.Nudge, Text: text}, nil
	})
	if errors.Is(err, errNothingDue) {
		err = nil
	}
	return text, err
}

// Judged returns the ids of the tool uses that have a verdict.
func (b *Set) Judged() (map[string]bool, error) { return b.Run.Judged() }

func callNames(_ context.Context, b *Set, in struct {
	User string `json:"user_name"`
	Bot  string `json:"bot_name"`
}) (string, error) {
	for _, name := range []*string{&in.User, &in.Bot} {
		*name = plaintext.Line(*name) // it becomes part of a sentence in every system prompt
		if err := config.CheckName(*name); *name != "" && err != nil {
			return "", fmt.Errorf("bad arguments: %w", err)
		}
	}
	if in.User == "" && in.Bot == "" {
		return "", errors.New("bad arguments: give user_name, bot_name or both")
	}
	if err := b.SetNames(in.User, in.Bot); err != nil {
		return "", err
	}
	return "Noted.", nil
}

func callCompact(ctx context.Context, b *Set, in struct {
	Instructions string `json:"instructions"`
}) (string, error) {
	if strings.TrimSpace(in.Instructions) == "" {
		return "", errors.New("bad arguments: instructions are empty")
	}
	if err := b.Run.Event(ctx, runlog.Event{Type: runlog.CompactWish, Text: in.Instructions}); err != nil {
		return "", err
	}
	return "Noted: the session will be compacted by these instructions when this turn ends.", nil
}

func callSearchDocs(_ context.Context, _ *Set, in struct {
	Query string `json:"query"`
}) (string, error) {
	return man.Answer(in.Query), nil
}
