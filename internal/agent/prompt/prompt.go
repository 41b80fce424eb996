// Package prompt makes the texts that an agent reads out of facts. Section 3 of the behaviour document fixes the facts; the wording is
// decided here.
//
// A prompt names no tool that its run does not have. Foreign text (updates, piped input, a gate's output, a payload) is
// indented or quoted, so that none of its lines begins at the margin and could be taken for one of ollim's.
package prompt

import (
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// Input is everything that becomes a prompt.
type Input struct {
	Task    Task
	Now     time.Time // in the zone to be shown
	Late    time.Time // when the run was scheduled, if that is long enough ago to be reported; else zero
	Busy    bool      // the owner is in a conversation
	Session Change    // what became of the session since the agent's previous turn
	Carried *Carried  // the part of the conversation that another engine held; nil: none
	CutOff  []CutOff  // messages of the owner since then that have no complete answer
	Updates Updates

	Told    runlog.Told      // what a persistent session was told already
	Context Context          // of a persistent session
	Budget  budget.Status    // of pings
	Forward forecast.Forward // upcoming background tasks
	Tools   []string         // the patterns in force for the engine's tools, reported to a Restricted task

	Gate    string          // output of the job's gate
	Piped   Piped           // what was piped in
	Payload []payload.Datum // of the call of a webhook

	Past *Past // the recorded prompt whose inputs these are, which also has the sections CONTEXT and PINGS; nil: a run makes its own
}

// Updates are the pending updates that a turn is shown.
type Updates struct {
	List []update.Update
	Kept bool // they stay pending: main will see them too
}

// Task is what the agent is asked to do. The owner's own message has a Body alone.
type Task struct {
	Tag        string // such as routine-bg:c44e97cf; "" for the owner's own words
	Body       string
	Background bool
	Persistent bool // the next fire continues the session
	Branch     bool // a branch of main with main's system prompt: the message also has what never changes
	Webhook    bool // Body is a template for Payload
	AllowPing  bool
	Update     job.UpdateMode
	Restricted bool // the job names tools of its own
	Dirs       []string
	Skills     []string
	Subagent   string // "" is none
	Chain      Chain
}

// Chain is the place of a reminder in its chain of follow-ups.
type Chain struct {
	Depth int // how many came before
	Max   int // how many may follow the first; 0 is no chain
}

// Piped is data that came with the task: text that was piped in, files, and what the owner answered.
type Piped struct {
	Text  string
	Fence string // line before and after Text that nobody can guess; "": Text is indented instead
	Files []engine.Attachment
	Named []File // Files, as the prompt describes them

	Answer    *question.Question  // the owner's, with which the run continues; nil: it begins
	Questions []question.Question // of earlier runs of the job, which the owner has not answered
}

// File describes a file that came with the task.
type File struct {
	Name string
	Type string // media type
	Size int    // bytes
	Text string // of a text file: all of it
}

// Change is what became of a session before a turn.
type Change int

// The changes of a session that the agent must know.
const (
	unchanged        Change = iota
	Lost                    // the session to continue was gone: a new one begins
	Compacted               // it was replaced by a summary
	CompactionFailed        // a compaction was requested and not carried out
)

// TaskOf returns the task of a job.
func TaskOf(j job.Job) Task {
	t := Task{
		Tag: fmt.Sprintf("%s:%s", j.Kind, j.ID), Body: j.Body, Background: j.Background, Persistent: j.Mode() == job.Persistent,
		Branch:  j.Background && j.Mode() == job.Forked,
		Webhook: j.Kind == job.Webhook, AllowPing: j.AllowPing, Update: j.Update, Restricted: len(j.AllowedTools) > 0,
		Dirs: j.Dirs, Skills: j.Skills, Subagent: j.Subagent,
	}
	if j.Background && !t.Webhook {
		t.Tag = fmt.Sprintf("%s-bg:%s", j.Kind, j.ID)
	}
	if j.Kind == job.Reminder {
		t.Chain = Chain{j.ChainDepth, j.MaxChain}
	}
	return t
}

// Kinds of the sections of a prompt.
const (
	KindOpening      = "opening"      // tag and time
	KindInstructions = "instructions" // what ollim tells the job
	KindNotes        = "notes"        // what became of the session, messages and questions
	KindUpdates      = "updates"      // pending updates
	KindBody         = "body"         // the task; that of a webhook with its placeholders filled in
	KindData         = "data"         // what came with the task: a payload, the output of a gate, piped input
	KindAnswer       = "answer"       // the owner's answer to a question of the run
)

// Build returns the whole prompt: tag and time, what the job must know, pending updates, the body, and data that came with it.
func Build(b Input) runlog.Prompt {
	var p runlog.Prompt
	add := func(kind string, sections ...string) {
		for _, text := range sections {
			p = append(p, runlog.Section{Kind: kind, Text: text})
		}
	}
	add(KindOpening, opening(b))
	switch {
	case b.goesOn():
	case b.Task.Background:
		add(KindInstructions, preamble(b)...)
	default:
		add(KindInstructions, append(help(b.Task), chain(b.Task)...)...)
	}
	add(KindNotes, notes(b)...)
	if len(b.Updates.List) > 0 {
		add(KindUpdates, updates(b))
	}
	if !b.goesOn() {
		if b.Task.Webhook {
			add(KindData, called(b.Payload))
			p = append(p, runlog.Section{Kind: KindBody, Head: headerTask, Text: filled(b.Task.Body, b.Payload)})
		} else {
			add(KindBody, b.Task.Body)
		}
		add(KindData, data(headGate, b.Gate)...)
		add(KindData, b.Piped.sections()...)
	}
	if b.Piped.Answer != nil {
		add(KindAnswer, answered(*b.Piped.Answer, b.Now))
	}
	return p
}

// goesOn reports whether the prompt continues a task that the session has already.
func (b Input) goesOn() bool { return b.Piped.Answer != nil && b.Session != Lost }

// Words returns the text of a message without a tag: its body and what was piped in. Stamped makes the prompt of it.
func Words(b Input) string {
	return strings.Join(append([]string{b.Task.Body}, b.Piped.sections()...), "\n\n")
}

// Stamped returns the prompt of a message without a tag.
func Stamped(at time.Time, words string) string { return stamp(at) + "\n\n" + words + "\n" }

func stamp(at time.Time) string { return at.Format("[2006-01-02 Mon 03:04 PM MST]") }

// opening returns the first line: tag, late marker, time.
func opening(b Input) string {
	if b.goesOn() {
		return "[system] " + stamp(b.Now)
	}
	line := stamp(b.Now)
	if !b.Late.IsZero() {
		at, layout, was := b.Late.In(b.Now.Location()), "3:04 PM", "was scheduled for"
		if !sameDay(at, b.Now) {
			layout = "2006-01-02 Mon 3:04 PM"
		}
		if b.Task.Webhook {
			was = "arrived at"
		}
		line = fmt.Sprintf("[late: %s %s, running now] %s", was, at.Format(layout), line)
	}
	if b.Task.Tag != "" { // the owner's own words have none
		line = "[" + b.Task.Tag + "] " + line
	}
	return line
}

func sameDay(a, b time.Time) bool { return a.Format(time.DateOnly) == b.Format(time.DateOnly) }

// Beginnings of notes.
const (
	noteLost         = "NOTE: Your earlier session is gone"
	noteCompacted    = "NOTE: Your session was compacted"
	noteNotCompacted = "NOTE: The compaction that you requested"
	noteQuestion     = "NOTE: A question of an earlier fire"
)

// notes returns what became of the session, of the owner's messages and of the job's questions since the previous turn.
func notes(b Input) (list []string) {
	switch {
	case b.Session == Lost:
		list = append(list, noteLost+" and could not be resumed. You start without its context.")
	case !b.Task.Persistent:
	case b.Session == Compacted:
		list = append(list, noteCompacted+" in your previous fire: its earlier content is replaced by the summary.")
	case b.Session == CompactionFailed:
		list = append(list, noteNotCompacted+" in your previous fire was not carried out: your session is as it was. "+
			"If it is still needed, call `compact_session` again.")
	}
	if b.Carried != nil {
		list = append(list, b.Carried.Section())
	}
	for _, c := range b.CutOff {
		list = append(list, c.note())
	}
	for _, q := range b.Piped.Questions { // of earlier runs of the job
		state := "still waits for an answer; when it comes, that run goes on with it. Do not ask it again."
		if q.Expired(b.Now) {
			state = "was not answered in time. That run has ended."
		}
		list = append(list, fmt.Sprintf("%s (%s) %s\n  %s",
			noteQuestion, Ago(b.Now.Sub(q.Asked)), state, indent(plaintext.Short(withChoices(q), shortQuestion))))
	}
	return list
}

// Headers over pending updates, fixed by seed 2.
const (
	headerMain = "RECENT BACKGROUND UPDATES (mention key findings in your response):"
	headerFork = "RECENT BACKGROUND UPDATES (read-only — main session will also see these):"
)

func updates(b Input) string {
	header := headerMain
	if b.Task.Background || b.Updates.Kept {
		header = headerFork
	}
	lines := []string{header}
	for _, u := range b.Updates.List {
		lines = append(lines, fmt.Sprintf("- (%s) %s", Ago(b.Now.Sub(u.TS)), indent(u.Message)))
	}
	return strings.Join(lines, "\n")
}

// Ago returns how long ago something was, in the largest unit that fits.
func Ago(d time.Duration) string {
	unit := func(n time.Duration, name string) string {
		if n == 1 {
			return "1 " + name + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, name)
	}
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return unit(d/time.Minute, "minute")
	case d < 24*time.Hour:
		return unit(d/time.Hour, "hour")
	}
	return unit(d/(24*time.Hour), "day")
}

// NotVerified returns the message with which the agent corrects a run that verify refused for a reason, as retry n of at most of.
func NotVerified(reason string, n, of int) string {
	parts := []string{"[system] This run is not finished: a check by the owner's program found that it did not do what it was for."}
	parts = append(parts, data("VERIFY OUTPUT", reason)...)
	return strings.Join(append(parts, fmt.Sprintf("Correct that now, in this session. The check is then repeated (retry %d of %d).", n, of)), "\n\n")
}

// Nudge returns the reminder of the report that an agent owes before its run may end.
func Nudge(mode job.UpdateMode) string {
	if mode == job.Always {
		return "[system] You must call `report_updates` before this run ends. Do it now, in one or two sentences."
	}
	return "[system] You sent the owner something but did not report it. Call `report_updates` now, so that the main session knows."
}
