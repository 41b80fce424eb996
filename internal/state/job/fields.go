package job

import (
	"slices"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/heartbeat"
)

// field is one key of a job file. Only this table lists the keys: reading, writing, the flags of `routine add` and the test of
// ollim-routine(5) use it.
type field struct {
	key       string
	kind      FieldKind
	help      string
	kinds     []Kind // kinds of jobs that may have the key; nil: every kind
	bgOnly    bool
	agentOnly bool
	flag      func(*Job) *bool // the value of a Bool
	read      func(*Job, yamldoc.Value) error
	write     func(Job) any // returns nil if the value is the default
}

// FieldKind is the type of a field's value, for code that turns fields into flags.
type FieldKind string

// The kinds of fields.
const (
	scalarField FieldKind = "text"
	Bool        FieldKind = "bool"
	List        FieldKind = "list"
	Section     FieldKind = "section"

	TextOrSection FieldKind = "text or section"
)

// Field describes one key of a job file.
type Field struct {
	Key     string
	Kind    FieldKind
	Help    string
	Default string
}

// Fields lists the keys of a kind of file in the order in which they are written.
func Fields(kind Kind) []Field {
	var out []Field
	fresh := New(kind)
	for _, f := range fields(kind) {
		d := Field{Key: f.key, Kind: f.kind, Help: f.help}
		if f.kind == Bool {
			d.Default = strconv.FormatBool(*f.flag(&fresh))
		}
		out = append(out, d)
	}
	return out
}

func fields(kind Kind) []field {
	return slices.DeleteFunc(table(), func(f field) bool { return f.kinds != nil && !slices.Contains(f.kinds, kind) })
}

func table() []field {
	return []field{
		text("id", "id of the job (default: NAME, else a generated one)", func(j *Job) *string { return &j.ID }, checkID),
		only(Routine, cronLine()),
		only(Routine, timezone()),
		only(Reminder, runAt()),
		description(),
		only(Webhook, schema()),
		only(Webhook, secretName()),
		only(Webhook, signature()),
		only(Webhook, rateLimit()),
		timed(boolean("background", "run outside the main session", func(j *Job) *bool { return &j.Background })),
		only(Routine, bg(text("session", "persistent: one session across fires", func(j *Job) *string { return &j.Session }, oneOf("persistent")))),
		bg(agent(boolean("isolated", "start without any history", func(j *Job) *bool { return &j.Isolated }))),
		agent(text("model", "model alias or id", func(j *Job) *string { return &j.Model }, nil)),
		agent(fallback()),
		bg(agent(thinking())),
		bg(agent(updateMode())),
		bg(agent(boolean("allow-ping", "the agent may ping the owner", func(j *Job) *bool { return &j.AllowPing }))),
		agent(list("allowed-tools", "tool patterns in addition to the default ones, separated by commas or blanks", func(j *Job) *[]string { return &j.AllowedTools })),
		agent(list("skills", "skills that the agent must read first", func(j *Job) *[]string { return &j.Skills }, checkName)),
		agent(text("subagent", "delegate to agents/NAME.md", func(j *Job) *string { return &j.Subagent }, checkName)),
		agent(text("engine", "engine (default: the configured one)", func(j *Job) *string { return &j.Engine }, nil)),
		duration("timeout", "time limit of the whole run", true, func(j *Job) *time.Duration { return &j.Timeout }),
		only(Routine, duration("catch-up", "run the newest missed slot late if it is no older than this", false, func(j *Job) *time.Duration { return &j.CatchUp })),
		agent(maxCost()),
		timed(agent(text("gate", "an executable in gates/ that decides whether to run", func(j *Job) *string { return &j.Gate }, checkName))),
		only(Routine, bg(agent(count("gate-audit", "N: every N-th fire that the gate closes runs all the same, to audit the gate", func(j *Job) *int { return &j.GateAudit })))),
		timed(agent(text("after", "an executable in gates/ that runs at the end", func(j *Job) *string { return &j.After }, checkName))),
		agent(text("verify", "an executable in gates/ that decides at the end whether the run did what it was for", func(j *Job) *string { return &j.Verify }, checkName)),
		agent(count("retry", "how many times the agent may continue after verify refused the run", func(j *Job) *int { return &j.Retry })),
		text("heartbeat", "URL that is called after a run that ended ok", func(j *Job) *string { return &j.Heartbeat }, heartbeat.CheckURL),
		timed(agent(list("dirs", "directories outside the data directory that the agent may read; rw:DIR allows writing", func(j *Job) *[]string { return &j.Dirs }, checkDir))),
		agent(text("seal", "on: refuse to run where the agent's commands cannot be sealed", func(j *Job) *string { return &j.Seal }, oneOf(SealOn))),
		agent(text("network", "any, none: where the agent's commands may connect", func(j *Job) *string { return &j.Network }, oneOf(NetworkAny, NetworkNone))),
		agent(list("unsealed", "gate, after, verify: those of the job's executables that run outside the seal", func(j *Job) *[]string { return &j.Unsealed }, oneOf(GateKey, AfterKey, VerifyKey))),
		only(Reminder, agent(count("max-chain", "maximum number of follow-ups, one after the other", func(j *Job) *int { return &j.MaxChain }))),
		only(Reminder, agent(count("chain-depth", "number of reminders before this one in the chain", func(j *Job) *int { return &j.ChainDepth }))),
		only(Reminder, agent(chainParent())),
		only(Reminder, boolean("plain", "deliver the text itself, without an agent", func(j *Job) *bool { return &j.Plain })),
		text("host", "name of the only machine that runs the job", func(j *Job) *string { return &j.Host }, checkHost),
		timed(boolean("enabled", "false keeps the file but does not fire it", func(j *Job) *bool { return &j.Enabled })),
	}
}

// only returns the field for one kind of file alone.
func only(kind Kind, f field) field { f.kinds = []Kind{kind}; return f }

// timed returns the field for the jobs that have a time.
func timed(f field) field { f.kinds = []Kind{Routine, Reminder}; return f }

// bg returns the field as one that only background jobs may have.
func bg(f field) field { f.bgOnly = true; return f }

// agent returns the field as one that only jobs with an agent may have.
func agent(f field) field { f.agentOnly = true; return f }
