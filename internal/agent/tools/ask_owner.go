package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// Bounds of a question.
const (
	maxChoices    = 10
	maxChoice     = 80 // characters, which a button can show
	defaultExpiry = 24 * time.Hour
	minExpiry     = time.Minute
	maxExpiry     = 7 * 24 * time.Hour // as long as a session is kept
)

func asks(b *Set) error {
	switch r := b.Run; {
	case r.Foreground:
		return &Refused{"This is the main session itself: ask in your answer."}
	case !slices.Contains([]job.Kind{job.Routine, job.Reminder, job.Webhook}, job.Kind(r.Kind)):
		return &Refused{"ask_owner is for the background runs of jobs only."}
	}
	return pings(b)
}

func callAsk(ctx context.Context, b *Set, in struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
	Expires  string   `json:"expires"`
}) (string, error) {
	q, err := b.question(in.Question, in.Choices, in.Expires)
	if err != nil {
		return "", fmt.Errorf("bad arguments: %w", err)
	}
	keep := func(message string) error {
		q.Message = message
		return b.Questions.Ask(ctx, q)
	}
	said, err := mail{b}.reachWith(ctx, Asking(q), runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: q.Text}, keep)
	if err != nil {
		return "", err
	}
	if err := b.Questions.Edit(ctx, q.Run, func(q *question.Question) error { q.Sent = true; return nil }); err != nil {
		b.World.Disk.Warn(err.Error()) // it will be sent again
	}
	return fmt.Sprintf("%s End your turn now. This run continues when the owner has answered; the question expires on %s.",
		said, q.Expires.Format("Mon 2006-01-02 3:04 PM MST")), nil
}

// question checks and returns what the agent asks.
func (b *Set) question(text string, choices []string, expires string) (q question.Question, err error) {
	if text = update.Clean(text); text == "" {
		return q, errors.New("question is empty")
	}
	if len(choices) > maxChoices {
		return q, fmt.Errorf("%d choices: want at most %d", len(choices), maxChoices)
	}
	var clean []string
	for _, c := range choices {
		c = plaintext.Line(update.Clean(c))
		if c == "" || utf8.RuneCountInString(c) > maxChoice || slices.Contains(clean, c) {
			return q, fmt.Errorf("choice %q: want 1 to %d characters, each choice once", c, maxChoice)
		}
		clean = append(clean, c)
	}
	after := defaultExpiry
	if expires != "" {
		if after, err = job.ParseDuration(expires); err != nil {
			return q, fmt.Errorf("expires: %w", err)
		}
	}
	if after < minExpiry || after > maxExpiry {
		return q, fmt.Errorf("expires: want %s to %s", job.FormatDuration(minExpiry), job.FormatDuration(maxExpiry))
	}
	now, r := b.World.Disk.Now().In(b.World.Zone), b.Run.Record
	q = question.Question{Run: r.ID, Job: r.Job, Name: r.Name, Text: text, Choices: clean, Asked: now, Expires: now.Add(after)}
	if r.Deadline != nil {
		q.Left = max(r.Deadline.Sub(now), minExpiry)
	}
	return q, nil
}

// Asking returns the message that asks a question, with a button for each choice.
func Asking(q question.Question) outbox.Message {
	m := outbox.Message{Text: prompt.Question(q), Brief: prompt.QuestionInChat(q)}
	for i, c := range q.Choices {
		m.Buttons = append(m.Buttons, outbox.Button{Label: c, ID: outbox.ButtonID(outbox.ButtonAnswer, q.Run, strconv.Itoa(i+1))})
	}
	return m
}
