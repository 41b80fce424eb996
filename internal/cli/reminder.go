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
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

// listReminders is the tool whose rules apply if a program of a run uses `reminder list` without a pattern.
const listReminders = "list_reminders"

func newReminder(d *deps) *cobra.Command {
	return group("reminder", "Manage reminders: jobs that run once",
		newList(d, agentOwn(listReminders), "list", "List reminders by time: id, time, state, description",
			"ID TIME STATE DESCRIPTION", d.reminders, func(r reminderRow) []any { return []any{r.ID, due(r.At), state(r.State), brief(r.Description)} }),
		newJobShow(d, job.Reminder), newReminderAdd(d),
		command(agentOwn("cancel_reminder"), "cancel REMINDER...", "Delete pending reminders",
			inHome(d, func(ctx context.Context, h app.Home, args []string) error {
				s, err := h.Jobs.Load() // no warnings, as for rm
				if err != nil {
					return err
				}
				return d.each("reminder cancel", args, func(name string) error {
					if d.inside() {
						_, err := d.useTool(ctx, h, "cancel_reminder", map[string]any{"id": name})
						return err
					}
					return removeJob(ctx, d, h, s, job.Reminder, name)
				})
			})),
		command(agentOwn("follow_up_chain"), "follow-up DELAY", "Run a chained reminder again after DELAY, such as 30m; only inside its run",
			inHome(d, func(ctx context.Context, h app.Home, args []string) error {
				if !d.inside() {
					return hint(fmt.Errorf("%w: not inside a run", app.ErrNotAllowed), "ollim reminder add --in %s", args[0])
				}
				delay, err := timeparse.Delay(args[0])
				if err != nil {
					return usage("%v", err)
				}
				return d.answer(d.useTool(ctx, h, "follow_up_chain", map[string]any{"minutes_from_now": int(delay / time.Minute)}))
			})),
	)
}

func newRemind(d *deps) *cobra.Command {
	return command(agentOwn("add_reminder"), "remind WHEN TEXT...|-", "Set a plain reminder: text that is delivered without an agent; prints its id and time",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runRemind(ctx, d, h, args[0], args[1:])
		}))
}

func runRemind(ctx context.Context, d *deps, h app.Home, at string, words []string) error {
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
		return d.answer(d.useTool(ctx, h, "add_reminder", map[string]any{"message": text, "when": at, "plain": true}))
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

type reminderRow struct {
	ID          string    `json:"id"`
	At          time.Time `json:"at"`
	State       string    `json:"state"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Path        string    `json:"path"`
}

func (d *deps) reminders(context.Context) (rows []reminderRow, err error) {
	if err := d.mayUse(listReminders); err != nil {
		return nil, err
	}
	s, h, err := d.jobSet()
	if err != nil {
		return nil, err
	}
	jobs := s.Only(job.Reminder).Jobs
	slices.SortStableFunc(jobs, func(a, b job.Job) int { return a.RunAt.Compare(b.RunAt) })
	for _, j := range jobs {
		state, err := reminderState(h, j)
		if err != nil {
			return nil, err
		}
		begins, _, _ := strings.Cut(j.Body, "\n")
		rows = append(rows, reminderRow{j.ID, j.RunAt.In(h.Config.Zone), state, j.Name(), cmp.Or(j.Description, begins), j.Path})
	}
	return rows, nil
}

func reminderState(h app.Home, j job.Job) (string, error) {
	waiting, err := h.Approvals.Waits(j)
	switch {
	case err != nil:
		return "", err
	case j.Attempt() != job.Waiting && !lock.Free(h.Dir.JobLock(j.ID)):
		return "running", nil
	case j.Attempt() != job.Waiting:
		return "again", nil
	case waiting:
		return "unapproved", nil
	case !j.Enabled:
		return "off", nil
	case j.Plain:
		return "plain", nil
	}
	return "set", nil
}

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
		return usage("want one time: give either --in or --at")
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
	j, err := o.fields.job(d, s, "", o.body, yamldoc.Pair{Key: "run-at", Value: at.Format(time.RFC3339)})
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

// setReminder writes a reminder of the owner's, and prints its id and its time.
func (d *deps) setReminder(ctx context.Context, h app.Home, j job.Job, at time.Time) error {
	j, err := h.Jobs.Create(j, "")
	if err != nil {
		return err
	}
	if err := d.approveOwn(ctx, h, j); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%s\t%s\n", j.ID, at.In(h.Config.Zone).Format(time.RFC3339))
	d.noteStalled(ctx, h)
	return d.created(h, j, err)
}

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
