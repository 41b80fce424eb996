package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/acp"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// SessionName is a session as people name it: main or routine:ID. The zero value names none.
type SessionName struct {
	Text    string // main or routine:ID
	Routine string // ID, "" for main
}

// NameOf returns the name of a routine's session, and for "" that of main.
func NameOf(routine string) SessionName {
	if routine == "" {
		return SessionName{Text: "main"}
	}
	return SessionName{"routine:" + routine, routine}
}

// SessionName reads the name of a session, in which the routine may be given by any of its names. found reports whether text is such a
// name.
func (h Home) SessionName(text string) (n SessionName, found bool, err error) {
	if text == "main" {
		return NameOf(""), true, nil
	}
	name, found := strings.CutPrefix(text, "routine:")
	if !found {
		return SessionName{}, false, nil
	}
	if name == "" { // which NameOf would take for main
		return SessionName{}, true, &BadArgument{fmt.Sprintf("no routine %q", text)}
	}
	files, err := h.Jobs.Load()
	if err != nil {
		return SessionName{}, true, err
	}
	if j, err := files.Find(name); err == nil {
		name = j.ID
	}
	return NameOf(name), true, nil
}

// ID returns the session's id; ErrNoSession when there is none yet.
func (n SessionName) ID(b session.Book) (string, error) {
	id, err := "", error(nil)
	if n.Routine == "" {
		id, err = b.Main()
	} else {
		id, err = b.Routine(n.Routine)
	}
	if err == nil && id == "" {
		err = fmt.Errorf("%w yet", ErrNoSession)
	}
	return id, err
}

// SessionNames returns main and the routines that have, or had, a session.
func (h Home) SessionNames() ([]SessionName, error) {
	names := []SessionName{NameOf("")}
	routines, err := h.Sessions.Routines()
	for _, id := range routines {
		names = append(names, NameOf(id))
	}
	return names, err
}

// CurrentNames maps the ids of current sessions to their names.
func (h Home) CurrentNames() (map[string]SessionName, error) {
	current, err := h.Sessions.Current()
	names := map[string]SessionName{}
	for id, routine := range current {
		names[id] = NameOf(routine)
	}
	return names, err
}

// Conversations returns the ids of all sessions that main, routines and runs ever had. A question branches such a session and does not
// continue it.
func (h Home) Conversations() (map[string]bool, error) {
	ids := map[string]bool{}
	for e, err := range h.Sessions.History(nil) {
		if err != nil {
			return nil, err
		}
		ids[e.SessionID] = true
	}
	return ids, nil
}

// Conversation is a session, however it was named.
type Conversation struct {
	ID   string
	Name SessionName           // zero if it is the current session of neither main nor a routine
	File transcript.Transcript // zero if the engine keeps it in its own format
}

// Conversation finds the session of a name, of an id, of the beginning of an id, or of a path. Only the owner may give anything but a name.
// The errors are ErrNoSession, *BadArgument, *plaintext.Unknown, session.ErrID, and those of transcript.
func (h Home) Conversation(text string) (c Conversation, err error) {
	n, found, err := h.SessionName(text)
	if err != nil {
		return c, err
	}
	if !found {
		return h.Transcript(text)
	}
	c.Name = n
	if c.ID, err = n.ID(h.Sessions); err != nil {
		return c, err
	}
	c.File, err = h.findTranscript(c.ID)
	if errors.Is(err, transcript.ErrUnknown) {
		err = nil
	}
	return c, err
}

// Transcripts returns the transcripts of the data directory.
func (h Home) Transcripts() transcript.Dir { return transcript.Dir(h.Dir.Sessions()) }

// findTranscript finds a session that is kept here, or by the claude command.
func (h Home) findTranscript(id string) (transcript.Transcript, error) {
	t, err := h.Transcripts().Find(id)
	if errors.Is(err, transcript.ErrUnknown) {
		return h.ClaudeArchive().Find(id)
	}
	return t, err
}

// ClaudeArchive returns the sessions that the claude command keeps.
func (h Home) ClaudeArchive() *claudecode.Engine {
	return &claudecode.Engine{Env: h.childEnv(), Home: h.Dir}
}

// Transcript finds a conversation by its id, the beginning of one, or its file.
func (h Home) Transcript(text string) (c Conversation, err error) {
	if err := h.app.OwnerOnly(); err != nil {
		return c, err
	}
	if IsPath(text) {
		c.File, err = h.OpenFile(text)
	} else {
		c.File, err = h.Transcripts().FindPrefix(text)
		if errors.Is(err, transcript.ErrUnknown) {
			c.File, err = h.ClaudeArchive().FindPrefix(text)
		}
	}
	if err != nil {
		return c, NoTranscript(text, err)
	}
	names, err := h.CurrentNames()
	c.ID, c.Name = c.File.ID, names[c.File.ID]
	return c, err
}

// OpenFile opens a transcript, or a session file of the claude command. The error wraps transcript.ErrForeign for another file.
func (h Home) OpenFile(path string) (transcript.Transcript, error) {
	t, err := transcript.Open(path)
	if !errors.Is(err, transcript.ErrForeign) {
		return t, err
	}
	info, statErr := os.Stat(path)
	target, linkErr := filepath.EvalSymlinks(path)
	if statErr != nil || linkErr != nil || !info.Mode().IsRegular() {
		return t, err
	}
	return h.ClaudeArchive().Open(target)
}

// Load reads a conversation of any form. *bad, which may be nil, counts the lines that cannot be read.
func (h Home) Load(t transcript.Transcript, bad *int) ([]transcript.Entry, error) {
	if t.Form == engine.ClaudeCode {
		return h.ClaudeArchive().Load(t, false, bad)
	}
	return t.Load(bad)
}

// Read opens and loads a session file that is not a transcript, see transcript.Search.
func (h Home) Read(path string, maybe func(lines []byte) bool) (transcript.Transcript, []transcript.Entry, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return transcript.Transcript{}, nil, err
	}
	return h.ClaudeArchive().Read(path, maybe)
}

// IsPath reports whether text is a file and not an id, which has no slash.
func IsPath(text string) bool {
	return strings.ContainsRune(text, filepath.Separator) || strings.HasSuffix(text, ".jsonl")
}

// NoTranscript rewords the error of a search for the transcript that text names.
func NoTranscript(text string, err error) error {
	switch {
	case errors.Is(err, transcript.ErrUnknown), errors.Is(err, fs.ErrNotExist):
		return Hint(&plaintext.Unknown{What: "session", Name: text}, "ollim session list --all")
	case errors.Is(err, transcript.ErrForeign):
		return transcript.ErrForeign
	}
	return err
}

// Holder returns the engine of a conversation; "" if it is not known.
func (c Conversation) Holder() string {
	if c.File.Path != "" {
		return cmp.Or(c.File.Form, engine.HolderOf(c.File.Header))
	}
	return engine.Holder(c.ID)
}

// Busy reports whether another process writes the conversation.
func (c Conversation) Busy(h Home) bool {
	return c.File.Path != "" && c.File.Busy() || c.Name.Text != "" && !lock.Free(h.Dir.SessionLock(c.Name.Routine))
}

// answered reports whether the model has answered anything in a run, which may have been killed. An answer that the engine kept
// after the kill, or just before it, is in the session and not in the events.
func (h Home) answered(id string) bool {
	did, err := h.Runs.Standing(id)
	if err != nil || did.Started {
		return err == nil
	}
	r, err := h.Runs.At(id)
	if err != nil {
		return false
	}
	session := cmp.Or(did.Session, r.SessionAfter, r.SessionBefore)
	if session == "" { // a conversation knows its first session before the run's events do
		if session, err = h.Sessions.Under(r.Key); err != nil {
			return false
		}
	}
	if engine.Holder(session) == engine.Script {
		answered, err := script.Answered(h.Dir, session, id)
		return err == nil && answered
	}
	t, err := h.findTranscript(session)
	if err != nil {
		return false
	}
	answered := false
	if t.Form == engine.ClaudeCode {
		answered, err = h.claudeAnswered(t, r)
	} else {
		answered, err = t.Answered(id)
	}
	return err == nil && answered
}

// claudeAnswered is answered for a session of the claude command, which does not know the runs: a run's prompt is found by its
// text.
func (h Home) claudeAnswered(t transcript.Transcript, r *runlog.Run) (bool, error) {
	prompt, err := store.Read(h.Dir.Run(r.ID, "prompt.txt"))
	if err != nil {
		return false, err
	}
	want := strings.TrimSpace(string(prompt))
	return h.ClaudeArchive().Answered(t, func(text string) bool { return strings.TrimSpace(r.Hide(text)) == want })
}

// archive reads the sessions of all engines.
type archive struct{ Home }

// Holder returns the engine that a session belongs to. The header of a transcript outranks the form of its id.
func (a archive) Holder(id string) string {
	holder := engine.Holder(id)
	if holder == engine.Script || holder == engine.Native || strings.HasPrefix(holder, engine.ACP) {
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
	if strings.HasPrefix(engine.Holder(id), engine.ACP) {
		return acp.Entries(a.Dir, id)
	}
	t, err := a.findTranscript(id)
	if err != nil {
		return nil, err
	}
	return a.Load(t, nil)
}
