package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/skill"
)

func newCheck(d *deps) *cobra.Command {
	return withJSON(d, command(agentAll(), "check [FILE...]", "Check job files, skills and settings, and print when each job fires next",
		func(cmd *cobra.Command, args []string) error { return runCheck(cmd.Context(), d, args) }), jsonLines)
}

func runCheck(ctx context.Context, d *deps, files []string) error {
	c := checker{d: d, zone: time.UTC, ids: map[string]string{}}
	settings, err := d.Config()
	if err == nil {
		c.zone = settings.Zone
	}
	if len(files) > 0 {
		for _, file := range files {
			c.fault(c.file(ctx, file))
		}
		return cmp.Or(ctx.Err(), c.verdict())
	}
	if err == nil && !settings.Exists {
		_, err := d.Home() // reports it
		return err
	}
	c.fault(err)
	h, err := d.NewHome()
	if err != nil && !as[*app.ConfigFault](err) { // which is reported already
		return err
	}
	h.Jobs.Zone, h.Approvals.Zone = c.zone, c.zone
	jobs, err := h.Jobs.Load()
	if err != nil {
		return err
	}
	c.fault(jobs.Faults)
	c.home, c.rules = &h, h.Firer().Rules
	c.seal(job.New(job.Routine), filepath.Base(d.ConfigFile(h.Dir)))
	if untested := h.UntestedClaude(ctx); untested != "" {
		c.say(finding{File: filepath.Base(d.ConfigFile(h.Dir)), Key: "claude-code.command", What: "note", Text: untested})
	}
	c.fallback(filepath.Base(d.ConfigFile(h.Dir)), h.Config.Fallback, h.Config.Chat.Model, "")
	for _, j := range jobs.Jobs {
		c.good(h.Dir.Relative(j.Path), j)
	}
	c.servers(h, jobs.Jobs)
	policy, err := h.Approvals.Policy()
	c.fault(err)
	if policy.Waits {
		c.say(finding{File: approval.PolicyName, What: "note", Text: "gives no tools until you approve it: ollim approve " + approval.PolicyName})
	}
	_, faults, err := h.Skills.Load()
	c.fault(err)
	c.fault(faults)
	for _, name := range skill.AgentNames(h.Dir) {
		_, err := skill.LoadAgent(h.Dir, name)
		c.fault(err)
	}
	return c.verdict()
}

// checker prints findings and records whether one is a fault.
type checker struct {
	d    *deps
	zone *time.Location
	bad  bool
	ids  map[string]string // maps the ids of the given files to their paths

	home  *app.Home  // nil for files that need not lie in a data directory
	rules fire.Rules // set if home is
}

// maxChecked is the largest job file or skill that is read, in bytes, as where they lie in a data directory.
const maxChecked = 1 << 20

func (c *checker) file(ctx context.Context, path string) error {
	full, err := c.d.path(path) // the directory decides what kind of file it is
	if err != nil {
		return err
	}
	data, err := c.d.readGiven(ctx, path, maxChecked)
	if err == nil && len(data) > maxChecked {
		err = fmt.Errorf("larger than %d bytes", maxChecked)
	}
	if err != nil {
		return wrong(path, "", strings.TrimPrefix(store.Cause(err), full+": "))
	}
	switch base := filepath.Base(path); {
	case base == approval.PolicyName:
		_, err := config.ParseTools(path, data)
		return err
	case filepath.Ext(path) == ".yaml":
		none := func(string) (string, bool) { return "", false }
		_, err := config.Load(config.Source{Path: path, Text: data, Lookup: none, Zone: func() string { return "UTC" }})
		return err
	case base == "SKILL.md":
		_, err := skill.Parse(filepath.Base(filepath.Dir(full)), path, data)
		return err
	}
	j, err := job.Parse(job.KindOf(full), path, data)
	if err != nil {
		return err
	}
	id := strings.ToLower(j.ID) // ids that differ only in case are the same
	if twin, taken := c.ids[id]; taken {
		return wrong(path, "id", fmt.Sprintf("%q is used twice, also in %s", j.ID, twin))
	}
	c.ids[id] = path
	c.good(path, j.In(c.zone))
	return nil
}

func (c *checker) fault(err error) {
	if err == nil {
		return
	}
	faults, ok := errors.AsType[yamldoc.Faults](err)
	c.bad = c.bad || !ok || len(faults) > 0
	if !ok {
		c.say(finding{What: "error", Text: err.Error()})
	}
	for _, f := range faults {
		c.say(finding{File: f.File, Line: f.Line, Key: f.Key, What: "error", Text: f.Reason})
	}
}

func wrong(file, key, reason string) error {
	return yamldoc.Faults{{File: file, Key: key, Reason: reason}}
}

type finding struct {
	File string     `json:"file,omitempty"` // empty if the text names it
	Line int        `json:"line,omitempty"`
	Key  string     `json:"key,omitempty"`
	What string     `json:"what"` // error, ok, note
	Text string     `json:"text"`
	Next *time.Time `json:"next,omitempty"` // next fire
}

// String returns the finding in the format of a compiler's messages.
func (f finding) String() string {
	text := f.Text
	if f.What != "error" {
		text = join(f.What, text)
	}
	if f.File == "" {
		return text
	}
	return (&yamldoc.Fault{File: f.File, Line: f.Line, Key: f.Key, Reason: text}).Error()
}

// say prints a finding at once. A failed write shows when the output is flushed.
func (c *checker) say(f finding) {
	_ = records(c.d, "", []finding{f}, func(f finding) []any { return []any{prose(f.String())} })
}

func (c *checker) good(path string, j job.Job) {
	ok := func(next *time.Time, format string, args ...any) {
		c.say(finding{File: path, What: "ok", Text: fmt.Sprintf(format, args...), Next: next})
	}
	next, fires := j.RunAt, true
	if j.Kind != job.Reminder {
		next, fires = j.Schedule.Next(c.d.Now(), j.Zone(c.zone))
	}
	switch next = next.In(c.zone); {
	case j.Kind == job.Webhook:
		ok(nil, "%s, at most %s: %s", j.Hook.Signature.Label(), j.Hook.RateLimit, strings.Join(j.Hook.Fields.Names(), ", "))
	case !j.Enabled:
		ok(nil, "off")
	case !fires:
		c.fault(wrong(path, "cron", "never fires"))
	case !next.After(c.d.Now()):
		ok(&next, "due since %s", clock(next))
	case j.Kind == job.Reminder:
		ok(&next, "next %s", clock(next))
	default:
		words := j.Schedule.Words()
		if zone := j.Zone(c.zone).String(); zone != c.zone.String() {
			words += ", time of " + zone
		}
		ok(&next, "next %s (%s; %s in %d)", clock(next), words, times(j.Schedule.PerYear(next.Year())), next.Year())
	}
	for _, word := range slices.Compact([]string{j.ID, j.Name()}) {
		if meaning := job.Meaning(word); meaning != "" {
			c.say(finding{File: path, Key: "id", What: "note", Text: fmt.Sprintf("%q means %s in other commands: use another id and file name", word, meaning)})
		}
	}
	if here, _ := os.Hostname(); process.Elsewhere(j.Host, here) {
		c.say(finding{File: path, Key: "host", What: "note", Text: "runs only on " + j.Host + ", not on this machine, which is " + here})
	} else if j.Host != "" {
		c.say(finding{File: path, Key: "host", What: "note", Text: "runs only on " + j.Host + ", which is this machine"})
	}
	for _, surprise := range j.Schedule.Surprises() {
		if j.Kind == job.Routine && j.Enabled {
			c.say(finding{File: path, Key: "cron", What: "note", Text: surprise})
		}
	}
	if c.home != nil {
		c.inHome(path, j)
	}
}

// inHome reports what keeps a job of the data directory from doing what its file says.
func (c *checker) inHome(path string, j job.Job) {
	if j.Kind == job.Webhook {
		if _, err := c.home.HookKeys(*j.Hook); err != nil {
			c.say(finding{File: path, Key: "secret", What: "note", Text: "no call is accepted: " + err.Error()})
		}
	}
	for _, check := range []func(job.Job) error{c.rules.CheckDirs, c.rules.CheckTools, c.rules.CheckPrograms} {
		if err := check(j); err != nil {
			c.fault(wrong(path, "", err.Error()))
		}
	}
	if key, err := c.rules.CheckEngine(j); err != nil {
		c.fault(wrong(path, key, err.Error()))
	}
	if j.Seal != "" {
		c.seal(j, path)
	}
	switch {
	case j.Plain:
	case j.Fallback != nil:
		c.fallback(path, j.Fallback, j.Model, j.Engine)
	case j.Model != "" || j.Engine != "":
		c.repeated(path, c.home.Config.Fallback, j.Model, j.Engine)
	}
	if _, why, err := c.rules.Seals(j); err == nil && why != "" && j.Network == job.NetworkNone {
		c.say(finding{File: path, Key: "network", What: "note", Text: "network: none is not enforced: " + why})
	}
	if h := c.home; j.Network == job.NetworkNone && h.Config.Claude.Gateway == config.Off && cmp.Or(j.Engine, h.Config.Engine) == engine.ClaudeCode {
		c.say(finding{File: path, Key: "network", What: "note", Text: "the run will fail: network: none needs the gateway: ollim config set claude-code.gateway on"})
	}
	if agent := c.rules.Unreached(j); agent != "" {
		c.say(finding{File: path, Key: "network", What: "note", Text: "the run will fail: with network: none " + agent + " reaches no model service"})
	}
	for _, dir := range c.rules.OnPath(j) {
		c.say(finding{File: path, Key: "dirs", What: "note", Text: "the agent may write in " + dir + ", which is on PATH: programs that it puts there run as yours, not sealed"})
	}
	if err := c.rules.CheckSkills(j); err != nil {
		c.say(finding{File: path, What: "note", Text: err.Error()})
	}
	for _, e := range j.Unstartable(c.home.Dir) {
		c.say(finding{File: path, Key: e.Key, What: "note", Text: e.Reason})
	}
	if _, text, err := c.home.GateState(j); err != nil {
		c.say(finding{File: path, Key: "gate-audit", What: "note", Text: "the state of the gate cannot be read: " + err.Error()})
	} else if text != "" {
		c.say(finding{File: path, Key: "gate-audit", What: "note", Text: text})
	}
	if text := c.home.GateVerdict(j); text != "" {
		c.say(finding{File: path, Key: "gate", What: "note", Text: text})
	}
	if waiting, _ := c.home.Approvals.Waits(j); waiting {
		c.say(finding{File: path, What: "note", Text: "waits for your approval: ollim approve " + j.Name()})
	}
}

// fallback reports the models of a list that a run with a cost limit does not ask, and those that repeat the requested model.
func (c *checker) fallback(path string, list []string, requested, engine string) {
	table, err := c.home.Models()
	if err != nil { // it is reported as a fault of the settings
		return
	}
	for _, name := range list {
		if m := conversation.Named(table, name); !m.Priced {
			text := name + " has no price in the table of models, so a run with a cost limit does not ask it: " +
				"ollim config set models '" + m.ID + " in=USD out=USD' (per million tokens)"
			c.say(finding{File: path, Key: "fallback", What: "note", Text: text})
		}
	}
	c.repeated(path, list, requested, engine)
}

// repeated reports the models of a list that are the requested one.
func (c *checker) repeated(path string, list []string, requested, engine string) {
	table, err := c.home.Models()
	if err != nil || len(list) == 0 {
		return
	}
	id := conversation.Named(table, c.home.Turns(false).PlanOf(engine, requested).Model).ID
	for _, name := range list {
		if conversation.Named(table, name).ID == id {
			c.say(finding{File: path, Key: "fallback", What: "note", Text: name + " is the model that is asked anyway"})
		}
	}
}

// seal reports what the kernel enforces for a job. path is the file that the finding names.
func (c *checker) seal(j job.Job, path string) {
	switch abi, why, err := c.rules.Seals(j); {
	case err != nil:
		c.fault(wrong(path, "", err.Error()))
	case why != "":
		c.say(finding{File: path, Key: "seal", What: "note", Text: "commands of agents are not sealed: " + why})
	default:
		c.say(finding{File: path, Key: "seal", What: "note", Text: fmt.Sprintf("commands of agents are sealed, by Landlock ABI %d", abi)})
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (c *checker) verdict() error {
	if c.bad {
		return &reported{statusData}
	}
	return nil
}

// clock returns a time with weekday and zone, in its own zone.
func clock(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }

// servers reports the MCP servers that jobs name and that cannot start. None is started.
func (c *checker) servers(h app.Home, jobs []job.Job) {
	for _, s := range h.Config.Servers {
		if err := h.ServerFault(s.Name); err != nil {
			c.fault(errors.New("mcp-servers." + s.Name + ": " + err.Error()))
		}
	}
	for _, j := range jobs {
		for _, name := range h.UnknownServers(j) {
			c.fault(wrong(h.Dir.Relative(j.Path), "allowed-tools", "the MCP server "+name+" is not in mcp-servers of config.yaml"))
		}
	}
}
