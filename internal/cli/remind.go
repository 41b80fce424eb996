package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/state/job"
)

func newRemind(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentOwn("add_reminder"),
		Use:         "remind WHEN TEXT...|-",
		Short:       "Set a plain reminder: text that is delivered without an agent; prints its id and time",
		Long: "Remind delivers TEXT as it is at the given time: no model, no cost, no ping budget. WHEN is one word or " +
			"quoted: a delay such as 45m, or a time such as \"tomorrow 9am\". ollim tick, which must run every minute, " +
			"delivers it. For a task that an agent should do at that time, see ollim reminder add.",
		Example: "  ollim remind 45m take the pizza out\n  ollim remind \"tomorrow 9am\" call Ada",
		Args:    checked(cobra.MinimumNArgs(2)),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			return runRemind(cmd.Context(), d, args[0], args[1:])
		}),
	}
}

func runRemind(ctx context.Context, d *Deps, at string, words []string) error {
	h, err := d.Home()
	if err != nil {
		return err
	}
	text, err := wordsOrInput(d, words)
	if err != nil {
		return err
	}
	due, err := timeparse.Either(at, d.Now(), h.Config.Zone)
	if err != nil {
		return usage("%v", err)
	}
	if longer := at + " " + words[0]; len(words) > 1 {
		if _, err := timeparse.Either(longer, d.Now(), h.Config.Zone); err == nil {
			return hint(usage("%q or %q?", at, longer), "quote the time, or the text")
		}
	}
	if d.inside() {
		said, err := d.useTool(ctx, h, "add_reminder", map[string]any{"message": text, "when": at, "plain": true})
		if err == nil {
			_, err = fmt.Fprintln(d.Out, said)
		}
		return err
	}
	j := job.New(job.Reminder)
	if j.ID, err = job.NewID(d.Random); err != nil {
		return err
	}
	j.Plain, j.RunAt, j.Body = true, due.Truncate(time.Second), strings.Trim(text, "\n")
	file, err := job.Format(j)
	if err != nil {
		return &withStatus{err, statusData}
	}
	if _, err := job.Parse(job.Reminder, "text", file); err != nil {
		return asFlags(err)
	}
	return d.setReminder(ctx, h, j, j.RunAt)
}
