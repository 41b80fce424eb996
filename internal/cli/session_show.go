package cli

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/transcript"
)

func newSessionShow(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "show SESSION...",
		Short:       "Print facts about sessions, one key and value per line; for the conversation see export",
		Long: "Show prints the header of a transcript, its length in messages, bytes and tokens (as last reported by the " +
			"service) and, as lineage, the ids that it came from by branching and compaction, newest first.",
		Args: checked(cobra.MinimumNArgs(1)),
		RunE: inAnyHome(d, func(_ context.Context, h app.Home, args []string) error { return runSessionShow(d, h, args, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// sessionFacts is what is known of a session; what a transcript would say is omitted where there is none.
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
	var rows [][]string
	row := func(key, value string) {
		if value != "" {
			rows = append(rows, []string{key, value})
		}
	}
	row("session", f.Session)
	row("id", f.ID)
	row("engine", f.Engine)
	row("state", idleOr(f.Busy))
	if f.Path == "" {
		return rows
	}
	row("cwd", f.Cwd)
	row("provider", f.Provider)
	row("model", f.Model)
	row("begun", shownTime(f.Timestamp))
	row("last", shownTime(f.Last))
	row("messages", strconv.Itoa(f.Messages))
	row("size", strconv.FormatInt(f.Size, 10))
	if f.Tokens > 0 {
		row("tokens", strconv.Itoa(f.Tokens))
	}
	row("lineage", strings.Join(f.Lineage, " "))
	row("path", f.Path)
	return rows
}

func runSessionShow(d *Deps, h app.Home, names []string, asJSON bool) error {
	failed := failures{d: d, verb: "session show"}
	gap := ""
	for _, name := range names {
		facts, err := d.sessionFacts(h, name)
		switch {
		case err != nil:
		case asJSON:
			err = d.emit(facts)
		default:
			_, _ = io.WriteString(d.Out, gap)
			err = records(d, false, facts.rows(), func(row []string) []string { return row })
			gap = "\n"
		}
		failed.add(name, err)
	}
	return failed.err()
}

func (d *Deps) sessionFacts(h app.Home, name string) (sessionFacts, error) {
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
	entries, err := d.load(t)
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
	f.Lineage, err = ancestors(h, t)
	return f, err
}

// ancestors are the ids that a conversation came from, the nearest first, the last one also where its transcript is gone.
func ancestors(h app.Home, t transcript.Transcript) (ids []string, err error) {
	line, err := transcript.Lineage(h.Dir.Sessions(), t)
	seen := map[string]bool{t.ID: true}
	for _, next := range line {
		if id := next.ParentID; id != "" && !seen[id] {
			ids, seen[id] = append(ids, id), true
		}
	}
	return ids, err
}
