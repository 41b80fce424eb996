package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/transcript"
)

func newSession(d *Deps) *cobra.Command {
	cmd := group("session", "sessions", "Manage sessions and transcripts",
		newSessionList(d), newSessionShow(d), newSessionID(d), newSessionCompact(d), newSessionBranch(d), newSessionExport(d),
		newSessionHistory(d), newSessionSearch(d), newSessionRm(d))
	cmd.Long = "SESSION is main, routine:ID, a transcript's id or its beginning, or the path of a transcript. Transcripts " +
		"are for the owner only: inside a run only the names are known."
	return cmd
}

// inZone is a time in the configured zone; the zero time stays what it is.
func inZone(at time.Time, h app.Home) time.Time {
	if at.IsZero() {
		return at
	}
	return at.In(h.Config.Zone)
}

// shownTime is "" for a time that is not known.
func shownTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format("2006-01-02 15:04:05")
}

// about says which session an error is about, where the error does not.
func about(name string, err error) error {
	if errors.Is(err, app.ErrNoSession) || errors.Is(err, transcript.ErrForeign) {
		return &withStatus{errors.New(join(name, err.Error())), statusOf(err)}
	}
	return err
}

// readable refuses a conversation that is not kept here.
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
