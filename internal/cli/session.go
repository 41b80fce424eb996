package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
	"github.com/ollim/ollim/internal/session"
)

func newSession(d *Deps) *cobra.Command {
	return group("session", "sessions", "Sessions: the main one and those of persistent routines",
		newSessionList(d), newSessionID(d), newSessionHistory(d), newSessionCompact(d), newSessionRm(d))
}

func (h house) sessions() session.Book {
	return session.Book{Home: h.home, Disk: h.disk, Zone: h.config.Zone}
}

// sessionName is a session as people name it: main or routine:ID. The routine may be given by any of its names.
type sessionName struct {
	text    string // main or routine:ID
	routine string // ID, "" for main
}

var errNoSession = errors.New("no session")

func (d *Deps) sessionName(h house, text string) (sessionName, error) {
	if text == "main" {
		return sessionName{text: text}, nil
	}
	name, found := strings.CutPrefix(text, "routine:")
	if !found {
		return sessionName{}, usage("%q is no session: write main or routine:ID", text)
	}
	shelf, err := h.jobs().Load()
	if err != nil {
		return sessionName{}, err
	}
	if j, err := shelf.Find(name); err == nil {
		name = j.ID
	}
	return sessionName{"routine:" + name, name}, nil
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

// lockKey names the lock that a writer of the session holds.
func (n sessionName) lockKey() string {
	if n.routine == "" {
		return "main"
	}
	return "routine-" + n.routine
}

type sessionRow struct {
	Session string `json:"session"`
	ID      string `json:"id"`
	Routine string `json:"name,omitempty"`
	Busy    bool   `json:"busy"`
}

func (r sessionRow) cells() []string {
	state := "idle"
	if r.Busy {
		state = "busy"
	}
	return []string{r.Session, r.ID, state, r.Routine}
}

func newSessionList(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions: name, id, idle or busy, routine",
		Args:  checked(cobra.NoArgs),
		RunE:  works(func(cmd *cobra.Command, _ []string) error { return runSessionList(cmd.Context(), d, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func runSessionList(ctx context.Context, d *Deps, asJSON bool) error {
	shelf, h, err := d.shelf()
	if err != nil {
		return err
	}
	b := h.sessions()
	if err := sweepSessions(ctx, h); err != nil {
		d.warn(err.Error())
	}
	names := []sessionName{{text: "main"}}
	routines, err := b.Routines()
	if err != nil {
		return err
	}
	for _, id := range routines {
		names = append(names, sessionName{"routine:" + id, id})
	}
	var rows []sessionRow
	for _, n := range names {
		id, err := n.id(b)
		if errors.Is(err, errNoSession) {
			continue
		}
		if err != nil {
			d.warn(n.text + ": " + err.Error())
			continue
		}
		row := sessionRow{Session: n.text, ID: id, Busy: !lock.Free(h.home.SessionLock(n.lockKey()))}
		if j, err := shelf.Find(n.routine); err == nil && n.routine != "" {
			row.Routine = j.Name()
		}
		rows = append(rows, row)
	}
	return records(d, asJSON, rows, sessionRow.cells)
}

// sweepSessions forgets the sessions of routines that are gone, or that are persistent no more. While any file cannot be
// read nothing is removed, for it may be the one: a broken line must not cost a history.
func sweepSessions(ctx context.Context, h house) error {
	ids, err := h.sessions().Routines() // before the files are read: a routine added meanwhile keeps its session
	if err != nil {
		return err
	}
	shelf, err := h.jobs().Load()
	if err != nil || len(shelf.Faults) > 0 {
		return err
	}
	held := map[string]bool{}
	for _, j := range shelf.Jobs {
		held[j.ID] = j.Mode() == job.Persistent
	}
	for _, id := range ids {
		if !held[id] {
			err = errors.Join(err, forget(ctx, h, sessionName{"routine:" + id, id}))
		}
	}
	return err
}

func newSessionID(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "id SESSION",
		Short: "Print the id of a session: main or routine:ID",
		Args:  checked(cobra.ExactArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			h, err := d.house()
			if err != nil {
				return err
			}
			n, err := d.sessionName(h, args[0])
			if err != nil {
				return err
			}
			id, err := n.id(h.sessions())
			if err != nil {
				return noSession(args[0], err)
			}
			_, err = fmt.Fprintln(d.Out, id)
			return err
		}),
	}
}

func noSession(name string, err error) error {
	if errors.Is(err, errNoSession) {
		return &withStatus{errors.New(join(name, err.Error())), statusNoJob}
	}
	return err
}

func newSessionHistory(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history [SESSION]",
		Short: "List what happened to sessions, oldest first: time, event, id, parent",
		Long:  "History lists the lifecycle events of all sessions, or of one: then also of those it came from, back to the first.",
		Args:  checked(cobra.MaximumNArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			return runSessionHistory(d, strings.Join(args, ""), asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line, as in session_history.jsonl")
	return cmd
}

func runSessionHistory(d *Deps, name string, asJSON bool) error {
	h, err := d.house()
	if err != nil {
		return err
	}
	var events []session.Event
	bad := 0
	for e, err := range h.sessions().History(&bad) {
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	if bad > 0 {
		d.warn(fmt.Sprintf("%s: %d lines cannot be read and are left out", h.home.SessionHistory(), bad))
	}
	if name != "" {
		n, err := d.sessionName(h, name)
		if err != nil {
			return err
		}
		id, err := n.id(h.sessions())
		if err != nil {
			return noSession(name, err)
		}
		events = lineage(events, id)
	}
	return records(d, asJSON, events, func(e session.Event) []string {
		return []string{e.Timestamp.In(h.config.Zone).Format("2006-01-02 15:04:05"), string(e.Event), e.SessionID, cmp.Or(e.ParentSessionID, "-")}
	})
}

// lineage keeps the events of a session and of those it came from.
func lineage(events []session.Event, id string) (kept []session.Event) {
	line := map[string]bool{id: true}
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; line[e.SessionID] {
			if e.ParentSessionID != "" {
				line[e.ParentSessionID] = true
			}
		}
	}
	for _, e := range events {
		if line[e.SessionID] {
			kept = append(kept, e)
		}
	}
	return kept
}

func newSessionRm(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "rm SESSION...",
		Short: "Forget sessions, so that the next turn begins a new one; transcripts stay",
		Args:  checked(cobra.MinimumNArgs(1)),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			h, err := d.house()
			if err != nil {
				return err
			}
			if err := d.ownerHere(); err != nil {
				return err
			}
			failed := failures{d: d, verb: "session rm"}
			for _, name := range args {
				failed.add(name, d.forgetSession(cmd.Context(), h, name))
			}
			return failed.err()
		}),
	}
}

func (d *Deps) forgetSession(ctx context.Context, h house, name string) error {
	n, err := d.sessionName(h, name)
	if err != nil {
		return err
	}
	return forget(ctx, h, n)
}

// forget removes a session's id, under its lock; the transcript stays.
func forget(ctx context.Context, h house, n sessionName) error {
	guard, err := lock.TryGuard(h.home.SessionLock(n.lockKey()))
	if err != nil {
		return err
	}
	defer guard.Release()
	id, err := n.id(h.sessions())
	if err != nil {
		return noSession("", err)
	}
	if n.routine == "" {
		err = h.sessions().ClearMain()
	} else {
		err = h.sessions().RemoveRoutine(n.routine)
	}
	if err != nil {
		return err
	}
	return h.sessions().Log(ctx, session.Event{SessionID: id, Event: session.Cleared})
}
