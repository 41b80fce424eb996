package prompt

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Context is the length of a session before the turn, in tokens.
type Context struct {
	Tokens int
	Full   int // at which the session is compacted without being asked; 0: not known, and not reported
	Growth int // tokens that a fire adds on average
}

// contextStep is the change of a session's share of Full, in percent, at which it is reported again.
const contextStep = 5

// step returns the length in steps of contextStep, from 1; 0 if it is not known.
func (c Context) step() int {
	if c.Tokens <= 0 || c.Full <= 0 {
		return 0
	}
	return c.share()/contextStep + 1
}

func (c Context) share() int { return c.Tokens * 100 / c.Full }

func (c Context) String() string {
	s := fmt.Sprintf(headContext+"%s of %s tokens (%d %%)", thousands(c.Tokens), thousands(c.Full), c.share())
	if c.Growth > 0 {
		s += fmt.Sprintf(", about +%s a fire", thousands(c.Growth))
	}
	return s
}

// context returns the section about the length of the session.
func (b Input) context() string {
	if b.Past != nil {
		return b.Past.instruction(headContext)
	}
	return b.Context.String()
}

// tellsPast reports whether the prompt has the section PINGS of a recorded one.
func (b Input) tellsPast() bool {
	return b.Past != nil && b.Past.Pings && b.Past.instruction(headPings) != ""
}

// pastPings returns that section, which says what the budget and the schedule were then. The rule at its end is as it is now.
func (b Input) pastPings() string {
	text := b.Past.instruction(headPings)
	if !b.Task.Branch {
		return text
	}
	rule := regret(b.Task)
	first, _, _ := strings.Cut(rule, "\n")
	if at := strings.Index(text, "\n"+first[:min(len(first), 40)]); at >= 0 {
		text = text[:at]
	}
	return text + "\n" + rule
}

// thousands returns a number of tokens as a short text, such as 1.2k.
func thousands(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}

// said returns what the session was told before; zero for a session that begins.
func (b Input) said() runlog.Told {
	if b.Session == Lost {
		return runlog.Told{}
	}
	return b.Told
}

// saysContext reports whether the prompt says how long the session is.
func (b Input) saysContext() bool {
	if b.Past != nil {
		return b.Task.Persistent && b.Past.instruction(headContext) != ""
	}
	step := b.Context.step()
	return b.Task.Persistent && step > 0 && step != b.said().Context
}

// saysPings reports whether the prompt has the rest of the ping budget and the upcoming tasks. It does unless the session was told both on
// this day and only the time has changed since. A task that fires again needs no second row in a day.
func (b Input) saysPings() bool {
	told := b.said()
	if !b.Task.AllowPing {
		return false
	}
	if b.Past != nil && b.Past.Pings {
		return b.tellsPast()
	}
	if told.Day != b.day() || told.Pings != b.tokens() {
		return true
	}
	ahead := map[string]bool{}
	for _, e := range b.Forward.Entries {
		row := row(e)
		if _, known := told.Tasks[row]; !known && e.At.After(b.Now) {
			return true
		}
		ahead[row] = true
	}
	for row, at := range told.Tasks {
		if at.After(b.Now) && !at.After(b.Forward.Last) && !ahead[row] { // it was cancelled
			return true
		}
	}
	return false
}

// Tells returns what the session of a persistent task has been told when it has read the prompt.
func (b Input) Tells() runlog.Told {
	told := b.said()
	if !b.Task.Persistent || b.goesOn() {
		return told
	}
	if step := b.Context.step(); step > 0 {
		told.Context = step
	}
	if !b.saysPings() {
		return told
	}
	tasks := map[string]time.Time{}
	if told.Day == b.day() {
		maps.Copy(tasks, told.Tasks)
		maps.DeleteFunc(tasks, func(_ string, at time.Time) bool { return at.After(b.Now) }) // the tasks that are left are added again
	}
	for _, e := range b.Forward.Entries {
		at := e.At
		if e.More > 0 {
			at = e.Last
		}
		tasks[row(e)] = at
	}
	told.Day, told.Pings, told.Tasks = b.day(), b.tokens(), tasks
	return told
}

func (b Input) day() string { return b.Now.Format(time.DateOnly) }

// tokens returns the rest of the ping budget, without the time of its next refill.
func (b Input) tokens() string {
	left, _, _ := strings.Cut(b.Budget.String(), " (")
	return left
}

// row returns an entry of the forward schedule without its times and its tag.
func row(e forecast.Entry) string {
	row := e.Path + " " + e.Label + " " + e.Description
	if e.Silent {
		row += " (silent)"
	}
	return row
}
