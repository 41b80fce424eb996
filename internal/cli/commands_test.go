package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/app"
)

// A command line that begins with the name of a command builds that one alone, under each of its names that agree with the rule
// for plurals; every other command line builds them all.
func TestCommandsFor(t *testing.T) {
	t.Parallel()
	d := &deps{App: &app.App{}}
	all := newRoot(d).Commands()
	if len(all) != len(constructors()) {
		t.Errorf("%d commands from %d constructors", len(all), len(constructors()))
	}
	for name, build := range constructors() {
		if got := build(d).Name(); got != name {
			t.Errorf("%s builds %s", name, got)
		}
	}
	for _, cmd := range all {
		for _, name := range append([]string{cmd.Name()}, cmd.Aliases...) {
			if list := commandsFor(d, []string{name, "list"}); len(list) != 1 || list[0].Name() != cmd.Name() {
				t.Errorf("%s builds %d commands", name, len(list))
			}
		}
	}
	for _, line := range []string{"", "help task", "-q task list", "completion bash", "__complete task", "tsk", "--help"} {
		if list := commandsFor(d, strings.Fields(line)); len(list) != len(constructors()) {
			t.Errorf("%q builds %d commands", line, len(list))
		}
	}
}
