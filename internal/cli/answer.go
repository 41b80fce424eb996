package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newAnswer(d *deps) *cobra.Command {
	var wait, goOn bool
	cmd := command(agentNever(refused), "answer RUN TEXT...|N|-", "Answer the question of a run that waits",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			switch {
			case goOn && len(args) > 1:
				return usage("--continue takes no answer")
			case goOn:
				return d.goOn(ctx, h, args[0])
			case len(args) == 1:
				return usage("no answer: give TEXT, the number of a choice, or -")
			}
			return runAnswer(ctx, d, h, args[0], args[1:], wait)
		}))
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "continue the run in this process, and exit with the status of its outcome")
	cmd.Flags().BoolVar(&goOn, "continue", false, "continue a run whose question is answered, or end one whose question has expired")
	_ = cmd.Flags().MarkHidden("continue") // the flag exists
	return cmd
}

func runAnswer(ctx context.Context, d *deps, h app.Home, name string, words []string, wait bool) error {
	text, err := wordsOrInput(d, words)
	if err != nil {
		return err
	}
	run, err := waitingRun(h, name)
	if err != nil {
		return err
	}
	if _, err := h.Firer().Answers.Give(ctx, run, text); err != nil {
		return err
	}
	if wait {
		return d.goOn(ctx, h, run)
	}
	return d.startToGoOn(h, run)
}

// startToGoOn starts a process that continues a run whose question was just answered. While everything is paused, tick does it later.
func (d *deps) startToGoOn(h app.Home, run string) error {
	if paused, _, err := h.Spend.Paused(); paused {
		d.note("the answer is kept; the run continues after: ollim resume")
		return err
	}
	return (&starter{d: d, home: h}).launch("answer", "--continue", "--", run)
}

func (d *deps) goOn(ctx context.Context, h app.Home, id string) error {
	outlivePipe()
	r, err := h.Firer().Answers.Continue(ctx, id, run.Observer{})
	switch {
	case as[*question.Closed](err), r.ID == "":
		return err
	case r.Outcome == runlog.Waiting && err != nil:
		return fmt.Errorf("the answer is kept: %w", err)
	}
	return (&fireOptions{}).verdict(d, r, err)
}

// waitingRun returns the run that name means: of the runs with this id or job the one that waits, else the one that run show shows.
func waitingRun(h app.Home, name string) (string, error) {
	all, err := h.Questions.List()
	if err != nil {
		return "", err
	}
	var runs []string
	for _, q := range all {
		own := q.Run == name || len(name) > 8 && strings.HasPrefix(q.Run, name)
		if q.Answer == "" && !q.Lapsed && (own || q.Job == name || q.Name == strings.TrimSuffix(name, ".md")) {
			runs = append(runs, q.Run)
		}
	}
	switch len(runs) {
	case 0:
		r, err := h.Runs.Find(name)
		return r.ID, err
	case 1:
		return runs[0], nil
	}
	return "", hint(&usageError{fmt.Sprintf("%d runs of %s wait for an answer: %s", len(runs), name, strings.Join(runs, ", "))}, "name one of them")
}
