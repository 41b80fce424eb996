package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// talk lets the native engine carry the conversation of the run again. temp is the temporary directory.
func (w *walk) talk(ctx context.Context, temp, text string) error {
	found, err := backtest.First(w.r.Asked, w.record.ID, text)
	if err != nil {
		return w.unfit(err)
	}
	w.first = found.Number
	if w.begins, err = w.again(1, found.Sent.System); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.wire = &transport{w: w, stop: stop}
	e, err := w.engine(temp, found)
	if err != nil {
		return err
	}
	r := w.begins.Request
	if r.Session, err = w.session(e, found); err != nil {
		return err
	}
	e.Random = &chain{w.kept.ids}
	if r.Input.Attachments, err = attached(temp, found); err != nil {
		return err
	}
	if w.watched() {
		r.Input.Delta = func(string) error { return nil }
	}
	r.Session.Pace, r.Session.Full = w.begins.Request.Session.Pace, w.begins.Request.Session.Full
	r.Limits.MaxCost, r.Limits.Raise, r.Limits.Spent = 0, nil, 0
	r.Input.Prompt = w.begins.Prompt.Text()
	err = w.turns(ctx, e, r)
	switch {
	case w.wire.err != nil:
		return w.wire.err
	case w.wire.diff != nil:
		w.out.Difference = w.wire.diff
		return nil
	}
	return err
}

// turns takes the turns of the run, one after the other, until the record has no more requests.
func (w *walk) turns(ctx context.Context, e *native.Engine, r engine.Request) error {
	set := engine.Tools(recorded{w.begins.Tools, w})
	for {
		before := w.wire.n
		result, err := e.Run(ctx, r, set, w.sink)
		switch {
		case errors.Is(context.Cause(ctx), errOver), w.wire.n == len(w.kept.exchanges):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if result.Session != "" {
			r.Session.ID, r.Session.Fork = result.Session, false
		}
		if w.repeats(&r, err, before) {
			continue
		}
		if errors.As(err, new(*store.NotWritten)) || errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError)) { // the temporary directory
			return err
		}
		if err != nil { // no message follows the error of a turn
			w.out.Difference = w.ended(plaintext.OneLine(err))
			return nil
		}
		next, err := w.next(&r, &set)
		if err != nil {
			return err
		}
		if !next {
			w.out.Difference = w.ended("the agent's turn ends")
			return nil
		}
	}
}

// ended returns the difference that no further request is made although the record has one.
func (w *walk) ended(why string) *Difference {
	return &Difference{Request: w.wire.n + 1, Field: "request", Then: "a request", Now: "none: " + why}
}

// repeats reports whether the run sent the same message again, because the service refused it for a while, or to another model.
func (w *walk) repeats(r *engine.Request, err error, before int) bool {
	var busy *engine.Overloaded
	if !errors.As(err, &busy) && !errors.Is(err, engine.ErrModel) || w.wire.n == before {
		return false
	}
	sent, parseErr := w.kept.parse(w.wire.n + 1)
	if parseErr != nil {
		return false
	}
	if len(w.kept.models) > 0 && sent.Model == w.kept.models[0] {
		r.Model.Name, w.kept.models = w.kept.models[0], w.kept.models[1:]
		return true
	}
	return busy != nil
}

// next puts the next message to the agent into the request. It reports false if the record has none.
func (w *walk) next(r *engine.Request, set *engine.Tools) (bool, error) {
	r.Input.Attachments, r.Input.Nudge = nil, false
	if len(w.kept.follow) == 0 {
		text := w.said(w.wire.n + 1)
		r.Input.Prompt = text // such as that an answer does not fit its schema
		return text != "", nil
	}
	e := w.kept.follow[0]
	w.kept.follow = w.kept.follow[1:]
	switch e.Type {
	case runlog.Nudge:
		r.Input.Prompt, r.Input.Nudge = prompt.Nudge(job.UpdateMode(w.begins.Record.Update)), true
		if w.begins.Record.Foreground {
			r.Input.Prompt = prompt.ForkReportNudge
		}
	case runlog.Verified:
		r.Input.Prompt = prompt.NotVerified(e.Text, e.Count, w.begins.Retries)
	default:
		part := len(w.kept.answered) - w.answersLeft() + 1
		a, err := w.again(part, "")
		if err != nil {
			return false, err
		}
		session := r.Session
		*r = a.Request
		r.Session, r.Session.Pace, r.Session.Full = session, a.Request.Session.Pace, a.Request.Session.Full
		r.Input.Prompt, w.begins = a.Prompt.Text(), a
		*set = recorded{a.Tools, w}
	}
	return true, nil
}

// answersLeft returns how many answers of the owner are still to come.
func (w *walk) answersLeft() (n int) {
	for _, e := range w.kept.follow {
		if e.Type == runlog.Answered {
			n++
		}
	}
	return n
}

// said returns the text of the last message in a recorded request.
func (w *walk) said(n int) string {
	sent, err := w.kept.parse(n)
	if err != nil || len(sent.Messages) == 0 {
		return ""
	}
	last := sent.Messages[len(sent.Messages)-1]
	if last.Role != transcript.User || slices.ContainsFunc(last.Content, func(b transcript.Block) bool { return b.Type == transcript.ToolResult }) {
		return ""
	}
	return last.Text()
}

// engine returns the native engine, with everything that it would reach replaced by the record.
func (w *walk) engine(temp string, found backtest.Found) (*native.Engine, error) {
	e, err := w.r.Engine(w.wire)
	if err != nil {
		return nil, err
	}
	own := e.Tools
	e.Sessions = transcript.Dir(filepath.Join(temp, "sessions"))
	e.Objects = newFiles(w.r.Objects, found.Sent.Messages)
	e.Tools = func(r engine.Request) native.BuiltIns { return builtIns{own(r), w} }
	e.Servers = func(r engine.Request) native.Servers { return servers{w, r.Scope.Servers} }
	e.Agents = w.r.Agents
	e.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	at := w.begins.At
	e.Now = func() time.Time { return at }
	return e, nil
}

// sink notes which tool is used.
func (w *walk) sink(e runlog.Event) error {
	if e.Type == runlog.ToolUse {
		w.using = e
	}
	return nil
}

// use answers the use of a tool from the record.
func (w *walk) use(name string) engine.ToolResult {
	id := strings.TrimPrefix(w.using.ToolID, w.using.Parent+"/")
	result, err := w.kept.result(w.wire.n, id, w.using.ToolID)
	if err != nil { // the run ended during the use
		if w.wire.n < len(w.kept.exchanges) {
			err = w.unfit(fmt.Errorf("%s: %w", name, err))
		} else {
			err = nil
		}
		_ = w.wire.over(nil, err)
	}
	return result
}

// session returns the session that the run continues or branches, as it was then: from its transcript, or from the first request.
func (w *walk) session(e *native.Engine, found backtest.Found) (engine.Session, error) {
	before, header := w.history(e, found)
	for _, entry := range before { // a transcript has files by their hashes
		for _, b := range entry.Message.Content {
			if b.Source != nil && b.Source.SHA256 == "" {
				b.Source.SHA256, _ = e.Objects.Put(context.Background(), b.Source.Content) // in memory
			}
		}
	}
	if len(before) == 0 {
		return engine.Session{}, nil
	}
	if header.ID == "" {
		w.wire.n = w.first - 1
		if w.wire.n > 0 {
			w.out.Notes = append(w.out.Notes, fmt.Sprintf("requests 1 to %d came before the message of the run, and the session as it was then is not kept: they are not compared", w.wire.n))
		}
		header = transcript.Header{ID: "n-replay", Cwd: w.begins.Request.Scope.Root, Provider: e.Service.Name, Timestamp: w.begins.At}
	}
	if w.kept.branch { // the branch gets the recorded id
		header.ID = cmp.Or(header.ParentID, "n-parent")
	} else if len(w.kept.ids) > 0 { // no session begins before the first compaction
		w.kept.ids = w.kept.ids[1:]
	}
	t, err := e.Sessions.Create(header, before...)
	return engine.Session{ID: t.ID, Fork: w.kept.branch}, err
}

// history returns what the session had before the message of the run.
func (w *walk) history(e *native.Engine, found backtest.Found) (list []transcript.Entry, h transcript.Header) {
	t, err := w.r.Sessions.Find(w.kept.session)
	if err == nil {
		list, err = t.Load(nil)
	}
	own := slices.IndexFunc(list, func(e transcript.Entry) bool { return e.Run == w.record.ID })
	if err == nil && own >= 0 {
		return list[:own], t.Header
	}
	list = nil
	prefix := e.Prefix(w.begins.Request, recorded{w.begins.Tools, w}) // the thoughts that were sent belong to it
	for _, m := range found.History {
		list = append(list, transcript.Entry{Message: m, At: w.begins.At, Prefix: prefix})
	}
	return list, h
}

// attached writes the files that the prompt came with, and returns them as attachments.
func attached(temp string, found backtest.Found) (list []engine.Attachment, err error) {
	said := found.Sent.Messages[len(found.Sent.Messages)-1].Content
	for _, b := range said[:found.At] {
		if b.Source == nil {
			continue
		}
		path := filepath.Join(temp, fmt.Sprintf("file-%d", len(list)+1))
		if err := os.WriteFile(path, b.Source.Content, 0o600); err != nil {
			return nil, err
		}
		list = append(list, engine.Attachment{Name: b.Source.Name, Type: b.Source.MediaType, Path: path})
	}
	return list, nil
}

// files are the files that models saw, and those that the replay adds, which are kept in memory.
type files struct {
	of    Objects
	added map[string][]byte
}

// newFiles returns the files of the data directory and those of messages that were sent, which may be gone from there.
func newFiles(of Objects, sent []transcript.Message) *files {
	f := &files{of: of, added: map[string][]byte{}}
	for _, m := range sent {
		for _, b := range m.Content {
			if b.Source != nil {
				_, _ = f.Put(context.Background(), b.Source.Content) // in memory
			}
		}
	}
	return f
}

// Put adds a file in memory.
func (f *files) Put(_ context.Context, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	f.added[hash] = content
	return hash, nil
}

// Get returns a file.
func (f *files) Get(hash string) ([]byte, error) {
	if content, is := f.added[hash]; is {
		return content, nil
	}
	return f.of.Get(hash)
}

// watched reports whether a person watched the answers as they came in, so that each might have its full length from the beginning.
func (w *walk) watched() bool {
	text, _, err := w.r.Asked.Read(w.record.ID, w.first)
	if err != nil {
		return false
	}
	var sent struct {
		Most   int `json:"max_tokens"`
		OpenAI int `json:"max_completion_tokens"`
	}
	return json.Unmarshal(text, &sent) == nil && max(sent.Most, sent.OpenAI) > engine.UsualAnswer
}
