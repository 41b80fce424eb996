package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/session"
)

func newSessionHistory(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "history [SESSION]",
		Short:       "List the events of sessions, oldest first: time, event, id, parent",
		Long:        "History lists the lifecycle events of all sessions, or of one and the sessions it came from.",
		Args:        checked(cobra.MaximumNArgs(1)),
		RunE: inHome(d, func(_ context.Context, h app.Home, args []string) error {
			return runSessionHistory(d, h, strings.Join(args, ""), asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, as in session_history.jsonl")
	return cmd
}

func runSessionHistory(d *Deps, h app.Home, name string, asJSON bool) error {
	var events []session.Event
	bad := 0
	for e, err := range h.Sessions().History(&bad) {
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	if bad > 0 {
		d.warn(fmt.Sprintf("%s: %d lines cannot be read and are omitted", h.Dir.SessionHistory(), bad))
	}
	if name != "" {
		c, err := h.Conversation(name)
		if err != nil {
			return about(name, err)
		}
		events = lineage(events, c.ID)
	}
	return records(d, asJSON, events, func(e session.Event) []string {
		return []string{e.Timestamp.In(h.Config.Zone).Format("2006-01-02 15:04:05"), string(e.Event), e.SessionID, cmp.Or(e.ParentSessionID, "-")}
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
