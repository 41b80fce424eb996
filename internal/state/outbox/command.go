package outbox

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
)

const (
	defaultTimeout = 30 * time.Second
	maxGrace       = 5 * time.Second // between SIGTERM and SIGKILL
	refusal        = 77              // EX_NOPERM of sysexits.h
	maxValue       = 4 << 10         // bytes of one variable: beyond 128 KiB the kernel would not start the command at all
)

// simple is a carrier that delivers a message in one part.
type simple struct {
	name string
	send func(context.Context, Message) (Fate, error)
}

func (s simple) Name() string { return s.name }

func (s simple) Carry(ctx context.Context, m Message, _ []string, _ func(string)) (Fate, error) {
	return s.send(ctx, m)
}

// command is the carrier of the delivery command.
type command struct{ Post }

func (command) Name() string { return byCommand }

// Carry gives a message to the command, unless that has printed the id of its message before.
func (c command) Carry(ctx context.Context, m Message, done []string, delivered func(string)) (Fate, error) {
	if len(done) > 0 {
		return Sent, nil
	}
	fate, id, err := c.run(ctx, m)
	if fate == Sent && id != "" {
		delivered(id)
	}
	return fate, err
}

// run gives a message to the command. id is that of its message, if it has printed one.
func (p Post) run(ctx context.Context, m Message) (fate Fate, id string, err error) {
	call := process.Call{
		Argv: p.Command, Env: p.environment(m), Dir: p.Home.Path(),
		Stdin: []byte(body(m)), Grace: min(maxGrace, cmp.Or(p.Timeout, defaultTimeout)),
	}
	if p.JSON {
		call.Stdin, call.Limit = jsonLine(m), maxAnswer
	}
	r, err := process.Run(ctx, call)
	switch {
	case err != nil:
		return Queued, "", errors.New(oneLine(err.Error() + ": " + r.Stderr))
	case r.Status == 0:
		return Sent, p.printed(m, r.Out), nil
	case r.Status == refusal:
		return Refused, "", errors.New(oneLine(r.End + ": " + r.Stderr))
	}
	return Queued, "", errors.New(oneLine(r.End + ": " + r.Stderr))
}

// Try runs the command with a message, once and without the outbox: a message that is not delivered is not kept.
func (p Post) Try(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.Timeout, defaultTimeout))
	defer cancel()
	_, _, err := p.run(ctx, m)
	return err
}

// body returns the text with exactly one newline at its end.
func body(m Message) string { return strings.TrimRight(m.Text, "\n") + "\n" }

func (p Post) environment(m Message) []string {
	env := make([]string, 0, len(p.Env)+7)
	for _, kv := range p.Env {
		if !strings.HasPrefix(kv, "OLLIM_RUN=") && !strings.HasPrefix(kv, "OLLIM_FILE=") {
			env = append(env, kv)
		}
	}
	critical := "0"
	if m.Critical {
		critical = "1"
	}
	if m.File != "" {
		env = append(env, "OLLIM_FILE="+m.File)
	}
	return append(env, // of two with the same name the last counts
		"OLLIM_MESSAGE_ID="+m.ID,
		"OLLIM_MESSAGE_RUN="+value(m.Run),
		"OLLIM_JOB="+value(m.Job),
		"OLLIM_LABEL="+value(m.Label),
		"OLLIM_KIND="+value(string(m.Kind)),
		"OLLIM_CRITICAL="+critical,
	)
}

// value makes s fit for a variable that scripts read line by line.
func value(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
	return strings.ToValidUTF8(s[:min(len(s), maxValue)], "")
}

// oneLine makes the output of a program fit one line of a listing: no cut character at its start, no trailing colon.
func oneLine(s string) string {
	return strings.TrimSuffix(plaintext.Line(strings.ToValidUTF8(s, "")), ":")
}
