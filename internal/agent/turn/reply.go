package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// Replies finds what the owner replies to.
type Replies struct{ r *run.Runner }

// sent is a message that the owner replies to.
type sent struct {
	session.Message

	run    runlog.Record // run that sent the message
	quote  string
	inTime bool // a reply still reaches the session
}

// Reply answers the owner's reply to a message: it takes a turn with the message that Replying returns.
func (y Replies) Reply(ctx context.Context, id string, m Message, o Options) (runlog.Record, error) {
	m, err := y.Replying(ctx, id, m, o)
	if err != nil {
		return runlog.Record{}, err
	}
	return Queue(y).Chat(ctx, m, o)
}

// Replying returns the message that the agent gets for the owner's reply to message id. If a background run sent message id and no fork is
// open, it opens an interactive fork: a branch of the run's session or, if the session is gone, a fork of main that quotes the message. In
// all other cases the reply itself quotes it. The error is a *plaintext.Unknown if no run sent the message.
func (y Replies) Replying(ctx context.Context, id string, m Message, o Options) (Message, error) {
	s, err := y.sent(ctx, id)
	if err != nil {
		return m, err
	}
	_, open, err := y.r.Sessions.Fork(ctx)
	if err != nil {
		return m, err
	}
	if !open && s.ForkSessionID != "" {
		err := y.openFork(ctx, s, o)
		if !errors.Is(err, session.ErrForkOpen) { // another process has just opened one
			return m, err
		}
	}
	age := time.Duration(0) // not known
	if !s.TS.IsZero() {
		age = y.r.Disk.Now().Sub(s.TS)
	}
	m.Text = prompt.Reply(s.quote, age, m.Text)
	return m, nil
}

// Asked returns the run that asked the owner with a message and waits for the answer; "" if there is none.
func (y Replies) Asked(ctx context.Context, id string) (run string, err error) {
	m, _, err := y.r.Sessions.ByMessage(ctx, id)
	if m.MessageID == "" {
		m.MessageID = id
	}
	if err != nil || runlog.Began(m.Run()).IsZero() { // no run has sent the message
		return "", err
	}
	q, err := y.r.Questions.Load(m.Run())
	if errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrNotExist) {
		return "", err // a damaged question is none
	}
	if q.Message != m.MessageID || q.Answer != "" || q.Expired(y.r.Disk.Now()) {
		return "", nil
	}
	return m.Run(), nil
}

// openFork opens a fork of the session that sent a message or, if that has expired, of main.
func (y Replies) openFork(ctx context.Context, s sent, o Options) error {
	id, err := Queue(y).newRun()
	if err != nil {
		return err
	}
	f := Forks(y).newFork(id, "")
	f.Message, f.Quote, f.Sent = s.MessageID, s.quote, s.TS
	parent, err := y.resumable(s)
	if err != nil {
		return err
	}
	if parent != "" {
		f.Parent, f.Run, f.Running, f.Engine, f.Model = parent, s.run.ID, y.r.Runs.Alive(s.run), s.run.Engine, s.run.Model
	} else {
		if o.Observe.Event != nil {
			o.Observe.Event(runlog.Event{Type: runlog.Fork, Tool: runlog.ForkExpired, Text: "this session has expired — starting fresh with quoted context"})
		}
		f.MainRun = y.r.Sessions.MainRun()
		if f.Parent, err = y.r.Sessions.Main(); err != nil {
			return err
		}
	}
	return y.r.Sessions.OpenFork(ctx, f)
}

// resumable returns the session that a reply to a message branches: the latest one of the run, or that of a persistent routine as it
// is now; "" if it has expired or its engine does not have it.
func (y Replies) resumable(s sent) (string, error) {
	if !s.inTime {
		return "", nil
	}
	standing, err := y.r.Runs.Standing(s.run.ID)
	if err != nil {
		return "", err
	}
	id := cmp.Or(standing.Session, s.ForkSessionID)
	if s.run.Persistent {
		now, err := y.r.Sessions.Routine(s.run.Job)
		if err != nil {
			return "", err
		}
		if now != "" {
			id = now
		}
	}
	made, err := y.r.Engines(s.run.Engine)
	if err != nil {
		return "", err
	}
	_, err = made.Plan(engine.Request{Session: engine.Session{ID: id, Fork: true}}, y.r.ToolsOf(&runlog.Run{Record: s.run}, y.r.Outbox))
	if errors.Is(err, engine.ErrSessionUnknown) || errors.Is(err, engine.ErrForeignSession) {
		return "", nil
	}
	return id, nil // the turn reports any other error
}

// sent finds a message by its own id, or by the one that a messenger gave it.
func (y Replies) sent(ctx context.Context, id string) (s sent, err error) {
	if s.Message, s.inTime, err = y.r.Sessions.ByMessage(ctx, id); err != nil {
		return s, err
	}
	if s.MessageID == "" {
		s.MessageID = id
	}
	e, found := runlog.Event{}, false
	if s.run, err = y.r.Runs.Load(s.Run()); err == nil {
		e, found, err = y.sending(s.run.ID, s.Number())
	}
	damaged := (*runlog.Damaged)(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &damaged), err == nil && !found:
		return s, &plaintext.Unknown{What: "message", Name: id}
	case err != nil:
		return s, err
	}
	if s.TS.IsZero() {
		s.TS = e.At
	}
	if s.ForkSessionID == "" && !s.run.Foreground && e.Type == runlog.Ping && y.r.Disk.Now().Sub(s.TS) > session.ReplyLimit {
		s.ForkSessionID = s.run.SessionAfter // the note has expired, but the record is there
	}
	s.quote = prompt.Quote(textOf(e, s.run))
	return s, nil
}

// sending returns the event that records the n-th message of a run.
func (y Replies) sending(run string, n int) (e runlog.Event, found bool, err error) {
	for e, err := range y.r.Runs.Events(run, nil) {
		if err != nil {
			return e, false, err
		}
		if e.Type == runlog.Ping || e.Type == runlog.Message {
			if n--; n == 0 {
				return e, true, nil
			}
		}
	}
	return e, false, nil
}

// textOf returns the text of a message, or the parts of an embed that a reply quotes.
func textOf(e runlog.Event, run runlog.Record) string {
	var embed outbox.Embed
	if len(e.Input) > 0 && json.Unmarshal(e.Input, &embed) == nil {
		embed.URL, embed.Footer = "", ""
		return embed.Text()
	}
	if e.Type == runlog.Message && e.Tool == string(outbox.Text) {
		return run.Text
	}
	return e.Text
}
