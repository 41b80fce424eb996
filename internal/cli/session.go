package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

func newSession(d *Deps) *cobra.Command {
	cmd := group("session", "sessions", "Sessions: the main one, those of persistent routines, and transcripts",
		newSessionList(d), newSessionShow(d), newSessionID(d), newSessionCompact(d), newSessionBranch(d), newSessionExport(d),
		newSessionHistory(d), newSessionSearch(d), newSessionRm(d))
	cmd.Long = "SESSION is main, routine:ID, the id of a transcript or the beginning of one, or the path of a transcript. Only the owner " +
		"looks at transcripts: inside a run the names alone are known."
	return cmd
}

func (h house) sessions() session.Book {
	return session.Book{Home: h.home, Disk: h.disk, Zone: h.config.Zone}
}

// inZone is a time in the configured zone; the zero time stays what it is.
func inZone(at time.Time, h house) time.Time {
	if at.IsZero() {
		return at
	}
	return at.In(h.config.Zone)
}

// shownTime is "" for a time that is not known.
func shownTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format("2006-01-02 15:04:05")
}

// sessionName is a session as people name it: main or routine:ID. The routine may be given by any of its names.
type sessionName struct {
	text    string // main or routine:ID
	routine string // ID, "" for main
}

// nameOf is the name of a routine's session, and for "" that of main.
func nameOf(routine string) sessionName {
	if routine == "" {
		return sessionName{text: "main"}
	}
	return sessionName{"routine:" + routine, routine}
}

var errNoSession = errors.New("no session")

// sessionName reads a name; found says whether it is one.
func (d *Deps) sessionName(h house, text string) (n sessionName, found bool, err error) {
	if text == "main" {
		return nameOf(""), true, nil
	}
	name, found := strings.CutPrefix(text, "routine:")
	if !found {
		return sessionName{}, false, nil
	}
	if name == "" { // and surely not main
		return sessionName{}, true, usage("%q names no routine", text)
	}
	shelf, err := h.jobs().Load()
	if err != nil {
		return sessionName{}, true, err
	}
	if j, err := shelf.Find(name); err == nil {
		name = j.ID
	}
	return nameOf(name), true, nil
}

// id is the session's id; errNoSession when there is none yet.
func (n sessionName) id(b session.Book) (string, error) {
	id, err := "", error(nil)
	if n.routine == "" {
		id, err = b.Main()
	} else {
		id, err = b.Routine(n.routine)
	}
	if err == nil && id == "" {
		err = fmt.Errorf("%w yet", errNoSession)
	}
	return id, err
}

// names are main and the routines that have, or had, a session.
func (h house) names() ([]sessionName, error) {
	names := []sessionName{nameOf("")}
	routines, err := h.sessions().Routines()
	for _, id := range routines {
		names = append(names, nameOf(id))
	}
	return names, err
}

// holders say of ids which session they are now.
func (h house) holders() (map[string]sessionName, error) {
	current, err := h.sessions().Current()
	held := map[string]sessionName{}
	for id, routine := range current {
		held[id] = nameOf(routine)
	}
	return held, err
}

// conversation is a session however it was named.
type conversation struct {
	id   string
	name sessionName           // zero where neither main nor a routine goes on with it
	file transcript.Transcript // zero where the engine keeps it in a form of its own
}

// conversation finds what somebody calls a session. Whatever is not a name is the owner's to look for.
func (d *Deps) conversation(h house, text string) (c conversation, err error) {
	n, found, err := d.sessionName(h, text)
	if err != nil {
		return c, err
	}
	if !found {
		return d.transcript(h, text)
	}
	c.name = n
	if c.id, err = n.id(h.sessions()); err != nil {
		return c, noSession(err)
	}
	c.file, err = d.findTranscript(h, c.id)
	if errors.Is(err, transcript.ErrUnknown) {
		err = nil
	}
	return c, err
}

// findTranscript finds a session that is kept here, or by the claude command.
func (d *Deps) findTranscript(h house, id string) (transcript.Transcript, error) {
	t, err := transcript.Find(h.home.Sessions(), id)
	if errors.Is(err, transcript.ErrUnknown) {
		return d.claudeArchive(h).Find(id)
	}
	return t, err
}

// claudeArchive is the sessions that the claude command keeps.
func (d *Deps) claudeArchive(h house) claudecode.Archive {
	return claudecode.Archive{Env: d.childEnv(h.config)}
}

// transcript finds a conversation by its id, the beginning of one, or its file.
func (d *Deps) transcript(h house, text string) (c conversation, err error) {
	if err := d.ownerHere(); err != nil {
		return c, err
	}
	if isPath(text) {
		c.file, err = transcript.Open(text)
	} else {
		c.file, err = transcript.FindPrefix(h.home.Sessions(), text)
		if errors.Is(err, transcript.ErrUnknown) {
			c.file, err = d.claudeArchive(h).Find(text)
		}
	}
	if err != nil {
		return c, noTranscript(text, err)
	}
	held, err := h.holders()
	c.id, c.name = c.file.ID, held[c.file.ID]
	return c, err
}

// isPath tells a file from an id, which has no slash.
func isPath(text string) bool {
	return strings.ContainsRune(text, filepath.Separator) || strings.HasSuffix(text, ".jsonl")
}

// noTranscript gives errors of a search for a transcript their status.
func noTranscript(text string, err error) error {
	switch {
	case errors.Is(err, transcript.ErrUnknown), errors.Is(err, fs.ErrNotExist):
		return hint(&withStatus{fmt.Errorf("no session %q", text), statusNoJob}, "ollim session list --all")
	case errors.Is(err, transcript.ErrAmbiguous):
		return &withStatus{err, statusUsage}
	case errors.Is(err, transcript.ErrForeign):
		return &withStatus{transcript.ErrForeign, statusData}
	}
	return err
}

// noSession gives errors of a name their status.
func noSession(err error) error {
	switch {
	case errors.Is(err, errNoSession):
		return &withStatus{err, statusNoJob}
	case errors.Is(err, session.ErrID):
		return &withStatus{err, statusUsage}
	}
	return err
}

// about says which session an error is about, where the error does not.
func about(name string, err error) error {
	if errors.Is(err, errNoSession) || errors.Is(err, transcript.ErrForeign) {
		return &withStatus{errors.New(join(name, err.Error())), statusOf(err)}
	}
	return err
}

// holder is the engine of a conversation, "" where nothing says.
func (c conversation) holder() string {
	if c.file.Path != "" {
		return engine.HolderOf(c.file.Header)
	}
	return engine.Holder(c.id)
}

// readable refuses a conversation that is not kept here.
func (c conversation) readable() error {
	if c.file.Path != "" {
		return nil
	}
	keeper := "its engine"
	if name := c.holder(); name != "" {
		keeper = "the " + name + " engine"
	}
	return &withStatus{fmt.Errorf("%s is kept by %s, there is no transcript of it here", c.id, keeper), statusNoJob}
}

// busy says whether somebody writes the conversation.
func (c conversation) busy(h house) bool {
	return c.file.Path != "" && c.file.Busy() || c.name.text != "" && !lock.Free(h.home.SessionLock(c.name.routine))
}
