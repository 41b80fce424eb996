package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/state/task"
)

type taskListOptions struct {
	words          []string
	all, due, json bool
}

func (o *taskListOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.all, "all", false, "include done tasks, with the priority x")
	f.BoolVar(&o.due, "due", false, "only tasks with a due date, earliest first")
	f.BoolVar(&o.json, "json", false, "print one JSON object per line")
}

func newTaskList(d *Deps) *cobra.Command {
	var o taskListOptions
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "list [WORD...]",
		Short:       "List open tasks: number, priority, due date, text",
		Long: "List prints the open tasks in the order of the file. With WORDs it prints only those that match all of them: " +
			"+PROJECT and @CONTEXT by name, other words as part of the text, in any case. The number of a task is its line " +
			"number.",
		Example: "  ollim task list +garden @phone\n  ollim task list --due --json | jq -r .due",
		Args:    checked(cobra.ArbitraryArgs),
		RunE: works(func(_ *cobra.Command, args []string) error {
			o.words = args
			return runTaskList(d, o)
		}),
	}
	o.flags(cmd.Flags())
	return cmd
}

func runTaskList(d *Deps, o taskListOptions) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	list, err := h.Tasks().All()
	if err != nil {
		return taskError(err)
	}
	list = slices.DeleteFunc(list, func(t task.Task) bool { return !o.wants(t) })
	if o.due {
		slices.SortStableFunc(list, func(a, b task.Task) int { return cmp.Compare(a.Due, b.Due) })
	}
	return records(d, o.json, list, taskCells)
}

func (o taskListOptions) wants(t task.Task) bool {
	if t.Done && !o.all || o.due && t.Due == "" {
		return false
	}
	for _, word := range o.words {
		if !taskHas(t, word) {
			return false
		}
	}
	return true
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

func taskCells(t task.Task) []string {
	priority := t.Priority
	if t.Done {
		priority = "x"
	}
	return []string{strconv.Itoa(t.Number), priority, t.Due, t.Text}
}
