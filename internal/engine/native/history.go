package native

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// history stores the conversation of a session: in a file, or in memory for a session that is not kept.
type history interface {
	header() transcript.Header
	// lock prevents other processes from appending until the guard is released. The guard is nil if no other process can append.
	lock(ctx context.Context) (*lock.Guard, error)
	load() ([]transcript.Entry, error)
	append(d store.Durability, e transcript.Entry) error
	// compact begins the history that continues this one: a summary, then the last entries.
	compact(summary string, last []transcript.Entry, h transcript.Header) (history, error)
	// successor returns the history that an earlier compaction began. The error wraps transcript.ErrUnknown if there is none.
	successor() (history, error)
}

// file is a history on disk.
type file struct {
	transcript.Transcript
	e       *Engine
	discard bool // what compact begins is not kept
	named   bool // the name of the file is on disk
}

func (f *file) header() transcript.Header                     { return f.Header }
func (f *file) lock(ctx context.Context) (*lock.Guard, error) { return f.Lock(ctx, f.e.Locks) }

func (f *file) load() ([]transcript.Entry, error) {
	entries, err := f.Load(nil)
	f.named = f.named || slices.ContainsFunc(entries, isWhole)
	return entries, err
}

// isWhole reports whether an entry is an answer that ended a turn. Such an answer is written after the name of its file is on disk.
func isWhole(e transcript.Entry) bool {
	m := e.Message
	return m.Role == transcript.Assistant && len(toolUses(m)) == 0 && !e.More && m.Text() != transcript.CutOff
}

// append appends an entry after storing its files.
func (f *file) append(d store.Durability, e transcript.Entry) error {
	if err := f.e.put(e); err != nil {
		return err
	}
	if d == store.Synced && !f.named {
		if err := store.SyncDir(f.Path); err != nil {
			return err
		}
		f.named = true
	}
	return f.Append(min(d, store.Whole), e)
}

func (f *file) compact(summary string, last []transcript.Entry, h transcript.Header) (history, error) {
	h.Compacted = true
	entries, err := transcript.Summarized(summary, last, h.Timestamp)
	if err != nil {
		return nil, err
	}
	return f.e.write(h, entries, !f.discard)
}

func (f *file) successor() (history, error) {
	t, err := f.Successor()
	return &file{Transcript: t, e: f.e, discard: f.discard}, err
}

// memory is a history that is dropped at the end of the turn.
type memory struct {
	transcript.Header
	entries []transcript.Entry
}

func (m memory) header() transcript.Header                     { return m.Header }
func (memory) lock(context.Context) (*lock.Guard, error)       { return nil, nil }
func (m memory) load() ([]transcript.Entry, error)             { return m.entries, nil }
func (memory) append(store.Durability, transcript.Entry) error { return nil }
func (memory) successor() (history, error)                     { return nil, transcript.ErrUnknown }

func (memory) compact(summary string, last []transcript.Entry, h transcript.Header) (history, error) {
	h.Compacted = true
	entries, err := transcript.Summarized(summary, last, h.Timestamp)
	return memory{h, entries}, err
}

// write begins a session with entries.
func (e *Engine) write(h transcript.Header, entries []transcript.Entry, kept bool) (history, error) {
	if !kept {
		return memory{h, entries}, nil
	}
	t, err := e.Sessions.Create(h, entries...)
	return &file{Transcript: t, e: e}, err
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
		return nil, engine.Foreign(s.ID)
	case errors.Is(err, transcript.ErrUnknown):
		return nil, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, s.ID)
	case err != nil:
		return nil, err
	case !s.Fork:
		return &file{Transcript: source, e: e, discard: s.Discard}, nil
	}
	for s.Follow {
		next, err := source.Successor()
		if errors.Is(err, transcript.ErrUnknown) {
			break
		}
		if err != nil {
			return nil, err
		}
		source = next
	}
	source, entries, err := e.Sessions.Complete(source)
	if err != nil {
		return nil, err
	}
	return e.begun(r, source.ID, entries)
}

// begun begins a session with entries of its parent, and with the request's messages if it has any.
func (e *Engine) begun(r engine.Request, parent string, entries []transcript.Entry) (history, error) {
	h, err := e.header(r)
	if err != nil {
		return nil, err
	}
	h.ParentID = parent
	for _, said := range r.Session.Messages {
		entries = append(entries, transcript.Entry{Message: said, At: h.Timestamp})
	}
	return e.write(h, entries, r.Session.Kept())
}
