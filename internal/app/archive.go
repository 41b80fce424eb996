package app

import (
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/state/transcript"
)

// archive reads the sessions of all engines.
type archive struct{ Home }

// Holder returns the engine that a session belongs to. The header of a transcript outranks the form of its id.
func (a archive) Holder(id string) string {
	holder := engine.Holder(id)
	if holder == engine.Script || holder == engine.Native {
		return holder
	}
	if t, err := a.Transcripts().Find(id); id != "" && err == nil {
		return engine.HolderOf(t.Header)
	}
	return holder
}

// Entries returns what was said in a session, oldest first. The error wraps transcript.ErrUnknown if there is no such session.
func (a archive) Entries(id string) ([]transcript.Entry, error) {
	if engine.Holder(id) == engine.Script {
		return script.Entries(a.Dir, id)
	}
	t, err := a.findTranscript(id)
	if err != nil {
		return nil, err
	}
	return a.Load(t, nil)
}
