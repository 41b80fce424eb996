package fire

import (
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/state/job"
)

// TestNeedsOfAJob: a job needs of its engine what its file asks for, and nothing else.
func TestNeedsOfAJob(t *testing.T) {
	t.Parallel()
	plain := job.Job{Background: true, Isolated: true}
	for what, c := range map[string]struct {
		set  func(j *job.Job)
		want engine.Needs
	}{
		"nothing":    {func(*job.Job) {}, engine.Needs{}},
		"max-cost":   {func(j *job.Job) { j.MaxCost = 1 }, engine.Needs{MaxCost: "max-cost"}},
		"gate-audit": {func(j *job.Job) { j.GateAudit = 5 }, engine.Needs{Records: "gate-audit"}},
		"subagent":   {func(j *job.Job) { j.Subagent = "helper" }, engine.Needs{Delegate: "subagent: helper"}},
		"branch": {func(j *job.Job) { j.Isolated = false }, engine.Needs{
			Branch: "a background job without isolated: true or session: persistent",
		}},
		"exact reads": {func(j *job.Job) { j.AllowedTools = []string{"Bash(git *)", "Read(./a.md)"} }, engine.Needs{Reads: "allowed-tools: Read(./a.md)"}},
	} {
		j := plain
		c.set(&j)
		if got := needsOf(j); got != c.want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for text, exact := range map[string]bool{
		"Read(./a.md)": true, "Glob(./*.txt)": true, "Grep(./a/*.md)": true, "Read(./**)": false, "Read(**)": false, "Read(./a/**)": false,
		"Read": false, "Write(./a.md)": false, "Bash(cat *)": false, "Read(": false,
	} {
		if got := exactRead(text); got != exact {
			t.Errorf("%s: exact %v", text, got)
		}
	}
}

// TestTimeUntilTheNextSlot: only a routine whose next fire continues the same session has one, and the slot that has just begun is not it.
func TestTimeUntilTheNextSlot(t *testing.T) {
	t.Parallel()
	hourly, err := cron.Parse("0 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 9, 0, 2, 0, time.UTC)
	full := job.Job{Kind: job.Routine, Enabled: true, Background: true, Schedule: hourly}
	for what, c := range map[string]struct {
		set  func(j *job.Job)
		want time.Duration
	}{
		"a branch of main":  {func(*job.Job) {}, time.Hour},
		"a persistent one":  {func(j *job.Job) { j.Session = "persistent" }, time.Hour},
		"an isolated one":   {func(j *job.Job) { j.Isolated = true }, 0},
		"in the foreground": {func(j *job.Job) { j.Background = false }, 0},
		"one that is off":   {func(j *job.Job) { j.Enabled = false }, 0},
		"a reminder":        {func(j *job.Job) { j.Kind = job.Reminder }, 0},
	} {
		j := full
		c.set(&j)
		if got := again(j, now, time.UTC); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// TestRestOfALimit: a run that continues has what its first part left, and never none, which would be no limit.
func TestRestOfALimit(t *testing.T) {
	t.Parallel()
	c := &continuation{settled: 0.75}
	for limit, want := range map[float64]float64{0: 0, 1: 0.25, 0.5: leastCost, 0.75: leastCost} {
		if got := c.left(limit); got != want {
			t.Errorf("of %v is left %v, want %v", limit, got, want)
		}
	}
}
