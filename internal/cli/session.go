package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

func newSession(d *deps) *cobra.Command {
	return group("session", "Manage sessions and transcripts",
		newSessionList(d),
		withJSON(d, command(agentNever(refused), "show SESSION...", "Print facts about sessions, one key and value per line; for the conversation see export",
			inAnyHome(d, func(_ context.Context, h app.Home, args []string) error { return runSessionShow(d, h, args) })), jsonLines),
		command(agentAll(), "id SESSION", "Print the full id of a session",
			inHome(d, func(_ context.Context, h app.Home, args []string) error {
				if n, found := d.channelNamed(h, args[0]); found {
					return d.answer(n.ID(), nil)
				}
				c, err := h.Conversation(args[0])
				return d.answer(c.ID, about(args[0], err))
			})), newSessionCompact(d), newSessionBranch(d), newSessionExport(d),
		withJSON(d, command(agentAll(), "history [SESSION]", "List the events of sessions, oldest first: time, event, id, parent",
			inHome(d, func(_ context.Context, h app.Home, args []string) error {
				return runSessionHistory(d, h, strings.Join(args, ""))
			})), jsonLines+", as in session_history.jsonl"), newSessionSearch(d), newSessionClear(d), newSessionRm(d))
}

// inZone returns a time in the configured zone; the zero time stays zero.
func inZone(at time.Time, h app.Home) time.Time {
	if at.IsZero() {
		return at
	}
	return at.In(h.Config.Zone)
}

func shownTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format("2006-01-02 15:04:05")
}

// about adds the name of the session to an error that does not name it.
func about(name string, err error) error {
	if errors.Is(err, app.ErrNoSession) || errors.Is(err, transcript.ErrForeign) {
		return &withStatus{errors.New(join(name, err.Error())), statusOf(err)}
	}
	return err
}

// readable returns an error if ollim has no transcript of a conversation.
func readable(c app.Conversation) error {
	if c.File.Path != "" {
		return nil
	}
	keeper := "its engine"
	if name := c.Holder(); name != "" {
		keeper = "the " + name + " engine"
	}
	return &withStatus{fmt.Errorf("%s is stored by %s; there is no transcript of it here", c.ID, keeper), statusNoJob}
}

func runSessionHistory(d *deps, h app.Home, name string) error {
	var events []session.Event
	bad := 0
	for e, err := range h.Sessions.History(&bad) {
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	d.warnOmitted(h.Dir.SessionHistory(), bad, "line")
	if name != "" {
		c, err := h.Conversation(name)
		if err != nil {
			return about(name, err)
		}
		events = lineage(events, c.ID)
	}
	return records(d, "TIME EVENT ID PARENT", events, func(e session.Event) []any {
		return []any{past(e.Timestamp.In(h.Config.Zone)), string(e.Event), e.SessionID, cmp.Or(e.ParentSessionID, "-")}
	})
}

func lineage(events []session.Event, id string) []session.Event {
	line := map[string]bool{id: true}
	for _, e := range slices.Backward(events) {
		if line[e.SessionID] && e.ParentSessionID != "" {
			line[e.ParentSessionID] = true
		}
	}
	return slices.DeleteFunc(events, func(e session.Event) bool { return !line[e.SessionID] })
}

// sessionFacts is what is known of a session. Without a transcript the fields that it would fill are omitted.
type sessionFacts struct {
	Session   string    `json:"session,omitempty"` // main or routine:ID
	ID        string    `json:"id"`
	Engine    string    `json:"engine,omitempty"`
	Busy      bool      `json:"busy"`
	Path      string    `json:"path,omitempty"`
	Cwd       string    `json:"cwd,omitempty"`
	Provider  string    `json:"provider,omitempty"`
	Model     string    `json:"model,omitempty"`
	Timestamp time.Time `json:"timestamp,omitzero"`
	Last      time.Time `json:"last,omitzero"` // message
	Messages  int       `json:"messages"`
	Size      int64     `json:"size"` // bytes
	Tokens    int       `json:"tokens,omitempty"`
	Lineage   []string  `json:"lineage,omitempty"`
}

func (f sessionFacts) rows() [][]string {
	rows := [][]string{{"session", f.Session}, {"id", f.ID}, {"engine", f.Engine}, {"state", idleOr(f.Busy)}}
	if f.Path != "" {
		rows = append(rows, [][]string{
			{"cwd", f.Cwd}, {"provider", f.Provider}, {"model", f.Model},
			{"begun", shownTime(f.Timestamp)}, {"last", shownTime(f.Last)},
			{"messages", strconv.Itoa(f.Messages)}, {"size", strconv.FormatInt(f.Size, 10)}, {"tokens", figure(f.Tokens).String()},
			{"lineage", strings.Join(f.Lineage, " ")}, {"path", f.Path},
		}...)
	}
	return rows
}

func runSessionShow(d *deps, h app.Home, names []string) error {
	d.pager.Page()
	gap := ""
	return d.each("session show", names, func(name string) error {
		facts, err := d.sessionFacts(h, name)
		switch {
		case err != nil:
		case d.json:
			err = d.emit(facts)
		default:
			_, _ = io.WriteString(d.Out, gap)
			err = d.facts(facts.rows()...)
			gap = "\n"
		}
		return err
	})
}

func (d *deps) sessionFacts(h app.Home, name string) (sessionFacts, error) {
	if n, found := d.channelNamed(h, name); found {
		return channelFacts(h, n)
	}
	c, err := h.Conversation(name)
	if err != nil {
		return sessionFacts{}, err
	}
	f := sessionFacts{Session: c.Name.Text, ID: c.ID, Engine: c.Holder(), Busy: c.Busy(h)}
	if c.File.Path == "" {
		return f, nil
	}
	t := c.File
	f.Path, f.Cwd, f.Provider, f.Model, f.Timestamp = t.Path, t.Cwd, t.Provider, t.Model, inZone(t.Timestamp, h)
	entries, err := d.load(h, t)
	if err != nil {
		return f, err
	}
	f.Messages = len(entries)
	for _, e := range entries {
		if !e.At.IsZero() {
			f.Last = inZone(e.At, h)
		}
		if e.Tokens > 0 {
			f.Tokens = e.Tokens
		}
	}
	info, err := os.Stat(t.Path)
	if err != nil {
		return f, err
	}
	f.Size = info.Size()
	line, err := h.Transcripts().Lineage(t)
	seen := map[string]bool{t.ID: true}
	for _, next := range line { // the nearest first; the transcript of the last one may be gone
		if id := next.ParentID; id != "" && !seen[id] {
			f.Lineage, seen[id] = append(f.Lineage, id), true
		}
	}
	return f, err
}
