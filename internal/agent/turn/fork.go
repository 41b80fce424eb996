package turn

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// Forks opens interactive forks, takes turns in them, and ends them.
type Forks struct{ r *run.Runner }

// ForkIdle is the time without a turn after which the agent of an interactive fork is asked to end it. The agent is asked again after
// each further such time.
const ForkIdle = 10 * time.Minute

const mostPrompts = 2

// Start opens an interactive fork. With a topic, its agent takes the first turn about it. Without one, the fork waits for the owner's
// first message, and there is no run. The fork stays open if its first turn fails.
func (k Forks) Start(ctx context.Context, topic string, o Options) (runlog.Record, error) {
	f, err := k.Open(ctx, topic)
	if err != nil || f.Topic == "" {
		return runlog.Record{}, err
	}
	return k.take(ctx, f, firstTurn, o, saying("", ""))
}

// Open opens an interactive fork of main; the owner's next message is its first turn.
func (k Forks) Open(ctx context.Context, topic string) (session.Fork, error) {
	id, err := Queue(k).newRun()
	f := k.newFork(id, strings.TrimSpace(topic))
	if err == nil {
		f.Parent, err = k.r.Sessions.Main()
	}
	if err == nil {
		f.MainRun = k.r.Sessions.MainRun()
		err = k.r.Sessions.OpenFork(ctx, f)
	}
	return f, err
}

func (k Forks) newFork(id, topic string) session.Fork {
	now := k.r.Disk.Now().In(k.r.Zone)
	return session.Fork{ID: id, Topic: topic, Begun: now, Last: now}
}

// Enter is the duty of a turn of main in which the agent asked for an interactive fork. Main is held, so that the fork branches
// it as it is after this turn. The fork's first turn follows when the run has ended, see Follow.
func (k Forks) Enter(ctx context.Context, _ *tools.Set, t *conversation.Turn) error {
	standing, err := t.Run.Standing()
	if err != nil || !standing.EnterFork {
		return err
	}
	f := k.newFork(t.Run.ID, standing.Topic)
	f.Parent, f.MainRun = t.Session(), t.Run.ID
	err = k.r.Sessions.OpenFork(context.WithoutCancel(ctx), f)
	if errors.Is(err, session.ErrForkOpen) { // the owner has opened one since the tool was called
		return nil
	}
	if err != nil {
		return err
	}
	return noteFork(ctx, t.Run, t.Observe, runlog.ForkOpened, f.Topic)
}

// Follow runs the first turn of the fork that a run has opened, if any. A failure of that turn does not change the outcome of the run.
func (k Forks) Follow(ctx context.Context, record runlog.Record, deliver bool, o Options) {
	if record.Key != session.MainKey || record.Outcome != runlog.OK {
		return
	}
	f, open, err := k.r.Sessions.Fork(ctx)
	if err == nil && open && f.ID == record.ID {
		_, err = k.take(ctx, f, firstTurn, o, func(s *run.Spec) {
			s.Policy.Awaited, s.Policy.Deliver = !deliver, deliver
		})
	}
	if !errors.Is(err, session.ErrNoFork) { // ended, or begun by another turn
		k.r.Warn(err)
	}
}

// forkTurn is the purpose of a turn in the interactive fork.
type forkTurn int

const (
	firstTurn  forkTurn = iota // the agent begins without a message from the owner
	ownTurn                    // the agent answers a message from the owner
	nudgeTurn                  // the agent is asked whether to end the fork
	reportTurn                 // the owner ends the fork, and the agent reports
)

// take runs a turn in a fork. fill adds the message to the Spec. If the fork is no longer open, the error is a session.ErrNoFork and
// there is no record.
func (k Forks) take(ctx context.Context, f session.Fork, t forkTurn, o Options, fill func(*run.Spec)) (runlog.Record, error) {
	s, wrong := New(k.r).turnOf(o)
	s.Identity.Job, s.Identity.Path = session.ForkKey, session.ForkKey // a chat
	if t != ownTurn {
		s.Identity.Kind = kindFork
	}
	s.Conversation = &conversation.Fork{Sessions: k.r.Sessions, ID: f.ID, First: t == firstTurn, Busy: k.r.Busy}
	s.Engine.Name, s.Engine.Model, s.Engine.Thinking = cmp.Or(o.Engine, f.Engine), cmp.Or(o.Model, f.Model, k.r.Settings.Main.Model), k.r.Settings.Main.ThinkingOr(k.r.Settings.Main.Forks)
	s.Duties = []run.Duty{endFork{forks: k, fork: f, report: t == reportTurn}.enforce}
	fill(&s)
	s.Origin = &forkOrigin{
		turnOrigin: turnOrigin{runner: k.r, owner: s.Policy.Owner, wrong: wrong},
		fork:       f, heard: t == ownTurn || t == reportTurn, observe: o.Observe.Event,
	}
	return k.r.Run(ctx, s)
}

// saying returns a fill that adds a tag and a text.
func saying(tag, text string) func(*run.Spec) {
	return func(s *run.Spec) { s.Input.Task.Tag, s.Input.Task.Body = tag, text }
}

// forkOrigin is the origin of a turn in a fork.
type forkOrigin struct {
	turnOrigin

	fork    session.Fork
	heard   bool // the owner sent the message
	observe func(runlog.Event)
}

// Prepare records that the turn is in the fork.
func (o *forkOrigin) Prepare(ctx context.Context, set *tools.Set, in prompt.Input) (prompt.Input, error) {
	return in, noteFork(ctx, set.Run, o.observe, runlog.ForkContinued, cmp.Or(o.fork.Topic, o.fork.Quote))
}

// Complete notes in the fork that a turn begins, before the engine is called.
func (o *forkOrigin) Complete(*engine.Request) error {
	r := o.runner
	return r.Sessions.EditFork(context.Background(), o.fork.ID, func(f *session.Fork) {
		f.Last = r.Disk.Now().In(r.Zone)
		if o.heard {
			f.Heard, f.Prompts = f.Heard+1, 0
		}
	})
}

// noteFork records an event of the fork, and shows it to the observer.
func noteFork(ctx context.Context, run *runlog.Run, observe func(runlog.Event), what, text string) error {
	e := runlog.Event{Type: runlog.Fork, Tool: what, Text: text}
	if observe != nil {
		observe(e)
	}
	return run.Event(context.WithoutCancel(ctx), e)
}

// endFork is the duty of a turn in a fork: at the end of the turn the fork is saved, reported or dropped, if the agent or the owner
// requested that.
type endFork struct {
	forks  Forks
	fork   session.Fork
	report bool // the owner ends the fork with a report
}

// enforce counts the turn and ends the fork if that is wanted. The caller holds the fork's lock.
func (d endFork) enforce(ctx context.Context, _ *tools.Set, t *conversation.Turn) error {
	err := d.forks.r.Sessions.EditFork(context.WithoutCancel(ctx), d.fork.ID, func(f *session.Fork) {
		f.Turns, f.Last = f.Turns+1, d.forks.r.Disk.Now().In(d.forks.r.Zone)
	})
	if errors.Is(err, session.ErrNoFork) { // its file was removed by hand
		return nil
	}
	if err == nil && d.report {
		err = d.demand(ctx, t)
	}
	if err != nil {
		return err
	}
	standing, err := t.Run.Standing()
	if err != nil {
		return err
	}
	became := ""
	switch {
	case standing.LeaveFork == runlog.SaveContext:
		err := d.forks.save(ctx)
		if errors.Is(err, session.ErrMainMoved) {
			return noteFork(ctx, t.Run, t.Observe, runlog.ForkKept, err.Error())
		}
		if err != nil {
			return err
		}
		return noteFork(ctx, t.Run, t.Observe, runlog.ForkSaved, d.fork.Topic)
	case standing.Reports > 0:
		became = runlog.ForkReported
	case d.report:
		became = runlog.ForkSilent
	case standing.LeaveFork == runlog.ExitFork:
		became = runlog.ForkDropped
	default:
		return nil
	}
	if err := d.forks.r.Sessions.CloseFork(context.WithoutCancel(ctx), d.fork.ID); err != nil {
		return err
	}
	return noteFork(ctx, t.Run, t.Observe, became, d.fork.Topic)
}

// demand reminds the agent of the report that the owner asked for. If the agent still does not report, an update says so.
func (d endFork) demand(ctx context.Context, t *conversation.Turn) error {
	for range mostPrompts {
		standing, err := t.Run.Standing()
		if err != nil || standing.Reports > 0 {
			return err
		}
		if err := t.Run.Event(ctx, runlog.Event{Type: runlog.Nudge, Text: prompt.ForkReportNudge}); err != nil {
			return err
		}
		if err := t.Resume(ctx, prompt.ForkReportNudge, true); err != nil {
			return err
		}
	}
	standing, err := t.Run.Standing()
	if err != nil || standing.Reports > 0 {
		return err
	}
	return d.forks.r.Updates.Add(ctx, prompt.ForkUnreported(d.fork.Topic), t.Run.ID)
}

// Save makes the fork the main session.
func (k Forks) Save(ctx context.Context) (session.Fork, error) {
	return k.hold(ctx, func(session.Fork) error { return k.save(ctx) })
}

// Exit drops the fork.
func (k Forks) Exit(ctx context.Context) (session.Fork, error) {
	return k.hold(ctx, func(f session.Fork) error { return k.r.Sessions.CloseFork(context.WithoutCancel(ctx), f.ID) })
}

// Report lets the agent of the fork leave a summary as a pending update, and drops the fork. It stays open if the turn fails.
func (k Forks) Report(ctx context.Context, o Options) (runlog.Record, error) {
	f, open, err := k.r.Sessions.Fork(ctx)
	switch {
	case err != nil:
		return runlog.Record{}, err
	case !open:
		return runlog.Record{}, session.ErrNoFork
	case f.Session == "":
		return runlog.Record{}, session.ErrNoTurn
	}
	return k.take(ctx, f, reportTurn, o, saying(tagSystem, prompt.ForkReport))
}

// hold waits for the turn in progress, and calls do under the fork's lock.
func (k Forks) hold(ctx context.Context, do func(session.Fork) error) (session.Fork, error) {
	path := k.r.Home.ConversationLock(session.ForkKey)
	if left := k.r.Runs.Leftover(path); left != nil {
		return session.Fork{}, left
	}
	guard, err := k.r.Disk.Locks.WaitGuard(ctx, path)
	if err != nil {
		return session.Fork{}, err
	}
	defer guard.Release()
	f, open, err := k.r.Sessions.Fork(ctx)
	if err == nil && !open {
		err = session.ErrNoFork
	}
	if err != nil {
		return f, err
	}
	return f, do(f)
}

// save makes the fork the main session. The caller holds the fork's lock. It fails while a turn of main is in progress, because the fork
// does not contain that turn.
func (k Forks) save(ctx context.Context) error {
	guard, err := lock.TryGuard(k.r.Home.ConversationLock(session.MainKey))
	if errors.Is(err, lock.ErrBusy) {
		return session.ErrMainMoved
	}
	if err != nil {
		return err
	}
	defer guard.Release()
	f, _, err := k.r.Sessions.Fork(ctx)
	if err == nil {
		err = k.r.Sessions.Savable(f)
	}
	if err != nil {
		return err
	}
	return k.r.Sessions.SaveFork(context.WithoutCancel(ctx), f)
}

// Idle returns the fork, and reports whether its agent is to be asked now whether to end it.
func (k Forks) Idle(ctx context.Context) (f session.Fork, idle bool, err error) {
	f, open, err := k.r.Sessions.Fork(ctx)
	return f, err == nil && open && k.idles(f) && k.r.Paused(false) == nil, err
}

func (k Forks) idles(f session.Fork) bool {
	return f.Prompts < mostPrompts && k.r.Disk.Now().Sub(f.Last) >= ForkIdle && lock.Free(k.r.Home.ConversationLock(session.ForkKey))
}

// Nudge asks the agent of an idle fork to end it. The prompt is counted before it is sent, so that a prompt that fails is not repeated
// each minute. Without an idle fork, or while everything is paused, there is no run.
func (k Forks) Nudge(ctx context.Context, o Options) (runlog.Record, error) {
	f, idle, err := k.Idle(ctx)
	if err != nil || !idle {
		return runlog.Record{}, err
	}
	due := false
	err = k.r.Sessions.EditFork(ctx, f.ID, func(now *session.Fork) {
		if due = k.idles(*now); due {
			now.Prompts, now.Last = now.Prompts+1, k.r.Disk.Now().In(k.r.Zone)
			f = *now
		}
	})
	if err != nil || !due {
		return runlog.Record{}, err
	}
	text := prompt.ForkTimeout(time.Duration(f.Prompts)*ForkIdle, f.Prompts == mostPrompts, f.Run == "")
	return k.take(ctx, f, nudgeTurn, o, func(s *run.Spec) {
		saying(tagTimeout, text)(s)
		s.Policy.Awaited, s.Policy.Deliver = false, true
	})
}
