package runtest

import (
	"slices"

	"github.com/ollim/ollim/internal/agent/run"
)

// Failing returns the names of the calls that fail, each with a runner of its own, in order.
func Failing(calls map[string]func(*run.Runner) error, runner func() *run.Runner) (failed []string) {
	for name, call := range calls {
		if call(runner()) != nil {
			failed = append(failed, name)
		}
	}
	slices.Sort(failed)
	return failed
}
