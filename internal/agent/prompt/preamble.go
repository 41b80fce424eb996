package prompt

import (
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
)

// preamble returns what a background run must know before its task and what may differ at its next fire, one paragraph for each section. In
// a branch of main it is all that the run must know.
func preamble(b Input) []string {
	var sections []string
	t := b.Task
	if t.Branch {
		sections = append(sections, output(t), reporting(t))
	}
	if b.saysContext() {
		sections = append(sections, b.context())
	}
	if t.AllowPing && b.Busy {
		sections = append(sections, busy(t))
	}
	if b.saysPings() {
		sections = append(sections, pings(b))
	}
	if t.Branch {
		sections = append(sections, means(t, b.Tools)...)
	}
	return append(sections, chain(t)...)
}

// Alone returns the system prompt of a background run outside the main conversation: what it must know that does not change from fire to
// fire. tools are the patterns in force, reported to a Restricted task.
func Alone(t Task, tools []string) string {
	sections := []string{SystemAlone}
	if t.Persistent {
		again := "CONTEXT is repeated only when what it says has changed."
		if t.AllowPing {
			again = "CONTEXT and PINGS are repeated only when what they say has changed."
		}
		sections = append(sections, "SESSION: Persistent — your context carries across fires.\n"+
			"You have a `compact_session` tool to compress context when it grows large. A session that reaches the length that CONTEXT "+
			"names is compacted automatically.\n"+again)
	}
	sections = append(sections, output(t), reporting(t))
	if t.AllowPing {
		sections = append(sections, "PINGS: The message says what is left of the budget and which background tasks lie ahead.\n"+regret(t))
	}
	return strings.Join(append(sections, means(t, tools)...), "\n\n")
}

// means returns sections about what the task may use besides ollim's own tools, and about what its job names.
func means(t Task, tools []string) (sections []string) {
	if t.Restricted {
		sections = append(sections, "TOOL RESTRICTIONS: Besides ollim's own tools you may use what one of these allows; anything else is refused.\n"+
			items(tools))
	}
	return append(sections, help(t)...)
}

// help returns sections about the folders, skills and the subagent that a job names. A foreground run gets them too: otherwise those fields
// of its file would be ignored.
func help(t Task) []string {
	var sections []string
	if len(t.Dirs) > 0 {
		sections = append(sections, "FOLDERS: Beside the working directory you may read these, and write to those marked rw.\n"+items(t.Dirs))
	}
	if len(t.Skills) > 0 {
		sections = append(sections, "REQUIRED SKILLS: Before you proceed, invoke each of these with the `skill` tool, as its `name`.\n"+items(t.Skills))
	}
	if t.Subagent != "" {
		sections = append(sections, fmt.Sprintf("SUBAGENT: Delegate the task to the subagent %q with the `Task` tool. "+
			"Give it all that it needs to know; what follows from its answer is yours to do.", plaintext.Line(t.Subagent)))
	}
	return sections
}

func items(list []string) string {
	lines := make([]string, len(list))
	for i, item := range list {
		lines[i] = "- " + plaintext.Line(item)
	}
	return strings.Join(lines, "\n")
}

func output(t Task) string {
	text := "OUTPUT: You run in the background: your text output is discarded and nobody reads it.\n"
	if t.Persistent {
		text = "OUTPUT: You run in the background: nobody but you reads your text output. It stays in this session, where you see it in later fires.\n"
	}
	if t.AllowPing {
		return text + "To reach the owner use `ping_user` for an alert, `send_file` for a file, `ask_owner` for a question whose answer the task needs: the run waits for it."
	}
	return text + "Pings, embeds and files are disabled for this task."
}

func reporting(t Task) string {
	switch t.Update {
	case job.Always:
		return "UPDATES: `report_updates` is mandatory: call it once, with a short summary, before you end."
	case job.Freely:
		if t.AllowPing {
			return "UPDATES: `report_updates` is optional; use it if you sent the owner something, or found what the main session should know."
		}
		return "UPDATES: `report_updates` is optional; use it if you found something the main session should know."
	case job.Blocked:
		if t.AllowPing {
			return "UPDATES: The main session will not hear of this run. You can still reach the owner directly."
		}
		return "UPDATES: This run is silent: neither the main session nor the owner hears of it. Do the task and end."
	}
	if t.AllowPing {
		return "UPDATES: Once you have sent the owner anything, `report_updates` is mandatory; otherwise call it only if the main session needs to know."
	}
	return "UPDATES: Call `report_updates` only if the main session needs to know something."
}

func busy(t Task) string {
	const s = headBusy + "The owner is in mid-conversation. While that lasts a question is refused, and so is a ping, embed or file unless it is " +
		"critical (`critical=True`)"
	if t.Update == job.Blocked {
		return s + "."
	}
	return s + "; use `report_updates` instead."
}

// chain returns the section about a reminder's place in its chain; none without a chain.
func chain(t Task) []string {
	if t.Chain.Max == 0 {
		return nil
	}
	sentences := []string{fmt.Sprintf("CHAIN: This is check %d of %d.", t.Chain.Depth+1, t.Chain.Max+1)}
	final := t.Chain.Depth >= t.Chain.Max
	if final {
		sentences[0] = fmt.Sprintf("CHAIN: This is check %d of %d, the final one; no further follow-up is possible.", t.Chain.Depth+1, t.Chain.Max+1)
	} else {
		sentences = append(sentences, "To check again later call `follow_up_chain(minutes_from_now=N)`, N from 1 to 10080; if you do not, the chain ends here.")
	}
	if s := acknowledge(t); s != "" && t.Chain.Depth > 0 {
		sentences = append(sentences, s)
	}
	if final {
		sentences = append(sentences, lastWord(t))
	}
	return []string{strings.Join(sentences, "\n")}
}

func acknowledge(t Task) string {
	const why = " that this is a follow-up (\"checking in again\"), so that the owner knows it is meant."
	switch {
	case !t.Background:
		return "Say" + why
	case t.AllowPing:
		return "If you ping, say" + why
	}
	return ""
}

// lastWord returns what to do at the final check of a chain, by the means that the run has to reach the owner.
func lastWord(t Task) string {
	const worth = "Ping only if it is still unresolved and the owner would regret missing it; otherwise "
	switch {
	case !t.Background:
		return "If it is still unresolved, say so plainly."
	case t.AllowPing && t.Update == job.Blocked:
		return worth + "end without."
	case t.AllowPing && t.Update == job.Always:
		return "Ping only if it is still unresolved and the owner would regret missing it. With or without a ping, call `report_updates`."
	case t.AllowPing:
		return worth + "use `report_updates`."
	case t.Update == job.Blocked:
		return "Finish the task and end."
	}
	return "If it is still unresolved, say so with `report_updates`."
}

// Beginnings of sections of instructions.
const (
	headContext = "CONTEXT: "
	headPings   = "PINGS: "
	headBusy    = "BUSY: "
)

// pings returns the section with which a run judges whether to use its one ping: the rest of the budget, and the upcoming tasks that share
// it.
func pings(b Input) string {
	if b.tellsPast() {
		return b.pastPings()
	}
	lines := []string{headPings + b.Budget.String()}
	refused := "; use `report_updates` instead."
	if b.Task.Update == job.Blocked {
		refused = "."
	}
	if b.Budget.Available < 1 {
		lines = append(lines, "No ping is left: a question will be refused, and so will a ping, embed or file unless it is critical (`critical=True`)"+refused)
	}
	switch {
	case b.Forward.Hours == 0 && len(b.Forward.Entries) > 0:
		lines = append(lines, "Upcoming bg tasks: none within 12 hours. Current and recent ones:")
	case b.Forward.Hours == 0:
		lines = append(lines, "Upcoming bg tasks: none within 12 hours.")
	default:
		lines = append(lines, fmt.Sprintf("Upcoming bg tasks (next %dh):", b.Forward.Hours))
	}
	for _, e := range b.Forward.Entries {
		lines = append(lines, entry(e, b.Now))
	}
	if b.Forward.Left > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more, not listed", b.Forward.Left))
	}
	if b.Forward.Refills >= 1 {
		lines = append(lines, fmt.Sprintf("~%d refills before last task.", b.Forward.Refills))
	}
	if b.Task.Branch {
		lines = append(lines, regret(b.Task))
	}
	return strings.Join(lines, "\n")
}

// regret returns the rule for using the budget that all background runs share.
func regret(t Task) string {
	instead := "`report_updates` is enough"
	if t.Update == job.Blocked {
		instead = "send nothing"
	}
	return "All background tasks share this budget: send at most one ping, embed, file or question in this run, and only if the owner would regret " +
		"missing it (the regret test); otherwise " + instead + ".\n" +
		"`critical=True` bypasses the budget and a busy owner: use it only for what cannot wait, such as a loss or a missed " +
		"deadline that can still be averted."
}

// entry returns a line of the forward schedule: - 9:30 AM: Label (silent) — "description" (routines/x.md) [tag].
func entry(e forecast.Entry, now time.Time) string {
	s := fmt.Sprintf("- %s: %s", hour(e.At, now), plaintext.Line(e.Label))
	if e.Silent {
		s += " (silent)"
	}
	if e.Description != "" { // quotes in it must not end the quoted description
		s += fmt.Sprintf(` — "%s"`, strings.ReplaceAll(plaintext.Line(e.Description), `"`, "'"))
	}
	s += fmt.Sprintf(" (%s)", plaintext.Line(e.Path))
	if e.Tag != "" {
		s += fmt.Sprintf(" [%s]", e.Tag)
	}
	if e.More > 0 {
		s += fmt.Sprintf(" and %d more until %s", e.More, hour(e.Last, now))
	}
	return s
}

// hour returns a time of day, with the weekday if it is not today.
func hour(at, now time.Time) string {
	at = at.In(now.Location())
	if !sameDay(at, now) {
		return at.Format("Mon 3:04 PM")
	}
	return at.Format("3:04 PM")
}
