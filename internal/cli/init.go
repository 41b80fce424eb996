package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

type initOptions struct {
	timezone string
	engine   string
	delivery string
	schedule string

	testEngine, testDelivery bool
}

// noAnswer is the answer of somebody who wants none of what is offered.
const noAnswer = "none"

func newInit(d *deps) *cobra.Command {
	var o initOptions
	cmd := command(agentNever(programs), "init", "Create the data directory, its settings and a sample routine",
		func(cmd *cobra.Command, _ []string) error { return runInit(cmd.Context(), d, o) })
	f := cmd.Flags()
	f.StringVar(&o.timezone, "timezone", "", "time zone of schedules and output (default: the system's)")
	f.StringVar(&o.engine, "engine", "", "engine: claude-code, native, script:FILE or none (default: claude-code if the claude "+
		"command is found)")
	f.StringVar(&o.delivery, "delivery", "", "shell command that sends you the text on its standard input, or none")
	f.StringVar(&o.schedule, "schedule", "", "install the schedule: crontab, systemd or none (default none)")
	f.BoolVar(&o.testEngine, "test-engine", false, "ask the engine a test question, and print its answer")
	f.BoolVar(&o.testDelivery, "test-delivery", false, "send a test message by the command of --delivery")
	return cmd
}

func runInit(ctx context.Context, d *deps, o initOptions) error {
	dir, err := d.Dir()
	if err != nil {
		return err
	}
	fresh := !exists(d.ConfigFile(dir))
	asks := fresh && isTerminal(d.In) && isTerminal(d.Stderr)
	if asks {
		if err := o.ask(ctx, d); err != nil {
			return err
		}
	}
	settings, err := o.settings(d)
	if err != nil {
		return err
	}
	if o.testDelivery && !asks { // the answer to a question was tried
		if err := o.tryDelivery(ctx, d); err != nil {
			return fmt.Errorf("--test-delivery: %w", err)
		}
	}
	for _, folder := range dir.Folders() {
		if err := store.MkdirAll(folder); err != nil {
			return err
		}
	}
	made, err := d.makeFiles(dir, settings)
	if err != nil {
		return err
	}
	if len(made) == 0 {
		d.note("%s: nothing to create", dir)
	} else {
		d.note("created %s", strings.Join(made, ", "))
		if settings["engine"] == engine.ClaudeCode {
			d.note("the engine is %s; it uses its own login, or a key: engine.ANTHROPIC_API_KEY=… in %s (mode 0600)",
				settings["claude-code.command"], d.SecretsFile())
			if h, err := d.Home(); err == nil {
				if untested := h.UntestedClaude(ctx); untested != "" {
					d.note("%s", untested)
				}
			}
		}
	}
	failed := o.prove(ctx, d)
	if err := d.offerApproval(ctx); err != nil {
		return err
	}
	if failed == nil && fresh {
		switch {
		case settings["engine"] == "":
			d.note("next: choose an engine: ollim config set engine native")
		case o.schedule == "" || o.schedule == noAnswer:
			d.note("next: write a routine, ollim routine add NAME --cron '0 9 * * *' PROMPT; then ollim schedule install %s", forCrontab)
		default:
			d.note("next: write a routine: ollim routine add NAME --cron '0 9 * * *' PROMPT")
		}
	}
	return failed
}

// settings are the lines of config.yaml that are not left at their default, each checked.
func (o *initOptions) settings(d *deps) (map[string]string, error) {
	set := map[string]string{"timezone": cmp.Or(o.timezone, d.SystemZone())}
	if o.engine != "" && o.engine != "auto" && o.engine != noAnswer {
		set["engine"] = o.engine
	}
	if command := d.findClaude(); command != "" && (o.engine == "" || o.engine == "auto" || o.engine == engine.ClaudeCode) {
		set["engine"], set["claude-code.command"], set["env"] = engine.ClaudeCode, command, d.captured()
	}
	if o.delivery != "" && o.delivery != noAnswer {
		set["delivery.command"] = fmt.Sprintf("[sh, -c, '%s']", strings.ReplaceAll(o.delivery, "'", "''"))
	}
	if err := checkSchedule(o.schedule); err != nil {
		return nil, usage("--schedule: %v", err)
	}
	for key, value := range set {
		if err := config.Check(key, value); err != nil {
			return nil, usage("--%s: %v", strings.TrimSuffix(key, ".command"), err)
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

// captured is what the engine needs of the environment in which it works now, as a line of config.yaml.
func (d *deps) captured() string {
	entries := []string{}
	for _, name := range []string{"PATH", "HOME", "CLAUDE_CONFIG_DIR"} {
		if value, ok := d.Lookup(name); ok && value != "" {
			entries = append(entries, strconv.Quote(name+"="+value))
		}
	}
	return "[" + strings.Join(entries, ", ") + "]"
}

const sample = `Check current market conditions and update your running analysis.

When context gets large, compact and preserve: current positions,
price levels, trend observations. Discard detailed per-fire analysis.`

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
			made = append(made, path)
		}
		return err
	}
	if err := create(d.ConfigFile(dir), []byte(config.Template(settings))); err != nil {
		return made, err
	}
	fresh := len(made) > 0
	if err := create(dir.ToolPolicy(), []byte(emptyPolicy)); err != nil {
		return made, err
	}
	if jobs, err := (job.Library{Home: dir}).Load(); !fresh || err != nil || len(jobs.Jobs)+len(jobs.Faults) > 0 {
		return made, err // a directory in use needs no sample
	}
	id, err := job.NewID(d.Random)
	if err != nil {
		return made, err
	}
	j := job.New(job.Routine)
	j.ID, j.Cron, j.Description, j.Body = id, "0 9 * * 1-5", "Daily market analysis", sample
	j.Background, j.Session, j.Enabled = true, "persistent", false
	text, err := job.Format(j)
	if err != nil {
		return made, err
	}
	return made, create(dir.Path("routines", "daily-market.md"), text)
}

// offerApproval is for a directory that was there before: what in it waits for the owner is asked about on a terminal, job
// after job, and named elsewhere. An answer, also a no, changes nothing of what init has made.
func (d *deps) offerApproval(ctx context.Context) error {
	if errors.Is(d.OwnerOnly(), app.ErrNotAllowed) {
		return nil // whoever this is, it is not theirs to say
	}
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
	if !isTerminal(d.In) || !isTerminal(d.Stderr) {
		d.warn(waiting + ": ollim approve --all")
		return nil
	}
	d.note("these %s", waiting)
	return a.askAll(ctx)
}
