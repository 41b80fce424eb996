package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
)

type initOptions struct {
	timezone, engine            string
	service                     serviceOptions
	key                         keySource
	delivery, routine, schedule string

	testEngine, testDelivery, fire, yes bool
}

// serviceOptions are the flags and answers that name the service of the native engine.
type serviceOptions struct{ provider, url, model string }

func (s serviceOptions) settings() map[string]string {
	return map[string]string{"native.provider": s.provider, "native.base-url": s.url, "native.model": s.model}
}

// keySource is where a flag says that the key of the engine is.
type keySource struct {
	stdin            bool
	variable, script string
}

// noAnswer is the answer that takes nothing of what is offered.
const noAnswer = "none"

func newInit(d *deps) *cobra.Command {
	var o initOptions
	cmd := command(agentNever(programs), "init", "Set up the data directory, the engine, messages to you, the schedule and a first routine",
		func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), d, o) })
	o.flags(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("key-stdin", "key-env", "key-command")
	return cmd
}

func (o *initOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.timezone, "timezone", "", "time zone of schedules and output (default: the system's)")
	f.StringVar(&o.engine, "engine", "", "engine: claude-code, native, script:FILE or none (default: claude-code if the claude "+
		"command is found)")
	f.StringVar(&o.service.provider, "provider", "", "native: API of the service, anthropic or openai (default anthropic)")
	f.StringVar(&o.service.url, "base-url", "", "native: the address of the service (default: the provider's own)")
	f.StringVar(&o.service.model, "model", "", "native: the model (default sonnet; openai has no default)")
	f.BoolVar(&o.key.stdin, "key-stdin", false, "store the first line of standard input as the key of the engine")
	f.StringVar(&o.key.variable, "key-env", "", "store the value of this environment variable as the key of the engine")
	f.StringVar(&o.key.script, "key-command", "", "store the first line that this shell command prints as the key of the engine")
	f.StringVar(&o.delivery, "delivery", "", "how to reach you: a shell command that gets the text on its standard input, file:PATH, "+
		"mail:ADDRESS, ntfy:TOPIC, notify, discord or none")
	f.StringVar(&o.routine, "routine", "", "add a first routine: disk, releases:URL, repository:PATH or none")
	f.StringVar(&o.schedule, "schedule", "", "install the schedule: crontab, systemd or none (default none)")
	f.BoolVar(&o.fire, "fire", false, "fire the routine of --routine at once")
	f.BoolVar(&o.testEngine, "test-engine", false, "ask the engine a test question, and print its answer")
	f.BoolVar(&o.testDelivery, "test-delivery", false, "send a test message")
	f.BoolVarP(&o.yes, "yes", "y", false, "ask nothing: where no flag answers a question, take its default answer")
}

// check returns an error if the flags cannot mean anything. Nothing has been made yet.
func (o *initOptions) check(d *deps) error {
	if _, err := o.settings(d); err != nil {
		return err
	}
	if _, _, err := deliveryOf(o.delivery); err != nil {
		return usage("--delivery: %v", err)
	}
	if err := checkSchedule(o.schedule); err != nil {
		return usage("--schedule: %v", err)
	}
	if err := checkSample(d, o.routine); err != nil {
		return usage("--routine: %v", err)
	}
	switch {
	case o.fire && (o.routine == "" || o.routine == noAnswer) && !o.yes:
		return usage("--fire needs --routine")
	case o.service != serviceOptions{} && o.engine != "" && o.engine != engine.Native:
		return usage("--provider, --base-url and --model are for --engine native")
	}
	return nil
}

func runInit(ctx context.Context, d *deps, o initOptions) error {
	if err := o.check(d); err != nil {
		return err
	}
	dir, err := d.Dir()
	if err != nil {
		return err
	}
	s := &setup{d: d, o: &o, dir: dir, fresh: !exists(d.ConfigFile(dir)), failed: failures{d: d, verb: "init"}}
	owner := !errors.Is(d.OwnerOnly(), app.ErrNotAllowed) // an agent does not answer for the owner
	if owner && (isTerminal(d.In) && isTerminal(d.Stderr) || o.yes) {
		s.asks = &interview{d: d, asker: newAsker(d.In), yes: o.yes, fresh: s.fresh}
	}
	if err := s.walk(ctx); err != nil {
		return err
	}
	if owner {
		if err := d.offerApproval(ctx, o.yes); err != nil {
			return err
		}
	}
	s.finish(ctx)
	return s.failed.err()
}

// settings are the lines of a new config.yaml that are not left at their default, each checked.
func (o *initOptions) settings(d *deps) (map[string]string, error) {
	set := map[string]string{"timezone": cmp.Or(o.timezone, d.SystemZone())}
	name := o.engine
	command := d.findClaude()
	switch {
	case name == "" && o.service != serviceOptions{}:
		name = engine.Native
	case (name == "" || name == "auto") && command != "":
		name = engine.ClaudeCode
	}
	if name != "" && name != "auto" && name != noAnswer {
		set["engine"] = name
	}
	if name == engine.ClaudeCode && command != "" {
		set["claude-code.command"], set["env"] = command, quotedList(d.captured())
	}
	for key, value := range o.service.settings() {
		if value != "" {
			set[key] = value
		}
	}
	for key, value := range set {
		if err := config.Check(key, value); err != nil {
			return nil, usage("--%s: %v", strings.TrimPrefix(strings.TrimSuffix(key, ".command"), "native."), err)
		}
	}
	return set, nil
}

// findClaude is the absolute path of the claude command; "" if there is none. It is written down: a fire does not search.
func (d *deps) findClaude() string {
	path, _ := d.Lookup("PATH")
	dirs := filepath.SplitList(path)
	if base, err := d.UserHome(); err == nil {
		dirs = append(dirs, filepath.Join(base, ".claude", "local"), filepath.Join(base, ".local", "bin"))
	}
	for _, dir := range dirs {
		command := filepath.Join(dir, "claude")
		if info, err := os.Stat(command); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return command
		}
	}
	return ""
}

// captured is what the engine needs of the environment in which it works now.
func (d *deps) captured() (entries []string) {
	for _, name := range []string{"PATH", "HOME", "CLAUDE_CONFIG_DIR"} {
		if value, ok := d.Lookup(name); ok && value != "" {
			entries = append(entries, name+"="+value)
		}
	}
	return entries
}

// quotedList is a list as it stands in config.yaml.
func quotedList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// emptyPolicy gives no tools. It exists so that a program that downloads a file of that name cannot create it.
const emptyPolicy = `# Additional tools for all runs, see tool-policy.yaml in ollim-routine(5).
# A change has no effect until you approve it: ollim approve tool-policy.yaml
# main:
#   additional-allowed: ["Bash(git log *)"]
# background:
#   additional-allowed: [WebSearch]
`

func (d *deps) makeFiles(dir paths.Dir, settings map[string]string) (made []string, err error) {
	create := func(path string, data []byte) error {
		err := store.Create(path, data)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err == nil {
			made = append(made, filepath.Base(path))
		}
		return err
	}
	if err := create(d.ConfigFile(dir), []byte(config.Template(settings))); err != nil {
		return made, err
	}
	return made, create(dir.ToolPolicy(), []byte(emptyPolicy))
}

// offerApproval is for a directory that was there before: what in it waits for the owner is asked about on a terminal, job
// after job, and named elsewhere. silent reports that nothing is asked. An answer, also a no, changes nothing of what init has made.
func (d *deps) offerApproval(ctx context.Context, silent bool) error {
	s, h, err := d.jobSet()
	if as[*app.ConfigFault](err) {
		return nil // of settings that init left as they were
	}
	if err != nil {
		return err
	}
	a := approver{d: d, h: h, failed: failures{d: d, verb: "init"}}
	if err := a.collectAll(s); err != nil {
		return err
	}
	a.found = slices.DeleteFunc(a.found, func(c candidate) bool { return c.state == stateApproved })
	if len(a.found) == 0 {
		return nil
	}
	var names []string
	for _, c := range a.found {
		names = append(names, c.name)
	}
	waiting := "wait for your approval: " + strings.Join(names, ", ")
	if silent || !isTerminal(d.In) || !isTerminal(d.Stderr) {
		d.warn(waiting + ": ollim approve --all")
		return nil
	}
	d.note("these %s", waiting)
	return a.askAll(ctx)
}
