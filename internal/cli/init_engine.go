package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/runlog"
)

func (s *setup) askZone(ctx context.Context, a *interview) (err error) {
	s.o.timezone, err = a.value(ctx, "Timezone", s.d.SystemZone(), func(answer string) error { return config.Check("timezone", answer) })
	return err
}

func (s *setup) engineGiven() bool { return s.o.engine != "" || s.o.service != serviceOptions{} }

func (s *setup) engineMissing(context.Context) (bool, error) {
	c, err := s.d.Config()
	return c.Engine == "", err
}

func (s *setup) askEngine(ctx context.Context, a *interview) (err error) {
	standard, claude := engine.Native, "not found: npm install -g @anthropic-ai/claude-code"
	if a.yes {
		standard = noAnswer // there may be no key, and no question asks for one
	}
	if command := s.d.findClaude(); command != "" {
		standard, claude = engine.ClaudeCode, command
	} else if value, _ := s.d.Lookup("ANTHROPIC_API_KEY"); value != "" {
		standard = engine.Native
	}
	a.say("Engines:\n"+
		"  claude-code  runs the claude command; its login or a key pays (%s)\n"+
		"  native       built in; calls a service that has Anthropic's or OpenAI's API: a key pays, or it is a server of your own that needs no key\n"+
		"  script:FILE  plays a YAML file, for tests; costs nothing\n"+
		"  none         decide later", claude)
	s.o.engine, err = a.value(ctx, "Engine", standard, func(answer string) error {
		switch {
		case answer == noAnswer:
			return nil
		case answer == engine.ClaudeCode && s.d.findClaude() == "":
			return errors.New("the claude command was not found: npm install -g @anthropic-ai/claude-code")
		}
		if err := config.CheckEngine(answer); err != nil {
			return fmt.Errorf("%w, or %s", err, noAnswer)
		}
		return nil
	})
	if err == nil && s.o.engine == engine.Native {
		err = s.askService(ctx, a)
	}
	return err
}

// askService asks which service the native engine uses.
func (s *setup) askService(ctx context.Context, a *interview) error {
	o := &s.o.service
	own, _ := s.d.Lookup("ANTHROPIC_BASE_URL") // the key of the environment belongs to this service
	answer, err := a.value(ctx, "Service: anthropic, openai or an address", cmp.Or(own, config.Anthropic), func(answer string) error {
		if answer == config.Anthropic || answer == config.OpenAI {
			return nil
		}
		return config.CheckURL(answer)
	})
	if o.provider = answer; err == nil && strings.Contains(answer, "://") {
		o.url = answer
		speaks := config.OpenAI
		if answer == own {
			speaks = config.Anthropic
		}
		o.provider, err = a.value(ctx, "API that it speaks: anthropic or openai", speaks,
			func(answer string) error { return config.Check("native.provider", answer) })
	}
	if err == nil && answer != config.Anthropic {
		standard := ""
		if o.provider == config.Anthropic {
			standard = "sonnet"
		}
		o.model, err = a.value(ctx, "Model, as the service names it", standard, func(answer string) error { return config.Check("native.model", answer) })
	}
	return err
}

// setEngine selects the engine in a directory that was there before.
func (s *setup) setEngine(ctx context.Context) error {
	name := cmp.Or(s.o.engine, engine.Native)
	settings := s.o.service.settings()
	if name == noAnswer || name == "auto" {
		return nil
	}
	if command := s.d.findClaude(); name == engine.ClaudeCode && command != "" && !s.fresh {
		settings["claude-code.command"] = command
		h, err := s.d.Home()
		if err == nil && len(h.Config.Env) == 0 {
			err = h.Set(ctx, "env", s.d.captured()...)
		}
		if err != nil {
			return err
		}
	}
	if !s.fresh {
		h, err := s.d.Home()
		if err == nil {
			err = s.d.announceCarry(ctx, h, name, s.asks == nil || s.asks.yes)
		}
		if err != nil {
			return err
		}
	}
	if err := s.change(ctx, settings); err != nil {
		return err
	}
	return s.change(ctx, map[string]string{"engine": name}) // last: its service is set by then
}

func (s *setup) keyGiven() bool { return s.o.key != keySource{} }

func (s *setup) keyMissing(ctx context.Context) (bool, error) {
	_, missing, err := s.h.EngineKey(ctx)
	return missing, err
}

// askKey asks for the key: of the environment with consent, hidden, or of a command.
func (s *setup) askKey(ctx context.Context, a *interview) error {
	name, _, err := s.h.EngineKey(ctx)
	if err != nil {
		return err
	}
	if s.h.Config.Engine == engine.ClaudeCode {
		a.say("The claude command is not logged in. Run `claude auth login` in another terminal and leave the key empty, or give a key.")
	}
	if value, _ := s.d.Lookup(name); value != "" && s.secret == "" {
		a.say("%s is set in this environment, but automatic runs do not get this environment.", name)
		if yes, err := a.sure(ctx, "Copy it into secrets.env", true); err != nil || yes {
			s.secret = value
			return err
		}
	}
	s.secret, err = a.hidden(ctx, name+", not shown; Enter to name a command")
	if err != nil || s.secret != "" {
		return err
	}
	_, err = a.value(ctx, "Command that prints the key, such as op read op://Private/KEY or pass show KEY", noAnswer, func(answer string) error {
		if answer == noAnswer {
			return nil
		}
		if !strings.ContainsAny(answer, " /") && len(answer) > 20 {
			return errors.New("this looks like a key and not like a command: it was not stored, but it is on your screen")
		}
		s.secret, err = s.d.printed(ctx, answer)
		return err
	})
	if err == nil && s.secret != "" {
		a.say("The output is stored: automatic runs cannot unlock a vault, so the command is not run again.")
	}
	return err
}

// printed runs a command of the owner's shell, which may ask on the terminal, and returns the first line that it prints.
func (d *deps) printed(ctx context.Context, script string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr = &out, d.Stderr
	if f, ok := d.In.(*os.File); ok { // another input would be read to its end
		cmd.Stdin = f
	}
	if err := cmd.Run(); err != nil {
		return "", &withStatus{fmt.Errorf("the command that prints the key: %w", err), statusUnavailable}
	}
	line, err := firstLine(&out)
	if err == nil && line == "" {
		err = &withStatus{errors.New("the command that prints the key printed nothing"), statusUnavailable}
	}
	return line, err
}

// readKey reads the key from where a flag says.
func (s *setup) readKey(ctx context.Context) (err error) {
	switch k := s.o.key; {
	case k.stdin:
		s.secret, err = firstLine(s.d.In)
	case k.variable != "":
		s.secret, _ = s.d.Lookup(k.variable)
	case k.script != "":
		s.secret, err = s.d.printed(ctx, k.script)
	}
	if err == nil && s.secret == "" && s.keyGiven() {
		err = usage("--key-env, --key-stdin or --key-command: the key is empty")
	}
	return err
}

// setKey stores the key as a secret.
func (s *setup) setKey(ctx context.Context) error {
	name, _, err := s.h.EngineKey(ctx)
	if err == nil && name == "" {
		err = usage("the engine %s needs no key", cmp.Or(s.h.Config.Engine, noAnswer))
	}
	if err == nil && s.secret == "" {
		err = s.readKey(ctx)
	}
	if err != nil {
		return err
	}
	name = "engine." + name
	if given := "engine." + s.o.key.variable; s.h.Config.Engine == engine.ClaudeCode && slices.Contains(config.KnownSecrets(), given) {
		name = given // such as CLAUDE_CODE_OAUTH_TOKEN
	}
	if s.secret == "" {
		s.d.note("no key was stored; to store it later: ollim secret set %s", name)
		return nil
	}
	if err := s.d.SetSecret(ctx, name, s.secret); err != nil {
		return err
	}
	s.d.note("stored %s in %s", name, s.d.SecretsFile())
	return s.refresh()
}

func (s *setup) questionGiven() bool { return s.o.testEngine }

func (s *setup) questionMissing(ctx context.Context) (bool, error) {
	if s.without() || !s.fresh && s.secret == "" && !s.engineGiven() {
		return false, nil
	}
	missing, err := s.keyMissing(ctx)
	return !missing, err
}

func (s *setup) askQuestion(ctx context.Context, a *interview) (err error) {
	text := "Ask the engine a test question"
	if !strings.HasPrefix(s.h.Config.Engine, "script:") {
		text += ", for about a cent"
	}
	s.o.testEngine, err = a.sure(ctx, text, true)
	return err
}

// putQuestion asks the engine as automatic runs have it. After a key that is not accepted, the owner may give another.
func (s *setup) putQuestion(ctx context.Context) error {
	if !s.o.testEngine {
		return nil
	}
	var refused bool
	return s.retry(ctx, "the test question", func() error {
		r, err := s.question(ctx)
		s.mute = err != nil
		refused = notify.Kind(r.Fault) == notify.Key || errors.Is(err, engine.ErrKey)
		return err
	}, func(error) (bool, error) {
		if !refused {
			return s.asks.sure(ctx, "Ask again", false)
		}
		s.asks.say("The service does not accept the key, or there is none.")
		if again, err := s.asks.sure(ctx, "Give a key", true); err != nil || !again {
			return false, err
		}
		if err := s.askKey(ctx, s.asks); err != nil || s.secret == "" {
			return false, err
		}
		return true, s.setKey(ctx)
	})
}

func (s *setup) question(ctx context.Context) (runlog.Record, error) {
	answer := ""
	stop := s.d.watch("test question")
	r, err := s.h.Runner(false).Ask(ctx, doctor.TestQuestion(string(s.dir)), runner.Options{Owner: true, Observe: runner.Observer{Event: func(e runlog.Event) {
		s.d.follow(e)
		if e.Type == runlog.Result {
			answer = e.Text
		}
	}}})
	stop()
	if r.ID == "" {
		return r, explain(err)
	}
	if answer != "" && r.Outcome == runlog.OK {
		_, _ = fmt.Fprintln(s.d.Out, answer)
		_ = s.d.flush() // a failed write shows at the end
	}
	s.d.account("init", "test question", r)
	return r, (&fireOptions{}).verdict(s.d, r, err)
}
