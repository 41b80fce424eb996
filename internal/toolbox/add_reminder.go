package toolbox

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/approval"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/prompt"
	"github.com/ollim/ollim/internal/sanitize"
	"github.com/ollim/ollim/internal/told"
	"github.com/ollim/ollim/internal/toolpolicy"
	"github.com/ollim/ollim/internal/update"
	"github.com/ollim/ollim/internal/when"
)

//go:embed add_reminder.md
var addReminderText string

func addReminder() tool {
	const text, flag, list = `{"type":"string","minLength":1}`, `{"type":"boolean"}`, `{"type":"array","items":{"type":"string"}}`
	return tool{
		name:        "add_reminder",
		description: addReminderText,
		schema: `{"type":"object","properties":{"message":` + text + `,"when":` + text + `,"description":` + text +
			`,"background":` + flag + `,"plain":` + flag + `,"isolated":` + flag + `,"allow_ping":` + flag +
			`,"update_main_session":{"enum":["on_ping","always","freely","blocked"]},"model":` + text +
			`,"allowed_tools":` + list + `,"skills":` + list + `,"max_chain":{"type":"integer","minimum":0}},` +
			`"required":["message","when"],"additionalProperties":false}`,
		may:  listed("add_reminder"),
		call: callAddReminder,
	}
}

// reminder is the input of add_reminder; what is nil is as by default.
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

func callAddReminder(ctx context.Context, b *Box, input json.RawMessage) (string, error) {
	var in reminder
	if err := decode(input, &in); err != nil {
		return "", err
	}
	j, err := b.reminderOf(in)
	if err != nil {
		return "", err
	}
	if err := b.roomForOne(); err != nil {
		return "", err
	}
	waits, err := b.empower(ctx, j)
	if err != nil {
		return "", err
	}
	if j, err = b.Jobs.Create(j, ""); err != nil {
		return "", err
	}
	answer := fmt.Sprintf("Reminder %s is set for %s.", j.ID, j.RunAt.Format("Mon 2006-01-02 3:04 PM MST"))
	if waits {
		answer += " It asks for more than this run may do, so it will not run before the owner approves it."
		err = b.tellWaiting(ctx, j)
	}
	return answer, err
}

// maxBody is the longest task that an agent may set itself, in characters.
const maxBody = 16000

// reminderOf is the job that is asked for, never with more to say to the owner than the run that asks.
func (b *Box) reminderOf(in reminder) (job.Job, error) {
	j := job.New(job.Reminder)
	at, err := when.Either(in.When, b.Disk.Now(), b.Zone)
	if err != nil {
		return j, fmt.Errorf("bad arguments: when: %w", err)
	}
	if utf8.RuneCountInString(in.Message) > maxBody {
		return j, fmt.Errorf("bad arguments: message is longer than %d characters", maxBody)
	}
	if j.ID, err = job.NewID(b.Random); err != nil {
		return j, err
	}
	j.RunAt, j.Body, j.Description = at, strings.Trim(sanitize.Lines(in.Message), "\n"), update.Clean(in.Description)
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
	if err := b.narrow(&j); err != nil {
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

// narrow keeps what a background run may not do from being done by its reminders.
func (b *Box) narrow(j *job.Job) error {
	r := b.Run.Record
	if !background(r) {
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

func (b *Box) roomForOne() error {
	s, err := b.Jobs.Load()
	if err != nil {
		return err
	}
	if n := len(s.Only(job.Reminder).Jobs); n >= maxWaiting {
		return &Refused{fmt.Sprintf("%d reminders wait already; cancel some first.", n)}
	}
	return nil
}

// empower approves what the run has itself. More than that waits for the owner, who is to be told.
func (b *Box) empower(ctx context.Context, j job.Job) (waits bool, err error) {
	subject, widened, err := b.Approvals.Of(j)
	if err != nil || !widened {
		return false, err
	}
	if !b.has(j) {
		return true, nil
	}
	err = b.Approvals.Approve(ctx, subject, b.Run.ID)
	if errors.Is(err, approval.ErrNotInherited) {
		return true, nil
	}
	return false, err
}

// tellWaiting tells the owner of a reminder that needs them, under the key under which a fire that is refused would tell it again.
func (b *Box) tellWaiting(ctx context.Context, j job.Job) error {
	subject, _, err := b.Approvals.Of(j)
	if err != nil {
		return err
	}
	if first, err := b.Told.Once(ctx, told.Refusal(j.ID, subject.Digest())); err != nil || !first {
		return err
	}
	return b.Updates.Add(ctx, prompt.Unapproved(j.Label(), j.ID, subject.Widening()), b.Run.ID)
}

// has says whether the run itself may do all that the job asks for.
func (b *Box) has(j job.Job) bool {
	own := b.Run.Tools
	for _, pattern := range j.AllowedTools {
		if !slices.Contains(own, pattern) {
			return false
		}
	}
	for _, name := range j.Skills {
		if !slices.Contains(b.Run.Skills, name) || !slices.Contains(own, toolpolicy.OfSkill(name)) {
			return false
		}
	}
	return true
}
