package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/app/setup"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/model"
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
	present := w.present()
	standard = cmp.Or(present, standard)
	a.say("Engines:\n"+
		"  claude-code  runs the claude command; its login or a key pays (%s)\n"+
		"  native       built in; calls a service that has Anthropic's or OpenAI's API: a key pays, or it is a server of your own that needs no key\n"+
		"  acp:NAME     runs another agent that speaks ACP: "+strings.Join(config.AgentProfiles(), ", ")+", or one of the section acp in config.yaml\n"+
		"  script:FILE  plays a YAML file, for tests; costs nothing\n"+
		"  none         decide later", claude)
	w.o.Engine, err = a.value(ctx, "Engine", standard, func(answer string) error {
		switch {
		case answer == setup.None:
			return nil
		case answer == engine.ClaudeCode && found == "" && present != answer:
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

// askAddress asks for the service of an engine: one of the vendors, or an address. The address in the environment is offered, because the
// key in the environment belongs to it.
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

// askService asks which service the native engine uses. A service at an address is asked for its API and its models.
func (w *initWalk) askService(ctx context.Context, a *interview) error {
	o, standard := &w.o.Service, ""
	present := ""
	if w.present() == engine.Native {
		present, _ = w.Home.ServiceAddress() // a wrong address is asked for again
		present = cmp.Or(present, w.Home.Config.Native.Provider)
	}
	answer, err := w.askAddress(ctx, a, present, config.Anthropic, config.OpenAI)
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
		switch {
		case standard != "":
		case answer == present && w.modelSet():
			standard = w.Home.Config.Native.Model
		case o.Provider == config.Anthropic:
			standard = "sonnet"
			a.say("sonnet is a name of ollim's own: the service is asked for %s.", model.Known().Resolve(standard).ID)
		}
		o.Model, err = a.value(ctx, "Model, as the service names it", standard, checkSetting("native.model"))
	}
	return err
}

// present returns the configured engine; "" before there are settings.
func (w *initWalk) present() string {
	if w.Home.Stores == nil {
		return ""
	}
	return w.Home.Config.Engine
}

// modelSet reports whether the model of the native engine is more than the default.
func (w *initWalk) modelSet() bool {
	set, err := w.Home.Config.Get("native.model")
	return err == nil && set.Origin != "default"
}

// askKey asks for the key of an engine that has none, or whose key was refused.
func (w *initWalk) askKey(ctx context.Context, a *interview) error {
	if w.present() == engine.ClaudeCode {
		a.say("The claude command is not logged in. Run `claude auth login` in another terminal and press Enter at the next questions, or give a key " +
			"and the service that accepts it.")
	}
	return w.giveKey(ctx, a, false)
}

// giveKey gets the key from the environment if the owner agrees, from the terminal without showing it, or from a command. For the claude
// command it first asks for the service that the key is for. If keep is set, an empty line changes nothing.
func (w *initWalk) giveKey(ctx context.Context, a *interview, keep bool) error {
	name, _, err := w.Home.EngineKey(ctx)
	if err == nil && w.Home.Config.Engine == engine.ClaudeCode {
		present, _ := w.Home.ServiceAddress() // EngineKey has returned its error
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
	enter := "from a command, or none"
	if keep {
		enter = "no change"
	}
	w.secret, err = a.hidden(ctx, "Key, "+name+" (not shown; Enter: "+enter+")")
	if err != nil || w.secret != "" || keep {
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
		return w.leave(func(open *setup.Open) { open.Untested = true })
	}
	return nil
}
