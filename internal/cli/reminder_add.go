package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

type reminderAddOptions struct {
	in, at string
	body   string
	fields jobFlags
}

func newReminderAdd(d *deps) *cobra.Command {
	var o reminderAddOptions
	cmd := command(agentOwn("add_reminder"), "add (--in DELAY | --at TIME) BODY...|-", "Add a reminder for the agent; prints its id and time",
		func(cmd *cobra.Command, args []string) error {
			o.body = strings.Join(args, " ")
			return runReminderAdd(cmd.Context(), d, o)
		})
	cmd.Args = cobra.MinimumNArgs(1)
	f := cmd.Flags()
	f.StringVar(&o.in, "in", "", "delay from now")
	f.StringVar(&o.at, "at", "", "time, in the configured zone")
	o.fields.flags(f, job.Reminder, "run-at", "chain-depth", "chain-parent")
	return cmd
}

func runReminderAdd(ctx context.Context, d *deps, o reminderAddOptions) error {
	if (o.in == "") == (o.at == "") {
		return usage("no time: give either --in or --at")
	}
	s, h, err := d.jobSet()
	if err != nil {
		return err
	}
	if o.body, err = wordsOrInput(d, []string{o.body}); err != nil {
		return err
	}
	at, err := o.time(d.Now(), h.Config.Zone)
	if err != nil {
		return err
	}
	if d.inside() {
		return d.addReminderInside(ctx, h, o)
	}
	j, err := o.fields.job(d, s, o.body, yamldoc.Pair{Key: "run-at", Value: at.Format(time.RFC3339)})
	if err != nil {
		return err
	}
	return d.setReminder(ctx, h, j, at)
}

func (o *reminderAddOptions) time(now time.Time, zone *time.Location) (time.Time, error) {
	if o.at != "" {
		at, err := timeparse.Parse(o.at, now, zone)
		if err != nil {
			return at, usage("--at %v", err)
		}
		return at, nil
	}
	delay, err := timeparse.Delay(o.in)
	if err != nil {
		return now, usage("--in %v", err)
	}
	return now.Add(delay).In(zone), nil
}

// setReminder writes a reminder of the owner's, and says what came of the time that was asked for.
func (d *deps) setReminder(ctx context.Context, h app.Home, j job.Job, at time.Time) error {
	j, err := h.Jobs.Create(j, "")
	if err != nil {
		return err
	}
	if err := d.approveOwn(ctx, h, j); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%s\t%s\n", j.ID, at.In(h.Config.Zone).Format(time.RFC3339))
	return err
}

// addReminderInside is add typed by an agent.
func (d *deps) addReminderInside(ctx context.Context, h app.Home, o reminderAddOptions) error {
	f := o.fields
	own := []string{
		"description", "background", "plain", "isolated", "allow_ping", "update_main_session", "model", "allowed_tools", "skills", "max_chain",
	}
	input := map[string]any{"message": o.body, "when": cmp.Or(o.in, o.at)}
	for _, field := range job.Fields(job.Reminder) {
		key := strings.ReplaceAll(field.Key, "-", "_")
		switch {
		case !f.set(field.Key):
		case !slices.Contains(own, key):
			return usage("--%s: not inside a run", field.Key)
		default:
			input[key] = f.values[field.Key]()
		}
	}
	return d.answer(d.useTool(ctx, h, "add_reminder", input))
}
