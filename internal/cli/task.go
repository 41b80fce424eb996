package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/task"
)

func newTask(d *Deps) *cobra.Command {
	return group("task", "tasks", "Manage the owner's tasks (tasks/todo.txt)",
		newTaskList(d), newTaskAdd(d), newTaskDone(d), newTaskEdit(d), newTaskRm(d))
}

// taskNames is how the verbs that change a task are told which.
const taskNames = "TASK is a number, or a part of the text that matches exactly one task, in any case; open tasks come " +
	"before done ones. "

// taskError gives the errors of the list their statuses.
func taskError(err error) error {
	switch {
	case as[*task.Unknown](err):
		return hint(&withStatus{err, statusNoJob}, "ollim task list")
	case as[*task.Ambiguous](err):
		return hint(&withStatus{err, statusUsage}, "give its number")
	case as[*task.Wrong](err), as[*task.Unfit](err):
		return &withStatus{err, statusData}
	}
	return err
}

// taskText is the words of a command line, or standard input where they are a single -.
func taskText(d *Deps, words []string) (string, error) {
	text := strings.Join(words, " ")
	if text != "-" {
		return text, nil
	}
	text, err := readInput(d.In)
	return strings.TrimSpace(text), err
}

// taskPriority checks a --priority; a small letter will do.
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
