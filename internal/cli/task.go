package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/task"
)

func newTask(d *deps) *cobra.Command {
	return group("task", "Manage the owner's tasks (tasks/todo.txt)",
		newTaskList(d), newTaskAdd(d),
		command(agentAll(), "done TASK...", "Mark tasks as done today", eachTask(d, "done", "done", task.Book.Done)), newTaskEdit(d),
		command(agentAll(), "rm TASK...", "Delete tasks; the other tasks keep their numbers",
			eachTask(d, "rm", "deleted", task.Book.Remove)),
	)
}

func taskError(err error) error {
	switch {
	case as[*plaintext.Unknown](err):
		return hint(&withStatus{err, statusNoJob}, "ollim task list")
	case as[*plaintext.Ambiguous](err):
		return hint(&withStatus{err, statusUsage}, "give its number")
	case as[*task.Unfit](err):
		return &withStatus{err, statusData}
	}
	return err
}

// taskPriority checks a --priority, whose letter may be small.
func taskPriority(text string) (string, error) {
	priority := strings.ToUpper(text)
	switch {
	case text == "" || text == task.None:
		return text, nil
	case len(priority) != 1 || priority < "A" || priority > "Z":
		return "", usage("--priority %q: want a letter from A to Z, or none", text)
	}
	return priority, nil
}

func newTaskList(d *deps) *cobra.Command {
	var all, due bool
	cmd := command(agentAll(), "list [WORD...]", "List open tasks: number, priority, due date, text",
		inAnyHome(d, func(_ context.Context, h app.Home, words []string) error { return runTaskList(d, h, words, all, due) }))
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "include done tasks, with the priority x")
	f.BoolVar(&due, "due", false, "only tasks with a due date, earliest first")
	return withJSON(d, cmd, jsonLines)
}

func runTaskList(d *deps, h app.Home, words []string, all, due bool) error {
	list, err := h.Tasks().All()
	if err != nil {
		return taskError(err)
	}
	list = slices.DeleteFunc(list, func(t task.Task) bool {
		return t.Done && !all || due && t.Due == "" || slices.ContainsFunc(words, func(word string) bool { return !taskHas(t, word) })
	})
	if due {
		slices.SortStableFunc(list, func(a, b task.Task) int { return cmp.Compare(a.Due, b.Due) })
	}
	return records(d, "NUMBER PRIORITY DUE TASK", list, func(t task.Task) []any {
		priority := t.Priority
		if t.Done {
			priority = "x"
		}
		return []any{strconv.Itoa(t.Number), priority, t.Due, prose(t.Text)}
	})
}

func taskHas(t task.Task, word string) bool {
	same := func(name string) bool { return strings.EqualFold(name, word[1:]) }
	switch {
	case len(word) > 1 && word[0] == '+':
		return slices.ContainsFunc(t.Projects, same)
	case len(word) > 1 && word[0] == '@':
		return slices.ContainsFunc(t.Contexts, same)
	}
	return strings.Contains(strings.ToLower(t.Text), strings.ToLower(word))
}

// eachTask changes the tasks that are named, one after the other: their numbers stay. The errors name the task themselves.
func eachTask(d *deps, verb, said string, change func(task.Book, context.Context, string) (task.Task, error)) func(*cobra.Command, []string) error {
	return inAnyHome(d, func(ctx context.Context, h app.Home, names []string) error {
		failed := failures{d: d, verb: "task " + verb}
		for _, name := range names {
			t, err := change(h.Tasks(), ctx, name)
			if err == nil {
				d.note("%s: %d %s", said, t.Number, printable(t.Text))
			}
			failed.add("", taskError(err))
		}
		return failed.err()
	})
}

func newTaskEdit(d *deps) *cobra.Command {
	var priority string
	cmd := command(agentAll(), "edit TASK TEXT...|-", "Replace the text of a task",
		inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			priority, err := taskPriority(priority)
			if err != nil {
				return err
			}
			text, err := wordsOrInput(d, args[1:])
			if err != nil {
				return err
			}
			t, err := h.Tasks().Edit(ctx, args[0], task.Draft{Text: text, Priority: priority})
			if err == nil {
				d.note("now: %d %s", t.Number, printable(t.Text))
			}
			return taskError(err)
		}))
	cmd.Flags().StringVar(&priority, "priority", "", "priority, a letter from A (highest) to Z, or none; same as (A) at the beginning of TEXT")
	return cmd
}

type taskAddOptions struct {
	words              []string
	priority, due      string
	projects, contexts []string
}

func newTaskAdd(d *deps) *cobra.Command {
	var o taskAddOptions
	cmd := command(agentAll(), "add TEXT...|-", "Add a task and print its number",
		inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			o.words = args
			draft, err := o.draft(d, d.Now().In(h.Config.Zone))
			if err != nil {
				return err
			}
			number, err := h.Tasks().Add(ctx, draft)
			return d.answer(number, taskError(err))
		}))
	f := cmd.Flags()
	f.StringVar(&o.priority, "priority", "", "priority, a letter from A (highest) to Z; same as (A) at the beginning of TEXT")
	f.StringVar(&o.due, "due", "", "due date: YYYY-MM-DD, today or tomorrow; same as due:YYYY-MM-DD in TEXT")
	f.StringArrayVar(&o.projects, "project", nil, "project; same as +PROJECT in TEXT (repeatable)")
	f.StringArrayVar(&o.contexts, "context", nil, "context; same as @CONTEXT in TEXT (repeatable)")
	return cmd
}

// draft checks the flags before standard input is read, and appends them to the text.
func (o taskAddOptions) draft(d *deps, now time.Time) (draft task.Draft, err error) {
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

// tagged returns the values of a flag as words with their sign, which a value may already have.
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
