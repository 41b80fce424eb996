package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/task"
)

type taskAddOptions struct {
	words              []string
	priority, due      string
	projects, contexts []string
}

func newTaskAdd(d *Deps) *cobra.Command {
	var o taskAddOptions
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "add TEXT...|-",
		Short:       "Add a task and print its number",
		Long: "Add appends a line with today's date to tasks/todo.txt; - reads the text from standard input. TEXT is in the " +
			"todo.txt format: (A) at the beginning is a priority; +PROJECT, @CONTEXT and due:YYYY-MM-DD may be anywhere; " +
			"other key:value pairs are kept.",
		Example: "  ollim task add Call the plumber +house @phone --due tomorrow\n  ollim task add '(A) Renew the passport due:2027-01-31'",
		Args:    checked(cobra.MinimumNArgs(1)),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			o.words = args
			return runTaskAdd(ctx, d, h, o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.priority, "priority", "", "priority, a letter from A (highest) to Z; same as (A) at the beginning of TEXT")
	f.StringVar(&o.due, "due", "", "due date: YYYY-MM-DD, today or tomorrow; same as due:YYYY-MM-DD in TEXT")
	f.StringArrayVar(&o.projects, "project", nil, "project; same as +PROJECT in TEXT (repeatable)")
	f.StringArrayVar(&o.contexts, "context", nil, "context; same as @CONTEXT in TEXT (repeatable)")
	return cmd
}

func runTaskAdd(ctx context.Context, d *Deps, h app.Home, o taskAddOptions) error {
	draft, err := o.draft(d, d.Now().In(h.Config.Zone))
	if err != nil {
		return err
	}
	number, err := h.Tasks().Add(ctx, draft)
	return d.answer(number, taskError(err))
}

// draft checks the flags before standard input is read, and puts them behind the text.
func (o taskAddOptions) draft(d *Deps, now time.Time) (draft task.Draft, err error) {
	if draft.Priority, err = taskPriority(o.priority); err != nil {
		return draft, err
	}
	words, err := tagged("project", "+", o.projects)
	if err != nil {
		return draft, err
	}
	contexts, err := tagged("context", "@", o.contexts)
	if err != nil {
		return draft, err
	}
	words = append(words, contexts...)
	if o.due != "" {
		date, err := dueDate(o.due, now)
		if err != nil {
			return draft, err
		}
		words = append(words, "due:"+date)
	}
	text, err := wordsOrInput(d, o.words)
	if draft.Text = strings.TrimSpace(text); draft.Text != "" { // flags alone are no task
		draft.Text = strings.Join(append([]string{draft.Text}, words...), " ")
	}
	return draft, err
}

// tagged makes words of the values of a flag, which may have their sign already.
func tagged(flag, sign string, names []string) (words []string, err error) {
	for _, name := range names {
		bare := strings.TrimPrefix(name, sign)
		if len(strings.Fields(bare)) != 1 || strings.TrimSpace(bare) != bare {
			return nil, usage("--%s %q: want one word", flag, name)
		}
		words = append(words, sign+bare)
	}
	return words, nil
}

// dueDate is a --due as a date. Days are counted without a zone, where each has a next one.
func dueDate(text string, now time.Time) (string, error) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch text {
	case "today":
		return today.Format(time.DateOnly), nil
	case "tomorrow":
		return today.AddDate(0, 0, 1).Format(time.DateOnly), nil
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", usage("--due %q: want YYYY-MM-DD, today or tomorrow", text)
	}
	return text, nil
}
