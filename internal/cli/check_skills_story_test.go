package cli

import (
	"strings"
	"testing"
)

// TestCheckSkillsOfJobs: check says that a skill or a subagent that a job names does not exist, as doctor does, and a subagent's file with
// a fault is an error.
func TestCheckSkillsOfJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, text, want string
		status           status
	}{
		{"routines/g.md", routineText("g", "0 9 * * *", "skills: [cook]\n"), `routines/g.md: note: no skill "cook"`, statusOK},
		{"routines/g.md", routineText("g", "0 9 * * *", "engine: native\nsubagent: cook\n"), `routines/g.md: note: no agent "cook"`, statusOK},
		{"agents/x.md", "nothing", "agents/x.md:1: ", statusData},
	} {
		w := newWorld(t)
		w.write(c.path, c.text)
		if r := w.run("check"); r.status != int(c.status) || !strings.Contains(r.out, c.want) {
			t.Errorf("%s: want %q and status %d, got %+v", c.path, c.want, c.status, r)
		}
	}
}
