package listener

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// Actions are what the owner does besides writing: the use of buttons, and answers to questions about permissions.
type Actions struct {
	Name   string // of the messenger, such as discord
	API    messenger.Writer
	Owns   func(user string) bool      // reports whether a user is the owner; nobody else is answered
	Runner func() (*run.Runner, error) // with the settings as they are now
	Now    func() time.Time
	Warn   func(message string)

	Ollim  func(ctx context.Context, words ...string) (string, error)      // runs a command line as the owner, and returns what it prints
	Launch func(words ...string) error                                     // starts a command line as a process that outlives this one
	Say    func(ctx context.Context, channel string, m turn.Message) error // lets the owner take a turn; it returns when m is queued

	permissions permissions
	working     sync.WaitGroup
}

// Go begins the answer to an action, and returns.
func (a *Actions) Go(answer func()) { a.working.Go(answer) }

// Wait waits for the answers that have begun.
func (a *Actions) Wait() { a.working.Wait() }

func (a *Actions) warn(err error) {
	if err != nil {
		a.Warn(a.Name + ": " + err.Error())
	}
}

// The verbs of buttons that only listeners make.
const (
	buttonForkSave   = "fork_save"
	buttonForkReport = "fork_report"
	buttonForkExit   = "fork_exit"
	buttonClear      = "clear"
	buttonPermit     = "permit"
	buttonClose      = "close"
)

// ForkButtons returns the buttons of a message about an interactive fork: its ways to end.
func ForkButtons(f session.Fork) []outbox.Button {
	list := []outbox.Button{
		{Label: "Report", ID: outbox.ButtonID(buttonForkReport, f.ID), Style: "primary"},
		{Label: "Exit", ID: outbox.ButtonID(buttonForkExit, f.ID), Style: "danger"},
	}
	if f.Run != "" { // it cannot replace main
		return list
	}
	return append([]outbox.Button{{Label: "Save", ID: outbox.ButtonID(buttonForkSave, f.ID), Style: "success"}}, list...)
}

// ConfirmClear returns the buttons that ask whether to begin a new conversation instead of that of a session.
func (a *Actions) ConfirmClear(session string) []outbox.Button {
	return a.confirm("Begin a new one", outbox.ButtonID(buttonClear, session))
}

// ConfirmExit returns the buttons that ask whether to drop a fork.
func (a *Actions) ConfirmExit(fork string) []outbox.Button {
	return a.confirm("Drop it", outbox.ButtonID(buttonForkExit, fork))
}

func (a *Actions) confirm(label, id string) []outbox.Button {
	return []outbox.Button{
		{Label: label, ID: armed(id, a.Now()), Style: "danger"},
		{Label: "Keep it", ID: outbox.ButtonID(buttonClose, "-")},
	}
}

// button is what buttons of one verb do.
type button struct {
	confirm bool // it takes something away: it must be pressed twice within confirmTime
	alone   bool // the other buttons of its message can still be used after it
	do      func(*Actions, context.Context, press) (said string, err error)
}

// press is one use of a button.
type press struct {
	verb    string
	arg     string
	channel string
}

func buttons() map[string]button {
	end := withRunner((*Actions).endFork)
	return map[string]button{
		outbox.ButtonAnswer:   {do: withRunner((*Actions).answerQuestion)},
		outbox.ButtonAgent:    {do: withRunner((*Actions).sayPrompt), alone: true},
		outbox.ButtonTaskDone: {do: taskCommand("done"), alone: true},
		outbox.ButtonTaskDel:  {do: taskCommand("rm"), alone: true, confirm: true},
		buttonForkSave:        {do: end},
		buttonForkReport:      {do: end},
		buttonForkExit:        {do: end, confirm: true},
		buttonClear:           {do: withRunner((*Actions).clear), confirm: true},
		buttonPermit:          {do: (*Actions).answerPermission},
		buttonClose:           {do: func(*Actions, context.Context, press) (string, error) { return "", nil }},
	}
}

// withRunner lets a button work with the settings as they are now.
func withRunner(do func(*Actions, context.Context, *run.Runner, press) (string, error)) func(*Actions, context.Context, press) (string, error) {
	return func(a *Actions, ctx context.Context, p press) (string, error) {
		r, err := a.Runner()
		if err != nil {
			return "", err
		}
		return do(a, ctx, r, p)
	}
}

// stale is the error of a button that nothing can come of any more.
func stale(reason string) error { return &question.Closed{Reason: reason} }

const (
	// confirmTime is how long a press that takes something away waits for the second one.
	confirmTime = time.Minute

	// sendTime bounds the requests of an answer, which is sent although the listener is about to end.
	sendTime = 30 * time.Second

	// maxLabel is the most characters of a label.
	maxLabel = 80
)

// armed returns the id of a button that takes something away when it is pressed within confirmTime.
func armed(id string, now time.Time) string { return id + ":" + strconv.FormatInt(now.Unix(), 10) }

// disarmed returns an id without what armed has added, and when that was.
func disarmed(id string) (bare string, at time.Time) {
	last := strings.LastIndexByte(id, ':')
	seconds, err := strconv.ParseInt(id[last+1:], 10, 64)
	if err != nil || strings.Count(id, ":") < 3 {
		return id, time.Time{}
	}
	return id[:last], time.Unix(seconds, 0)
}

// Pressed is a use of a button by the owner, as a messenger answers it.
type Pressed interface {
	// Buttons returns those of the message, as they are.
	Buttons() []outbox.Button

	// Take says that the press has arrived. After an error nothing is done.
	Take(ctx context.Context) error

	// Show changes the buttons of the message. Before Take it is what answers the press.
	Show(ctx context.Context, list []outbox.Button) error

	// Say tells the owner what came of the press.
	Say(ctx context.Context, text string) error
}

// Press does what a button of a channel says.
func (a *Actions) Press(ctx context.Context, channel, id string, by Pressed) {
	words := strings.SplitN(id, ":", 3)
	if len(words) != 3 || words[0] != "ollim" {
		return
	}
	b, known := buttons()[words[1]]
	if b.confirm {
		now := a.Now()
		bare, at := disarmed(id)
		if now.Sub(at).Abs() > confirmTime {
			a.warnOf("a button", by.Show(ctx, rearmed(by.Buttons(), id, armed(bare, now))))
			return
		}
		words = strings.SplitN(bare, ":", 3)
	}
	if err := by.Take(ctx); err != nil {
		a.warnOf("a button", err)
		return
	}
	said, err := "This version of ollim does not know this button.", error(nil)
	if known {
		said, err = b.do(a, ctx, press{verb: words[1], arg: words[2], channel: channel})
		if _, spent := errors.AsType[*question.Closed](err); spent || err == nil { // every later press would have the same error
			a.showUsed(ctx, by, id, words[1], b, err == nil)
		}
	}
	if err != nil {
		said = "⚠️ " + a.API.Able().Style.Plain(err.Error())
	}
	if said != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
		defer cancel()
		a.warnOf("the answer to a button was not sent", by.Say(ctx, plaintext.Short(said, a.API.Able().Text)))
	}
}

func (a *Actions) warnOf(what string, err error) {
	if err != nil {
		a.warn(fmt.Errorf("%s: %w", what, err))
	}
}

// showUsed lets the buttons of a message look used.
func (a *Actions) showUsed(ctx context.Context, by Pressed, id, verb string, b button, done bool) {
	list := by.Buttons()
	if len(list) == 0 || verb == buttonPermit && done { // the message of a permission is changed where the answer is awaited
		return
	}
	for n := range list {
		pressed := list[n].ID == id
		list[n].Disabled = list[n].Disabled || pressed || !b.alone
		if pressed && done {
			list[n].Style = "success"
		}
	}
	if verb == buttonClose {
		list = list[:0]
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	a.warnOf("the message of a button was not changed", by.Show(ctx, list))
}

// rearmed returns the buttons of a message with one that asks to be pressed again.
func rearmed(list []outbox.Button, id, next string) []outbox.Button {
	for n, one := range list {
		if one.ID == id {
			const again = "Press again: "
			list[n].ID, list[n].Style = next, "danger"
			list[n].Label = plaintext.Short(again+strings.TrimPrefix(one.Label, again), maxLabel)
		}
	}
	return list
}

// answerSaved is said instead of an acknowledgement while everything is paused.
const answerSaved = "The answer is saved. The run continues after: ollim resume"

// answerQuestion is a choice of a question that a run has asked.
func (a *Actions) answerQuestion(ctx context.Context, r *run.Runner, p press) (string, error) {
	run, choice, _ := strings.Cut(p.arg, ":")
	if _, err := fire.New(r).Answers.Give(ctx, run, choice); err != nil {
		return "", err
	}
	if paused, _, err := r.Spend.Paused(); paused {
		return answerSaved, err
	}
	return "", a.Launch("answer", "--continue", "--", run)
}

// sayPrompt lets a button say its prompt in the conversation, once.
func (a *Actions) sayPrompt(ctx context.Context, r *run.Runner, p press) (string, error) {
	text, err := r.Questions.UsePrompt(ctx, p.arg)
	if err != nil {
		return "", err
	}
	if err = a.Say(ctx, p.channel, turn.Message{Tag: "button", Text: text}); err != nil {
		return "", errors.Join(err, r.Questions.ReturnPrompt(context.WithoutCancel(ctx), p.arg))
	}
	return a.API.Able().Style.Small + "The button says: " + a.span(text), nil // the owner has seen only its label
}

func taskCommand(verb string) func(*Actions, context.Context, press) (string, error) {
	return func(a *Actions, ctx context.Context, p press) (string, error) {
		_, err := a.Ollim(ctx, "task", verb, "--", p.arg)
		return "", err
	}
}

func (a *Actions) clear(ctx context.Context, r *run.Runner, p press) (string, error) {
	main, err := r.Sessions.Main()
	switch {
	case err != nil:
		return "", err
	case main != p.arg:
		return "", stale("this conversation has ended already")
	}
	a.permissions.forget()
	return "Your next message begins a new conversation.", turn.New(r).Clear(ctx)
}

func (a *Actions) endFork(ctx context.Context, r *run.Runner, p press) (said string, err error) {
	return EndFork(ctx, r, strings.TrimPrefix(p.verb, "fork_"), p.arg)
}

// EndFork ends the fork of an id: save, report or exit. It returns what became of it.
func EndFork(ctx context.Context, r *run.Runner, how, id string) (said string, err error) {
	f, open, err := r.Sessions.Fork(ctx)
	if err != nil {
		return "", err
	}
	if !open || f.ID != id {
		return "", stale("this fork has ended")
	}
	switch how {
	case "save":
		_, err = turn.New(r).Forks.Save(ctx)
		said = "The fork is the main conversation now."
	case "report":
		var record runlog.Record
		record, err = turn.New(r).Forks.Report(ctx, turn.Options{Owner: true})
		err = Failure(record, err)
		said = "The fork has ended; the main conversation gets a summary."
		if record.Reports == 0 {
			said = "The fork has ended; its agent left no summary, which the main conversation is told."
		}
	default:
		_, err = turn.New(r).Forks.Exit(ctx)
		said = "The fork has ended and was dropped."
	}
	if errors.Is(err, session.ErrNoFork) {
		err = stale("this fork has ended")
	}
	return said, err
}

// Failure returns the error of a run that did not end well.
func Failure(record runlog.Record, err error) error {
	switch {
	case record.ID == "" || record.Outcome == runlog.OK:
		return err
	case record.Error == "" && err != nil:
		return err
	}
	return fmt.Errorf("run %s: %s: %s", record.ID, record.Outcome, record.Error)
}
