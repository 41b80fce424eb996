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

// history stores the conversation of a session: in a file, or in memory for a session that is not kept.
type history interface {
	Info() transcript.Header
	// Lock prevents other processes from appending until the guard is released. The guard is nil if no other process can append.
	Lock(ctx context.Context) (*lock.Guard, error)
	Load() ([]transcript.Entry, error)
	Append(d store.Durability, entries ...transcript.Entry) error
	// Compact begins the history that continues this one: a summary, then the last entries.
	Compact(summary string, kept []transcript.Entry, h transcript.Header) (history, error)
	// Successor returns the history that an earlier compaction began. The error wraps transcript.ErrUnknown if there is none.
	Successor() (history, error)
}

// file is a history on disk.
type file struct {
	transcript.Transcript
	e       *Engine
	discard bool // what Compact begins is not kept
}

func (f file) Info() transcript.Header { return f.Header }
func (f file) Lock(ctx context.Context) (*lock.Guard, error) {
	return f.Transcript.Lock(ctx, f.e.Locks)
}
func (f file) Load() ([]transcript.Entry, error) { return f.Transcript.Load(nil) }

// Append keeps the files of the entries first.
func (f file) Append(d store.Durability, entries ...transcript.Entry) error {
	for _, e := range entries {
		if err := f.put(context.Background(), e); err != nil {
			return err
		}
	}
	return f.Transcript.Append(d, entries...)
}

func (f file) with(t transcript.Transcript) history { return file{t, f.e, f.discard} }

func (f file) Compact(summary string, kept []transcript.Entry, h transcript.Header) (history, error) {
	if f.discard {
		return summarized(summary, kept, h)
	}
	t, err := f.e.Sessions.Summed(summary, kept, h)
	return f.with(t), err
}

func (f file) Successor() (history, error) {
	t, err := f.Transcript.Successor()
	return f.with(t), err
}

// memory is a history that ends with the turn.
type memory struct {
	header  transcript.Header
	entries []transcript.Entry
}

func (m *memory) Info() transcript.Header                 { return m.header }
func (*memory) Lock(context.Context) (*lock.Guard, error) { return nil, nil }
func (m *memory) Load() ([]transcript.Entry, error)       { return m.entries, nil }
func (*memory) Successor() (history, error)               { return nil, transcript.ErrUnknown }
func (m *memory) Append(_ store.Durability, entries ...transcript.Entry) error {
	m.entries = append(m.entries, entries...)
	return nil
}

func (*memory) Compact(summary string, kept []transcript.Entry, h transcript.Header) (history, error) {
	return summarized(summary, kept, h)
}

func summarized(summary string, kept []transcript.Entry, h transcript.Header) (history, error) {
	h.Compacted = true
	entries, err := transcript.Summarized(summary, kept, h.Timestamp)
	return &memory{h, entries}, err
}

// open returns the history of the request's session, or begins one.
func (e *Engine) open(r engine.Request) (history, error) {
	s := r.Session
	if s.ID == "" {
		return e.create(r)
	}
	source, err := e.Sessions.Find(s.ID)
	switch {
	case errors.Is(err, transcript.ErrUnknown) && engine.Holder(s.ID) != engine.Native, err == nil && engine.HolderOf(source.Header) != engine.Native:
		return nil, engine.Foreign(s.ID)
	case errors.Is(err, transcript.ErrUnknown):
		return nil, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, s.ID)
	case err != nil:
		return nil, err
	case s.Fork:
		return e.branch(r, source)
	}
	return file{source, e, s.Discard}, nil
}

// create begins a session, with the request's messages if it has any.
func (e *Engine) create(r engine.Request) (history, error) {
	h, err := e.header(r)
	if err != nil {
		return nil, err
	}
	if r.Session.Kept() {
		t, err := e.Sessions.Create(h)
		return file{Transcript: t, e: e}, err
	}
	return remembered(h, nil, r), nil
}

// remembered returns a history of entries and the request's messages.
func remembered(h transcript.Header, entries []transcript.Entry, r engine.Request) *memory {
	for _, said := range r.Session.Messages {
		entries = append(entries, transcript.Entry{Message: said, At: h.Timestamp})
	}
	return &memory{h, entries}
}

// branch begins a session with the complete turns of another.
func (e *Engine) branch(r engine.Request, source transcript.Transcript) (history, error) {
	for r.Session.Follow {
		next, err := source.Successor()
		if errors.Is(err, transcript.ErrUnknown) {
			break
		}
		if err != nil {
			return nil, err
		}
		source = next
	}
	h, err := e.header(r)
	if err != nil {
		return nil, err
	}
	if r.Session.Discard {
		h.ParentID = source.ID
		entries, err := e.Sessions.Complete(source)
		return remembered(h, entries, r), err
	}
	t, err := e.Sessions.Branch(source, -1, h)
	return file{Transcript: t, e: e}, err
}
