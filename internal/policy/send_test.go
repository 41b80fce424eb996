package policy_test

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// A command of ollim that a program sends is allowed where the same words are allowed as a command of Bash, and where it is the run's own
// doing, which no other word can be taken for.
func TestSentCommands(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	verbs := policy.Verbs{
		"run": policy.All, "run list": policy.Own, "run show": policy.Own, "task": policy.All, "task list": policy.All, "events": policy.Own,
		"session": policy.All, "session list": policy.All, "session compact": policy.Own, "fire": policy.Never, "status": policy.All, "help": policy.Own,
	}
	own := lines("run list\nruns list\nRun List x\n-q run list\n--log-format json events\nhelp\nhelp task\nevents --since 1d\nsession compact main x\n--help\n--version")
	refused := lines("fire x\nrun\nrun --json list\nrun x list\nsession list\nsession --x compact list\nsession\n-q\ntask list\nstatus\nnosuch\nrun list --config x\n-p hi\ntask list run list")
	for _, patterns := range [][]string{nil, {"Bash(bash *)"}, {"Bash(ollim task list)", "Bash(ollim status *)", "Read"}, {"Bash(ollim *)"}} {
		p := h.policy(t, patterns...)
		p.Ollim, p.Sealed = verbs.Access, true
		for _, line := range append(append([]string{""}, own...), refused...) {
			whole := p.Decide("Bash", object(t, "command", strings.TrimSpace("ollim "+line))).Allow
			isOwn, err := p.DecideOllim(strings.Fields(line))
			if (err == nil && !isOwn) != whole {
				t.Errorf("%q: %s: own %v, %v; as Bash %v", patterns, line, isOwn, err, whole)
			}
		}
		if len(patterns) > 0 && patterns[0] == "Bash(ollim *)" {
			continue
		}
		for _, line := range own {
			if isOwn, err := p.DecideOllim(strings.Fields(line)); err != nil || !isOwn {
				t.Errorf("%q: %s: own %v, %v", patterns, line, isOwn, err)
			}
		}
		for _, line := range refused {
			if isOwn, _ := p.DecideOllim(strings.Fields(line)); isOwn {
				t.Errorf("%q: %s: own", patterns, line)
			}
		}
	}
}
