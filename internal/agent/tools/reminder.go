package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// reminderSchema describes every parameter. A run outside the main conversation and its branches, whose tools are its own, is
// offered only what it may set.
func reminderSchema(b *Set) json.RawMessage {
	property := func(kind, description string) map[string]any {
		return map[string]any{"type": kind, "description": description}
	}
	text := func(description string) map[string]any { return property("string", description) }
	list := func(description string) map[string]any {
		p := property("array", description)
		p["items"] = map[string]string{"type": "string"}
		return p
	}
	message := text("The task, worded as a prompt for yourself.")
	message["maxLength"] = maxBody
	chain := property("integer", "How many follow-ups follow_up_chain may set; default 0.")
	chain["minimum"] = 0
	properties := map[string]any{
		"message": message,
		"when": text("45m, 1h30m, 3 days, 17:30, tomorrow 9am, monday 9am, march 7 9am or 2026-03-07T09:00, in the zone " +
			b.World.Zone.String() + " unless an offset such as +01:00 follows."),
		"description":         text("A label for lists, on one line."),
		"background":          property("boolean", "Default true. false: the task runs in the main conversation, and its answer goes to the owner."),
		"plain":               property("boolean", "true: the message itself goes to the owner, without an agent; only description can be set beside it."),
		"isolated":            property("boolean", "true: the run begins without the history of the main conversation."),
		"allow_ping":          property("boolean", "false: the run sends the owner nothing."),
		"update_main_session": map[string]any{"enum": []job.UpdateMode{job.OnPing, job.Always, job.Freely, job.Blocked}, "description": "When the run reports to the main session. on_ping (default): after a message to the owner."},
		"model":               text("An alias or id."),
		"allowed_tools":       list("Tool patterns besides the default ones, such as Bash(git log *). The owner approves those that this run lacks."),
		"skills":              list("Skills to invoke first."),
		"max_chain":           chain,
	}
	for _, name := range (reminderCalls{b}).withheld() {
		delete(properties, name)
	}
	schema, _ := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": []string{"message", "when"},
	}) // strings and lists always have a JSON form
	return schema
}

// reminderCalls makes reminders, which have no more rights than the run that makes them.
type reminderCalls struct{ set *Set }

// withheld names the parameters of add_reminder that would be refused or change nothing. The main conversation and its branches
// share one list of tools.
func (c reminderCalls) withheld() (names []string) {
	r := c.set.Run.Record
	if r.Shared {
		return nil
	}
	names = []string{"background", "plain"}
	if !r.AllowPing {
		names = append(names, "allow_ping")
	}
	if r.Update == string(job.Blocked) {
		names = append(names, "update_main_session")
	}
	return names
}

// reminder is the input of add_reminder; nil stands for the default.
type reminder struct {
	Message      string   `json:"message"`
	When         string   `json:"when"`
	Description  string   `json:"description"`
	Background   *bool    `json:"background"`
	Plain        bool     `json:"plain"`
	Isolated     bool     `json:"isolated"`
	AllowPing    *bool    `json:"allow_ping"`
	Update       string   `json:"update_main_session"`
	Model        string   `json:"model"`
	AllowedTools []string `json:"allowed_tools"`
	Skills       []string `json:"skills"`
	MaxChain     int      `json:"max_chain"`
}

func callAddReminder(ctx context.Context, b *Set, in reminder) (string, error) {
	j, err := reminderCalls{b}.reminderOf(in)
	if err != nil {
		return "", err
	}
	files, err := b.Jobs.Load()
	if err != nil {
		return "", err
	}
	if n := len(files.Only(job.Reminder).Jobs); n >= maxWaiting {
		return "", &Refused{fmt.Sprintf("%d reminders are already waiting; cancel some first.", n)}
	}
	waits, err := reminderCalls{b}.empower(ctx, j)
	if err != nil {
		return "", err
	}
	if j, err = b.Jobs.Create(j, ""); err != nil {
		return "", err
	}
	answer := fmt.Sprintf("Reminder %s is set for %s.", j.ID, j.RunAt.Format("Mon 2006-01-02 3:04 PM MST"))
	if waits {
		answer += " It asks for more than this run may do, so it will not run until the owner approves it."
		err = reminderCalls{b}.tellWaiting(ctx, j)
	}
	return answer, err
}

// maxBody is the longest task that an agent may set itself, in characters.
const maxBody = 16000

// reminderOf returns the job that the agent asks for. Its rights to reach the owner never exceed those of the run.
func (c reminderCalls) reminderOf(in reminder) (job.Job, error) {
	j := job.New(job.Reminder)
	at, err := timeparse.Either(in.When, c.set.World.Disk.Now(), c.set.World.Zone)
	if err != nil {
		return j, fmt.Errorf("bad arguments: when: %w", err)
	}
	if utf8.RuneCountInString(in.Message) > maxBody {
		return j, fmt.Errorf("bad arguments: message is longer than %d characters", maxBody)
	}
	if j.ID, err = job.NewID(c.set.World.Random); err != nil {
		return j, err
	}
	j.RunAt, j.Body, j.Description = at, strings.Trim(plaintext.Lines(in.Message), "\n"), update.Clean(in.Description)
	j.Plain, j.Isolated, j.Model, j.MaxChain = in.Plain, in.Isolated, in.Model, in.MaxChain
	j.AllowedTools, j.Skills = in.AllowedTools, in.Skills
	if in.Background != nil {
		j.Background = *in.Background
	}
	if in.AllowPing != nil {
		j.AllowPing = *in.AllowPing
	}
	if in.Update != "" {
		j.Update = job.UpdateMode(in.Update)
	}
	if err := c.narrow(&j); err != nil {
		return j, err
	}
	text, err := job.Format(j)
	if err != nil {
		return j, fmt.Errorf("bad arguments: %w", err)
	}
	checked, err := job.Parse(job.Reminder, "reminder", text)
	if err != nil {
		return j, fmt.Errorf("bad arguments: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	checked.Path, checked.RunAt = "", at
	return checked, nil
}

// narrow keeps a reminder from what the run itself may not do.
func (c reminderCalls) narrow(j *job.Job) error {
	r := c.set.Run.Record
	if !j.Plain {
		j.Seal, j.Network = r.Seal, cmp.Or(r.Network, job.NetworkAny)
	}
	if r.Foreground {
		return nil
	}
	if !j.Background || j.Plain {
		return &Refused{"A background task adds background reminders only, which a later run of the agent reads."}
	}
	j.AllowPing = j.AllowPing && r.AllowPing
	if r.Update == string(job.Blocked) {
		j.Update = job.Blocked
	}
	return nil
}

// maxWaiting is how many reminders may wait when an agent adds one.
const maxWaiting = 200

// empower approves a reminder that asks for no more than the run has itself. waits reports that it asks for more, and so waits for the
// owner.
func (c reminderCalls) empower(ctx context.Context, j job.Job) (waits bool, err error) {
	subject, widened, err := c.set.Approvals.Of(j)
	if err != nil || !widened {
		return false, err
	}
	if !c.has(j) {
		return true, nil
	}
	err = c.set.Approvals.Approve(ctx, subject, c.set.Run.ID)
	if errors.Is(err, approval.ErrNotInherited) {
		return true, nil
	}
	return false, err
}

// tellWaiting notifies the owner of a reminder that waits for approval, by the same cause as a fire that is refused.
func (c reminderCalls) tellWaiting(ctx context.Context, j job.Job) error {
	subject, _, err := c.set.Approvals.Of(j)
	if err != nil {
		return err
	}
	_, err = c.set.Notify().Open(ctx, Waiting(j.ID, j.Label(), j.ID, subject.Widening()))
	return err
}

// Waiting returns the cause that a job or skill:NAME waits for the owner's approval. name is the argument of ollim approve.
func Waiting(id, label, name string, widening []string) notify.Cause {
	return notify.Cause{
		Kind: notify.Approval, Subject: id, Name: label, Text: prompt.Unapproved(label, name, widening),
		Jobs: []notify.Affected{{ID: id, Name: label}},
	}
}

// Notify returns the book that notifies the owner of causes.
func (b *Set) Notify() notify.Book {
	return notify.Book{Notices: b.Notices, Updates: b.Updates, Sender: b.Sender, Zone: b.World.Zone, Quiet: b.World.Quiet, Random: b.World.Random, Now: b.World.Disk.Now}
}

// has reports whether the run itself may do all that the job asks for.
func (c reminderCalls) has(j job.Job) bool {
	own := c.set.Run.Tools
	for _, pattern := range j.AllowedTools {
		if !slices.Contains(own, pattern) {
			return false
		}
	}
	for _, name := range j.Skills {
		if !slices.Contains(c.set.Run.Skills, name) || !slices.Contains(own, policy.OfSkill(name)) {
			return false
		}
	}
	return true
}

func callListReminders(_ context.Context, b *Set, _ struct{}) (string, error) {
	s, err := b.Jobs.Load()
	if err != nil {
		return "", err
	}
	jobs := s.Only(job.Reminder).Jobs
	if len(jobs) == 0 {
		return "No reminders.", nil
	}
	slices.SortStableFunc(jobs, func(a, z job.Job) int { return a.RunAt.Compare(z.RunAt) })
	var lines []string
	for _, j := range jobs {
		lines = append(lines, fmt.Sprintf("%s  %s  %s", j.ID, j.RunAt.In(b.World.Zone).Format(time.RFC3339), j.Label()))
	}
	return strings.Join(lines, "\n"), nil
}

func callCancelReminder(_ context.Context, b *Set, in struct {
	ID string `json:"id"`
}) (string, error) {
	s, err := b.Jobs.Load()
	if err != nil {
		return "", err
	}
	j, err := s.Only(job.Reminder).Find(in.ID)
	if err != nil {
		return "", err
	}
	if err := b.Jobs.Cancel(j); errors.Is(err, job.ErrFiring) {
		return "", &Refused{"It is already running."}
	} else if err != nil {
		return "", err
	}
	return "Cancelled.", nil
}

func chains(b *Set) error {
	r := b.Run.Record
	switch {
	case r.MaxChain == 0:
		return &Refused{"follow_up_chain is for reminders with max-chain only; to be reminded later use add_reminder."}
	case r.ChainDepth >= r.MaxChain:
		return &Refused{prompt.FollowUpTooLate(r.Foreground, r.AllowPing, job.UpdateMode(r.Update))}
	}
	return nil
}

// maxFollowUp is a week, in minutes.
const maxFollowUp = 7 * 24 * 60

func callFollowUp(ctx context.Context, b *Set, in struct {
	Minutes int `json:"minutes_from_now"`
}) (string, error) {
	if in.Minutes < 1 || in.Minutes > maxFollowUp {
		return "", fmt.Errorf("bad arguments: minutes_from_now must be 1 to %d", maxFollowUp)
	}
	at := b.World.Disk.Now().Add(time.Duration(in.Minutes) * time.Minute).In(b.World.Zone)
	if err := b.Run.Event(ctx, runlog.Event{Type: runlog.FollowUp, Text: at.Format(time.RFC3339)}); err != nil {
		return "", err
	}
	return "The next check is at " + at.Format("Mon 2006-01-02 3:04 PM MST") + ".", nil
}
