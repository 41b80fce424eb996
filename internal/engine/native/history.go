package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// history stores the conversation of a session: in a transcript, or nowhere if the session is not kept.
type history struct {
	transcript.Transcript                    // without a Path if the session is not kept
	entries               []transcript.Entry // that a session that is not kept begins with
	e                     *Engine
	discard               bool // what compact begins is not kept
}

func (h history) kept() bool { return h.Path != "" }

// lock prevents other processes from appending until the guard is released. The guard is nil if no other process can append.
func (h history) lock(ctx context.Context) (*lock.Guard, error) {
	if !h.kept() {
		return nil, nil
	}
	return h.Lock(ctx, h.e.Locks)
}

func (h history) load() ([]transcript.Entry, error) {
	if !h.kept() {
		return h.entries, nil
	}
	return h.Load(nil)
}

// append appends an entry, after its files.
func (h history) append(d store.Durability, e transcript.Entry) error {
	if !h.kept() {
		return nil
	}
	if err := h.e.put(e); err != nil {
		return err
	}
	return h.Append(d, e)
}

// compact begins the history that continues this one: a summary, then the last entries.
func (h history) compact(summary string, last []transcript.Entry, header transcript.Header) (history, error) {
	header.Compacted = true
	entries, err := transcript.Summarized(summary, last, header.Timestamp)
	if err != nil {
		return history{}, err
	}
	return h.e.write(header, entries, h.kept() && !h.discard)
}

// successor returns the history that an earlier compaction began. The error wraps transcript.ErrUnknown if there is none.
func (h history) successor() (history, error) {
	if !h.kept() {
		return h, transcript.ErrUnknown
	}
	t, err := h.Successor()
	return history{Transcript: t, e: h.e, discard: h.discard}, err
}

// write begins a session with entries.
func (e *Engine) write(h transcript.Header, entries []transcript.Entry, kept bool) (history, error) {
	if !kept {
		return history{Transcript: transcript.Transcript{Header: h}, entries: entries, e: e}, nil
	}
	t, err := e.Sessions.Create(h, entries...)
	return history{Transcript: t, e: e}, err
}

// open returns the history of the request's session, or begins one.
func (e *Engine) open(r engine.Request) (history, error) {
	s := r.Session
	if s.ID == "" {
		return e.begun(r, "", nil)
	}
	source, err := e.Sessions.Find(s.ID)
	switch {
	case errors.Is(err, transcript.ErrUnknown) && engine.Holder(s.ID) != engine.Native, err == nil && engine.HolderOf(source.Header) != engine.Native:
		return history{}, engine.Foreign(s.ID)
	case errors.Is(err, transcript.ErrUnknown):
		return history{}, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, s.ID)
	case err != nil:
		return history{}, err
	case !s.Fork:
		return history{Transcript: source, e: e, discard: s.Discard}, nil
	}
	for s.Follow {
		next, err := source.Successor()
		if errors.Is(err, transcript.ErrUnknown) {
			break
		}
		if err != nil {
			return history{}, err
		}
		source = next
	}
	source, entries, err := e.Sessions.Complete(source)
	if err != nil {
		return history{}, err
	}
	return e.begun(r, source.ID, entries)
}

// begun begins a session with entries of its parent, and the request's messages if it has any.
func (e *Engine) begun(r engine.Request, parent string, entries []transcript.Entry) (history, error) {
	h, err := e.header(r)
	if err != nil {
		return history{}, err
	}
	h.ParentID = parent
	for _, said := range r.Session.Messages {
		entries = append(entries, transcript.Entry{Message: said, At: h.Timestamp})
	}
	return e.write(h, entries, r.Session.Kept())
}
