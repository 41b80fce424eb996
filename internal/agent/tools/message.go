package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

// pings returns a *Refused if the job's allow-ping permits no message to the owner. It applies to every tool that reaches the owner,
// without exception.
func pings(b *Set) error {
	if !b.Run.Foreground && !b.Run.AllowPing {
		return &Refused{"Pings are disabled for this task (allow-ping: false)."}
	}
	return nil
}

// mail sends messages of a run to its owner.
type mail struct{ set *Set }

// reach sends the owner a message if the limits of behaviour 6 permit it. The message is counted before it is sent, so that two processes
// cannot both send the one message of a run. The count is undone only if the message was definitely refused.
func (p mail) reach(ctx context.Context, m outbox.Message) (string, error) {
	var embed json.RawMessage // kept for a reply, which quotes parts of the embed
	if m.Embed != nil {
		embed, _ = json.Marshal(m.Embed) // texts: it cannot fail
	}
	return p.reachWith(ctx, m, runlog.Event{Type: runlog.Ping, Text: m.Text, Input: embed}, nil)
}

// reachWith is reach with the event that counts the message. keep, if it is not nil, is called with the message's id once the limits permit
// the message and before the event; its error keeps the message from being sent.
func (p mail) reachWith(ctx context.Context, m outbox.Message, e runlog.Event, keep func(id string) error) (string, error) {
	r := p.set.Run.Record
	paid := false
	err := p.set.Run.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		m.ID = session.MessageID(r.ID, s.Messages+1)
		var err error
		if paid, err = p.pay(ctx, s, m.Critical); err == nil && keep != nil {
			err = keep(m.ID)
		}
		return e, err
	})
	back := context.WithoutCancel(ctx) // the count is undone even if ctx has ended
	if err != nil {
		if paid {
			err = errors.Join(err, p.set.Budget.Return(back, m.Critical))
		}
		return "", err
	}
	m.Run, m.Job, m.Label, m.Kind, m.Created = r.ID, r.Job, r.Label(), outbox.Ping, p.set.World.Disk.Now()
	if !m.Critical && keep == nil {
		m.NotBefore = p.quietUntil()
	}
	answer, err := p.send(ctx, m, keep != nil)
	if err != nil {
		err = errors.Join(err, p.set.Run.Event(back, runlog.Event{Type: runlog.PingRefused, Tool: e.Tool, Text: e.Text}))
		if keep != nil {
			err = errors.Join(err, p.set.Questions.Drop(back, r.ID))
		}
		if paid {
			err = errors.Join(err, p.set.Budget.Return(back, m.Critical))
		}
		return "", err
	}
	return answer, nil
}

// pay applies the limits besides allow-ping: one message a run, and one more after each answer of the owner; none while the owner is in a
// conversation; a token for each. A critical message is exempt, but counted. The main conversation has no limits.
func (p mail) pay(ctx context.Context, s runlog.Standing, critical bool) (paid bool, err error) {
	r := p.set.Run.Record
	if r.Foreground {
		return false, nil
	}
	if critical {
		err := p.set.Budget.TakeCritical(ctx)
		return err == nil, err
	}
	instead := " Use `report_updates` instead."
	if r.Update == string(job.Blocked) {
		instead = " Finish the task without one."
	}
	switch {
	case s.Asking():
		return false, &Refused{"This run waits for the answer to its question already. End your turn."}
	case s.Pings > s.Earlier:
		return false, &Refused{"This run has already sent its one message."}
	}
	if p.set.Busy() {
		return false, &Refused{"The owner is in mid-conversation." + instead}
	}
	ok, status, err := p.set.Budget.Take(ctx)
	if err == nil && !ok {
		err = &Refused{"No ping is left (" + status.String() + ")." + instead}
	}
	return ok, err
}

// send sends a message; asks says whether it is a question. An error means that it was definitely not sent.
func (p mail) send(ctx context.Context, m outbox.Message, asks bool) (string, error) {
	if !p.set.Sender.Configured() {
		return p.sendByUpdate(ctx, m, asks)
	}
	if m.File != "" {
		kept, err := p.keepFile(m.File, m.ID)
		if err != nil {
			return "", err
		}
		m.File = kept
	}
	if err := notify.Remember(ctx, p.set.Sessions, p.set.Run, m.ID); err != nil {
		p.set.World.Disk.Warn(err.Error())
	}
	receipt, err := p.set.Sender.Send(ctx, m)
	if err := p.set.Sessions.Received(ctx, m.ID, receipt.Outside...); err != nil {
		p.set.World.Disk.Warn(err.Error())
	}
	switch receipt.Fate {
	case outbox.Sent:
		return "Sent.", nil
	case outbox.Queued:
		if !m.NotBefore.IsZero() {
			return "The owner has quiet hours: it is sent at " + m.NotBefore.Format("3:04 PM") + ".", nil
		}
		return "Not delivered yet; it is queued and will be retried.", nil
	}
	return "", errors.Join(errors.New("the message was not sent"), err)
}

// quietUntil returns when a message of the run may be sent if quiet hours hold it; zero: they do not. What the owner waits for is not held:
// messages of the main conversation, and of a reminder at its time.
func (p mail) quietUntil() time.Time {
	now := p.set.World.Disk.Now().In(p.set.World.Zone)
	if p.set.Run.Foreground || p.set.Run.Kind == string(job.Reminder) || !p.set.World.Quiet.Contains(now) {
		return time.Time{}
	}
	return p.set.World.Quiet.End(now)
}

// sendByUpdate leaves a message as a pending update, because no delivery is configured. The update reports the message, but not what comes
// of a question.
func (p mail) sendByUpdate(ctx context.Context, m outbox.Message, asks bool) (string, error) {
	if m.File != "" {
		m.Text += " (file: " + m.File + ")"
	}
	add := p.set.report
	if asks {
		add = func(ctx context.Context, text string) error { return p.set.Updates.Add(ctx, text, p.set.Run.ID) }
	}
	if err := add(ctx, m.Text); err != nil {
		return "", err
	}
	return "No delivery is configured, so the owner will see this in the next conversation.", nil
}

func callPing(ctx context.Context, b *Set, in struct {
	Message  string `json:"message"`
	Critical bool   `json:"critical"`
}) (string, error) {
	text := update.Clean(in.Message)
	if text == "" {
		return "", errors.New("bad arguments: message is empty")
	}
	return mail{b}.reach(ctx, outbox.Message{Text: text, Critical: in.Critical})
}

func callEmbed(ctx context.Context, b *Set, in struct {
	outbox.Embed
	Critical bool `json:"critical"`
}) (string, error) {
	embed, err := in.Clean()
	if err != nil {
		return "", fmt.Errorf("bad arguments: %w", err)
	}
	buttons, err := Buttons(ctx, b.Questions, &embed)
	if err != nil {
		return "", err
	}
	return mail{b}.reach(ctx, outbox.Message{Text: embed.Text(), Embed: &embed, Buttons: buttons, Critical: in.Critical})
}

// Buttons returns the buttons of an embed, and stores their prompts.
func Buttons(ctx context.Context, prompts question.Book, e *outbox.Embed) (list []outbox.Button, err error) {
	for _, a := range e.Actions {
		verb, arg, _ := strings.Cut(a.Action, ":")
		if verb == outbox.ButtonAgent {
			if arg, err = prompts.KeepPrompt(ctx, arg); err != nil {
				return nil, err
			}
		}
		list = append(list, outbox.Button{Label: a.Label, ID: outbox.ButtonID(verb, arg), Style: a.Style})
	}
	e.Actions = nil
	return list, nil
}

func callSendFile(ctx context.Context, b *Set, in struct {
	Path     string `json:"path"`
	Message  string `json:"message"`
	Critical bool   `json:"critical"`
}) (string, error) {
	path, err := mail{b}.fileToSend(in.Path)
	if err != nil {
		return "", err
	}
	text := update.Clean(in.Message)
	if text == "" {
		text = plaintext.Line(filepath.Base(path))
	}
	return mail{b}.reach(ctx, outbox.Message{Text: text, File: path, Critical: in.Critical})
}

// fileToSend returns the absolute path of a file that the run may send.
func (p mail) fileToSend(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = p.set.World.Home.Path(path)
	}
	if err := p.set.mayRead(path); err != nil {
		return "", err
	}
	if err := outbox.CheckFile(path); err != nil {
		return "", fmt.Errorf("bad arguments: %w", err)
	}
	return path, nil
}

// keepFile copies a file into the run's record, so that a later attempt sends the present content. The copy is in a directory of its
// message, so that another file of the same name does not replace it.
func (p mail) keepFile(path, message string) (string, error) {
	f, err := p.set.OpenFile(path) // the file may have been replaced since it was checked
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, outbox.MaxFile+1))
	if err != nil {
		return "", err
	}
	if len(data) > outbox.MaxFile {
		return "", outbox.TooLarge(path)
	}
	kept := p.set.World.Home.Run(p.set.Run.ID, "sent", message, filepath.Base(path))
	return kept, store.Write(kept, data, store.Synced)
}

// OpenFile opens a file that the run may read. A relative path begins in the data directory.
func (b *Set) OpenFile(path string) (*os.File, error) {
	if err := b.mayRead(path); err != nil {
		return nil, err
	}
	p := b.reading()
	return (&builtin.Box{Roots: p.Roots, Allow: p.Allow, Protected: p.Protected}).OpenFile(path)
}

// reading allows every file of the run's directories that is not protected.
func (b *Set) reading() policy.Policy {
	all := b.Policy()
	p := policy.Policy{Roots: all.Roots, Protected: all.Protected, Allow: parse([]string{"Read(./**)"})}
	for _, root := range p.Roots {
		p.Allow = append(p.Allow, parse([]string{"Read(" + filepath.Join(root.Dir, "**") + ")"})...)
	}
	return p
}

// mayRead returns a *Refused if the run may not read a file.
func (b *Set) mayRead(path string) error {
	input, err := json.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return err
	}
	if v := b.reading().Decide("Read", input); !v.Allow {
		return &Refused{v.Reason}
	}
	return nil
}
