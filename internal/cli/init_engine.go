package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/app/setup"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// checkSetting returns a check of the values of a setting.
func checkSetting(key string) func(string) error {
	return func(answer string) error { return config.Check(key, answer) }
}

func (w *initWalk) askEngine(ctx context.Context, a *interview) (err error) {
	standard, found := engine.Native, w.App.FindClaude()
	claude := cmp.Or(found, "not found: npm install -g @anthropic-ai/claude-code")
	if a.yes {
		standard = setup.None // there may be no key, and no question asks for one
	}
	if value, _ := w.d.Lookup("ANTHROPIC_API_KEY"); value != "" {
		standard = engine.Native
	}
	if found != "" {
		standard = engine.ClaudeCode
	}
	a.say("Engines:\n"+
		"  claude-code  runs the claude command; its login or a key pays (%s)\n"+
		"  native       built in; calls a service that has Anthropic's or OpenAI's API: a key pays, or it is a server of your own that needs no key\n"+
		"  script:FILE  plays a YAML file, for tests; costs nothing\n"+
		"  none         decide later", claude)
	w.o.Engine, err = a.value(ctx, "Engine", standard, func(answer string) error {
		switch {
		case answer == setup.None:
			return nil
		case answer == engine.ClaudeCode && found == "":
			return errors.New("the claude command was not found: npm install -g @anthropic-ai/claude-code")
		}
		if err := config.CheckEngine(answer); err != nil {
			return fmt.Errorf("%w, or %s", err, setup.None)
		}
		return nil
	})
	if err == nil && w.o.Engine == engine.Native {
		err = w.askService(ctx, a)
	}
	return err
}

// askAddress asks for the service of an engine: one of the vendors, or an address. That of the environment is offered: its key belongs to it.
func (w *initWalk) askAddress(ctx context.Context, a *interview, present string, vendors ...string) (string, error) {
	own, _ := w.d.Lookup("ANTHROPIC_BASE_URL")
	return a.value(ctx, "Service: "+strings.Join(vendors, ", ")+" or an address", cmp.Or(present, own, config.Anthropic), func(answer string) error {
		for _, vendor := range vendors {
			if answer == vendor {
				return nil
			}
		}
		if len(vendors) == 1 {
			return config.CheckAnthropicURL(answer)
		}
		return config.CheckURL(answer)
	})
}

// askService asks which service the native engine uses. One at an address is asked what it is.
func (w *initWalk) askService(ctx context.Context, a *interview) error {
	o, standard := &w.o.Service, ""
	answer, err := w.askAddress(ctx, a, "", config.Anthropic, config.OpenAI)
	if o.Provider = answer; err == nil && strings.Contains(answer, "://") {
		o.URL = answer
		speaks, models := provider.Discover(ctx, answer)
		o.Provider, err = a.value(ctx, "API that it speaks: anthropic or openai", speaks, checkSetting("native.provider"))
		if len(models) > 0 {
			standard = models[0]
			a.say("Its models: %s", strings.Join(models[:min(len(models), 12)], ", "))
		}
	}
	if answer == config.OpenAI {
		a.say("The names of its models: https://platform.openai.com/docs/models")
	}
	if err == nil && answer != config.Anthropic {
		if o.Provider == config.Anthropic {
			if standard == "" {
				standard = "sonnet"
				a.say("sonnet is a name of ollim's own: the service is asked for %s.", model.Known().Resolve(standard).ID)
			}
		}
		o.Model, err = a.value(ctx, "Model, as the service names it", standard, checkSetting("native.model"))
	}
	return err
}

// askKey asks for the key: of the environment with consent, hidden, or of a command. The service of the claude command is asked for first:
// the key is for that one.
func (w *initWalk) askKey(ctx context.Context, a *interview) error {
	name, _, err := w.Home.EngineKey(ctx)
	if err == nil && w.Home.Config.Engine == engine.ClaudeCode {
		a.say("The claude command is not logged in. Run `claude auth login` in another terminal and press Enter at the next questions, or give a key " +
			"and the service that accepts it.")
		present, _ := w.Home.ClaudeAddress() // what is wrong with it EngineKey has found
		w.o.Service.URL, err = w.askAddress(ctx, a, present, config.Anthropic)
	}
	if err != nil {
		return err
	}
	if value, _ := w.d.Lookup(name); value != "" && w.secret == "" {
		a.say("%s is set in this environment, but automatic runs do not get this environment.", name)
		if yes, err := a.sure(ctx, "Copy it into secrets.env", true); err != nil || yes {
			w.secret = value
			return err
		}
	}
	w.secret, err = a.hidden(ctx, "Key, "+name+" (not shown; Enter: from a command, or none)")
	if err != nil || w.secret != "" {
		return err
	}
	a.say("A command such as op read op://Private/KEY or pass show KEY can print the key.")
	_, err = a.value(ctx, "Command that prints the key", setup.None, func(answer string) error {
		if answer == setup.None {
			return nil
		}
		if !strings.ContainsAny(answer, " /") && len(answer) > 20 {
			return errors.New("this looks like a key and not like a command: it was not stored, but it is on your screen")
		}
		w.secret, err = w.d.printed(ctx, answer)
		return err
	})
	if err == nil && w.secret != "" {
		a.say("The output is stored: automatic runs cannot unlock a vault, so the command is not run again.")
	}
	return err
}

// readKey reads the key from where a flag says.
func (w *initWalk) readKey(ctx context.Context) (err error) {
	switch k := w.o.key; {
	case k.stdin:
		w.secret, err = firstLine(w.d.In)
	case k.variable != "":
		w.secret, _ = w.d.Lookup(k.variable)
	case k.script != "":
		w.secret, err = w.d.printed(ctx, k.script)
	}
	if err == nil && w.secret == "" && w.o.keyGiven() {
		err = usage("--key-env, --key-stdin or --key-command: the key is empty")
	}
	return err
}

// setKey stores the key and the address of the service as secrets.
func (w *initWalk) setKey(ctx context.Context) error {
	if w.secret == "" {
		if err := w.readKey(ctx); err != nil {
			return err
		}
	}
	name, err := w.SetKey(ctx, w.secret, w.o.Service.URL, w.o.key.variable)
	if err != nil {
		return err
	}
	if w.secret != "" {
		w.d.note("stored %s in %s", name, w.d.SecretsFile())
		if w.asks != nil && !w.o.keyGiven() {
			return w.leave(func(open *setup.Open) { open.Question = true })
		}
	} else if missing, err := w.KeyMissing(ctx); err != nil || missing { // nobody has logged in meanwhile
		w.d.tell("no key was stored; to store it later:", "ollim secret set "+name)
	}
	return nil
}

func (w *initWalk) askQuestion(ctx context.Context, a *interview) (err error) {
	text := "Ask the engine a test question"
	if !w.scripted() {
		text += ", for about a cent"
	}
	w.o.testEngine, err = a.sure(ctx, text, true)
	return err
}

// scripted reports whether the engine plays a file, which costs nothing.
func (w *initWalk) scripted() bool { return strings.HasPrefix(w.Home.Config.Engine, "script:") }

// putQuestion asks the engine as automatic runs have it. After a key that is not accepted, the owner may give another. The question stays
// open until it has an answer, or is declined.
func (w *initWalk) putQuestion(ctx context.Context) error {
	var failed, refused bool
	work := func() error {
		r, err := w.question(ctx)
		failed = err != nil
		refused = notify.Kind(r.Fault) == notify.Key || errors.Is(err, engine.ErrKey)
		return err
	}
	if w.o.testEngine {
		if err := w.retry(ctx, "the test question", work, func() (bool, error) { return w.askAgain(ctx, refused) }); err != nil {
			return err
		}
	}
	return w.leave(func(open *setup.Open) { open.Question = failed })
}

// askAgain asks whether to put the test question once more, with another key if the key was refused.
func (w *initWalk) askAgain(ctx context.Context, refused bool) (bool, error) {
	if !refused {
		return w.asks.sure(ctx, "Ask again", false)
	}
	w.asks.say("The service does not accept the key, or there is none.")
	if again, err := w.asks.sure(ctx, "Give a key", true); err != nil || !again {
		return false, err
	}
	if err := w.askKey(ctx, w.asks); err != nil || w.secret == "" {
		return false, err
	}
	return true, w.setKey(ctx)
}

func (w *initWalk) question(ctx context.Context) (runlog.Record, error) {
	answer := ""
	stop := w.d.watch("test question")
	r, err := w.Home.Runner(false).Ask(ctx, doctor.TestQuestion(string(w.Dir)), runner.Options{Owner: true, Observe: runner.Observer{Event: func(e runlog.Event) {
		w.d.follow(e)
		if e.Type == runlog.Result {
			answer = e.Text
		}
	}}})
	stop()
	if r.ID == "" {
		return r, explain(err)
	}
	if answer != "" && r.Outcome == runlog.OK {
		_, _ = fmt.Fprintln(w.d.Out, answer)
		_ = w.d.flush() // a failed write shows at the end
	}
	w.d.account("init", "test question", r)
	return r, (&fireOptions{}).verdict(w.d, r, err)
}
