package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// interview asks for settings.
type interview struct {
	d *deps
	*asker
}

// value asks for a value that no flag gives. An empty line is the standard answer; what check refuses is asked again. The error is of
// an input that ends without an answer or with a wrong one, or is interrupted.
func (a interview) value(ctx context.Context, value *string, text, standard string, check func(answer string) error) error {
	for refused := error(nil); *value == ""; {
		line, readErr := a.ask(ctx, a.d.Stderr, fmt.Sprintf("%s [%s]: ", text, standard))
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return readErr
		}
		if readErr != nil && line == "" {
			_, _ = fmt.Fprintln(a.d.Stderr)
			return usage("%s: the input has ended, and nothing was created", strings.ToLower(text))
		}
		answer := cmp.Or(strings.TrimSpace(line), standard)
		if refused == nil || readErr == nil {
			refused = check(answer)
		}
		switch {
		case refused == nil:
			*value = answer
		case readErr != nil:
			return usage("%s: %v", strings.ToLower(text), refused)
		default:
			_, _ = fmt.Fprintf(a.d.Stderr, "%s\n", printable(refused.Error()))
		}
	}
	return nil
}

// ask fills in what no flag says.
func (o *initOptions) ask(ctx context.Context, d *deps) error {
	a := interview{d, newAsker(d.In)}
	zone := func(answer string) error { return config.Check("timezone", answer) }
	if err := a.value(ctx, &o.timezone, "Timezone", d.SystemZone(), zone); err != nil {
		return err
	}
	if err := o.askEngine(ctx, a); err != nil {
		return err
	}
	delivery := func(answer string) error {
		err := (&initOptions{timezone: o.timezone, delivery: answer, testDelivery: true}).tryDelivery(ctx, d)
		if err != nil {
			return fmt.Errorf("the test message was not sent: %w", err)
		}
		return nil
	}
	if err := a.value(ctx, &o.delivery, "Shell command that sends you a message (text on its standard input; a test is sent)", noAnswer, delivery); err != nil {
		return err
	}
	return a.value(ctx, &o.schedule, "Install the schedule: crontab, systemd or none", noAnswer, checkSchedule)
}

func (o *initOptions) askEngine(ctx context.Context, a interview) error {
	if o.engine != "" {
		return nil
	}
	standard, claude := noAnswer, "not found: npm install -g @anthropic-ai/claude-code"
	if command := a.d.findClaude(); command != "" {
		standard, claude = engine.ClaudeCode, command
	}
	_, _ = fmt.Fprintf(a.d.Stderr, "Engines:\n"+
		"  claude-code  the claude command (%s); the account that it is logged in to pays, or that of a key\n"+
		"  native       built in; the account of the key engine.ANTHROPIC_API_KEY=… in %s pays\n"+
		"  script:FILE  plays a YAML file, for tests; costs nothing\n"+
		"  none         decide later: ollim config set engine\n", claude, a.d.SecretsFile())
	err := a.value(ctx, &o.engine, "Engine", standard, func(answer string) error {
		switch {
		case answer == noAnswer:
			return nil
		case answer == engine.ClaudeCode && a.d.findClaude() == "":
			return errors.New("the claude command is not found")
		}
		return config.CheckEngine(answer)
	})
	if err != nil || o.engine == noAnswer || o.testEngine {
		return err
	}
	var test string
	err = a.value(ctx, &test, "Ask it a test question, which may cost a cent", "no", func(answer string) error {
		if answer != "yes" && answer != "y" && answer != "no" && answer != "n" {
			return errors.New("write yes or no")
		}
		return nil
	})
	o.testEngine = strings.HasPrefix(test, "y")
	return err
}

func checkSchedule(answer string) error {
	switch answer {
	case "", noAnswer, forCrontab, forSystemd:
		return nil
	}
	return fmt.Errorf("%q: write %s, %s or %s", answer, forCrontab, forSystemd, noAnswer)
}

// tryDelivery sends a test message by the command, once: a command that fails is not tried again later.
func (o *initOptions) tryDelivery(ctx context.Context, d *deps) error {
	if o.delivery == noAnswer {
		return nil
	}
	h, err := d.NewHome()
	if err == nil {
		err = store.MkdirAll(string(h.Dir)) // where the command runs
	}
	if err != nil {
		return err
	}
	id, err := runlog.NewID(d.Now(), d.Random)
	if err != nil {
		return err
	}
	post := h.Post()
	if o.delivery != "" {
		post.Command = []string{"sh", "-c", o.delivery}
	}
	if len(post.Command) == 0 {
		return usage("no command is configured")
	}
	return post.Try(ctx, outbox.Message{ID: session.MessageID(id, 1), Label: "ollim", Kind: outbox.Ping, Created: d.Now(), Text: "This is a test message of ollim init."})
}

// prove asks the engine a question and installs the schedule, if that is wanted. The settings exist.
func (o *initOptions) prove(ctx context.Context, d *deps) (err error) {
	f := failures{d: d, verb: "init"}
	if o.testEngine {
		question := askOptions{text: "This is a test. Answer with one short sentence.", noInput: true, noSession: true, format: "text", input: "text"}
		f.add("the test question", runAsk(ctx, d, question))
	}
	if o.schedule != "" && o.schedule != noAnswer {
		f.add("schedule install "+o.schedule, runScheduleInstall(ctx, d, unitOptions{target: o.schedule}))
	}
	return f.err()
}
