package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/setup"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/config"
)

type initOptions struct {
	setup.Answers

	key                         keySource
	delivery, routine, schedule string

	testEngine, testDelivery, fire, yes bool

	given func(flag string) bool
}

// keySource is the place of the engine's key, as a flag names it.
type keySource struct {
	stdin            bool
	variable, script string
}

func newInit(d *deps) *cobra.Command {
	var o initOptions
	cmd := command(agentNever(programs), "init", "Set up the data directory, the engine, messages to you, the schedule and a first routine",
		func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), d, o) })
	o.flags(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("key-stdin", "key-env", "key-command")
	return cmd
}

func (o *initOptions) flags(f *pflag.FlagSet) {
	o.given = f.Changed
	f.StringVar(&o.Zone, "timezone", "", "time zone of schedules and output (default: the system's)")
	f.StringVar(&o.Engine, "engine", "", "engine: claude-code, native, acp:NAME, script:FILE or none (default: the one that is configured; "+
		"at first claude-code if the claude command is found)")
	f.StringVar(&o.Service.Provider, "provider", "", "native: API of the service, anthropic or openai (default anthropic)")
	f.StringVar(&o.Service.URL, "base-url", "", "address of the service (default: the provider's own); for claude-code it is "+
		"stored as the secret engine.ANTHROPIC_BASE_URL")
	f.StringVar(&o.Service.Model, "model", "", "native: the model (default sonnet; openai has no default)")
	f.BoolVar(&o.key.stdin, "key-stdin", false, "store the first line of standard input as the key of the engine")
	f.StringVar(&o.key.variable, "key-env", "", "store the value of this environment variable as the key of the engine")
	f.StringVar(&o.key.script, "key-command", "", "store the first line that this shell command prints as the key of the engine")
	f.StringVar(&o.delivery, "delivery", "", "how to reach you: a shell command that gets the text on its standard input, file:PATH, "+
		"mail:ADDRESS, ntfy:TOPIC, notify, discord or none")
	f.StringVar(&o.routine, "routine", "", "add a first routine: disk, releases:URL, repository:PATH or none")
	f.StringVar(&o.schedule, "schedule", "", "install the schedule: crontab, systemd or none (with --yes: none)")
	f.BoolVar(&o.fire, "fire", false, "fire the routine of --routine at once")
	f.BoolVar(&o.testEngine, "test-engine", false, "ask the engine a test question, and print its answer")
	f.BoolVar(&o.testDelivery, "test-delivery", false, "send a test message")
	f.BoolVarP(&o.yes, "yes", "y", false, "ask nothing: where no flag answers a question, take its default answer, but add no routine and install no schedule")
}

// engineGiven reports whether the flags name an engine or its service.
func (o *initOptions) engineGiven() bool { return o.Engine != "" || o.Service != setup.Service{} }

func (o *initOptions) keyGiven() bool { return o.key != keySource{} }

// any reports whether a flag says what to do.
func (o *initOptions) any() bool {
	return o.engineGiven() || o.keyGiven() || o.Zone+o.delivery+o.routine+o.schedule != "" || o.testEngine || o.testDelivery || o.fire
}

// check returns an error if the flags are invalid, before anything is made.
func (o *initOptions) check(s *setup.Setup) error {
	_, err := s.Settings(o.Answers)
	if wrong, ok := errors.AsType[*config.Wrong](err); ok {
		return usage("--%s: %s", strings.TrimPrefix(wrong.Origin, "native."), wrong.Reason)
	}
	_, delivery := setup.Delivery(o.delivery)
	_, routine := s.Sample(o.routine)
	for flag, err := range map[string]error{"delivery": delivery, "routine": routine, "schedule": checkSchedule(o.schedule)} {
		if err != nil {
			return usage("--%s: %v", flag, err)
		}
	}
	about, rest := s.Serves(o.Answers), o.Service // of the flags of a service
	if about == engine.ClaudeCode {
		rest.URL = ""
	}
	switch {
	case o.fire && (o.routine == "" || o.routine == setup.None) && !o.yes && s.Open().Fire == "":
		return usage("--fire needs --routine")
	case rest != setup.Service{} && about != engine.Native:
		return usage("--provider, --base-url and --model are for --engine native, and --base-url also for claude-code; the engine is %s", about)
	}
	return err
}

func runInit(ctx context.Context, d *deps, o initOptions) error {
	s, err := setup.New(d.doctor())
	if err == nil {
		err = o.check(s)
	}
	if err != nil {
		return err
	}
	w := &initWalk{Setup: s, d: d, o: &o, failed: failures{d: d, verb: "init"}}
	owner := !errors.Is(d.OwnerOnly(), app.ErrNotAllowed) // an agent does not answer for the owner
	if owner && (isTerminal(d.In) && isTerminal(d.Stderr) || o.yes) {
		w.asks = &interview{d: d, asker: newAsker(d.In), yes: o.yes, fresh: s.Fresh}
	}
	if err := w.walk(ctx); err != nil {
		return err
	}
	if owner {
		if err := d.offerApproval(ctx, o.yes); err != nil {
			return err
		}
	}
	w.finish(ctx)
	return w.failed.err()
}
