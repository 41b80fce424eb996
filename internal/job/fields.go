package job

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/yamldoc"
)

// field is one key of a job file. This table is the only place that knows the keys: reading, writing, the flags of
// `routine add` and the test of ollim-routine(5) all follow it.
type field struct {
	key    string
	kind   FieldKind
	help   string
	bgOnly bool // has no meaning on a foreground job
	later  bool // read and kept, but this version has no mechanism for it
	read   func(*Job, yamldoc.Value) error
	write  func(Job) any // nil when the value is the default
}

// FieldKind is the type of a field, for those who make flags of them.
type FieldKind string

// The kinds of fields.
const (
	Text FieldKind = "text"
	Bool FieldKind = "bool"
	List FieldKind = "list"
)

// Field describes one key of a job file.
type Field struct {
	Key     string
	Kind    FieldKind
	Help    string
	Default string
}

// Fields lists the keys of a routine file in the order in which they are written.
func Fields() []Field {
	var out []Field
	fresh := New(Routine)
	for _, f := range fields() {
		d := Field{Key: f.key, Kind: f.kind, Help: f.help}
		if f.kind == Bool {
			d.Default = strconv.FormatBool(defaultBool(f.key, fresh))
		}
		out = append(out, d)
	}
	return out
}

func defaultBool(key string, fresh Job) bool {
	return key == "allow-ping" && fresh.AllowPing || key == "enabled" && fresh.Enabled
}

// fields is the table, in the order in which files are written.
func fields() []field {
	return []field{
		text("id", "the routine's id (default: 8 random hex digits)", func(j *Job) *string { return &j.ID }, checkID),
		text("cron", "five cron fields, or @hourly @daily @weekly @monthly @yearly", func(j *Job) *string { return &j.Cron }, checkCron),
		text("timezone", "IANA zone of the cron line (default: the configured one)", func(j *Job) *string { return &j.Timezone }, checkZone),
		description(),
		boolean("background", "run beside the conversation, not in it", false, func(j *Job) *bool { return &j.Background }),
		bg(text("session", "persistent: one session across fires", func(j *Job) *string { return &j.Session }, oneOf("persistent"))),
		bg(boolean("isolated", "start without any history", false, func(j *Job) *bool { return &j.Isolated })),
		text("model", "model alias or id", func(j *Job) *string { return &j.Model }, nil),
		bg(thinking()),
		bg(updateMode()),
		bg(boolean("allow-ping", "the agent may ping the owner", true, func(j *Job) *bool { return &j.AllowPing })),
		later(list("allowed-tools", "tool patterns beyond the default ones", func(j *Job) *[]string { return &j.AllowedTools }, nil)),
		later(list("skills", "skills to invoke first", func(j *Job) *[]string { return &j.Skills }, checkName)),
		later(text("subagent", "delegate to agents/NAME.md", func(j *Job) *string { return &j.Subagent }, checkName)),
		text("engine", "the engine that runs it (default: the configured one)", func(j *Job) *string { return &j.Engine }, nil),
		duration("timeout", "limit of the whole run", 30*time.Minute, true, func(j *Job) *time.Duration { return &j.Timeout }),
		duration("catch-up", "run a missed slot late when it is no older than this", 0, false, func(j *Job) *time.Duration { return &j.CatchUp }),
		maxCost(),
		later(text("gate", "an executable in gates/ that decides whether to run", func(j *Job) *string { return &j.Gate }, checkName)),
		later(text("after", "an executable in gates/ run at the end", func(j *Job) *string { return &j.After }, checkName)),
		later(list("dirs", "directories outside the data directory that it may read", func(j *Job) *[]string { return &j.Dirs }, nil)),
		boolean("enabled", "false keeps the file and fires nothing", true, func(j *Job) *bool { return &j.Enabled }),
	}
}

func bg(f field) field { f.bgOnly = true; return f }

func later(f field) field { f.later = true; return f }

func text(key, help string, at func(*Job) *string, check func(string) error) field {
	return field{
		key: key, kind: Text, help: help,
		read: func(j *Job, v yamldoc.Value) error {
			s, err := v.Text()
			if err == nil && check != nil {
				err = check(s)
			}
			*at(j) = s
			return err
		},
		write: func(j Job) any { return unless(*at(&j) == "", *at(&j)) },
	}
}

func boolean(key, help string, normal bool, at func(*Job) *bool) field {
	return field{
		key: key, kind: Bool, help: help,
		read: func(j *Job, v yamldoc.Value) (err error) {
			*at(j), err = v.Bool()
			return err
		},
		write: func(j Job) any { return unless(*at(&j) == normal, *at(&j)) },
	}
}

func list(key, help string, at func(*Job) *[]string, check func(string) error) field {
	return field{
		key: key, kind: List, help: help,
		read: func(j *Job, v yamldoc.Value) error {
			var checks []func(string) error
			if check != nil {
				checks = append(checks, check)
			}
			items, err := v.Texts(checks...)
			*at(j) = items
			return err
		},
		write: func(j Job) any { return unless(len(*at(&j)) == 0, *at(&j)) },
	}
}

func duration(key, help string, normal time.Duration, positive bool, at func(*Job) *time.Duration) field {
	return field{
		key: key, kind: Text, help: help + fmt.Sprintf(" (default %s)", FormatDuration(normal)),
		read: func(j *Job, v yamldoc.Value) error {
			s, err := v.Text()
			if err != nil {
				return err
			}
			if *at(j), err = ParseDuration(s); err != nil {
				return err
			}
			if positive && *at(j) == 0 {
				return errors.New("must be longer than zero")
			}
			return nil
		},
		write: func(j Job) any { return unless(*at(&j) == normal, FormatDuration(*at(&j))) },
	}
}

// description of nothing but white space is none.
func description() field {
	f := text("description", "a line that names the routine in lists and messages", func(j *Job) *string { return &j.Description }, nil)
	read := f.read
	f.read = func(j *Job, v yamldoc.Value) error {
		err := read(j, v)
		if strings.TrimSpace(j.Description) == "" {
			j.Description = ""
		}
		return err
	}
	return f
}

// thinking comes in several spellings (True, 0100) and is kept in one.
func thinking() field {
	return field{
		key: "thinking", kind: Text, help: "true, false, off, adaptive or a number of tokens",
		read: func(j *Job, v yamldoc.Value) error {
			if on, err := v.Bool(); err == nil {
				j.Thinking = strconv.FormatBool(on)
				return nil
			}
			if n, err := v.Int(); err == nil && n > 0 {
				j.Thinking = strconv.Itoa(n)
				return nil
			}
			s, err := v.Text()
			if err != nil {
				return err
			}
			j.Thinking = s
			return oneOf("true", "false", "off", "adaptive")(s)
		},
		write: func(j Job) any {
			if n, err := strconv.Atoi(j.Thinking); err == nil {
				return n
			}
			if b, err := strconv.ParseBool(j.Thinking); err == nil {
				return unless(b, b)
			}
			return j.Thinking
		},
	}
}

func updateMode() field {
	modes := []string{string(OnPing), string(Always), string(Freely), string(Blocked)}
	return field{
		key: "update-main-session", kind: Text, help: strings.Join(modes, ", ") + ": when the run reports to the main session",
		read: func(j *Job, v yamldoc.Value) error {
			s, err := v.Text()
			j.Update = UpdateMode(s)
			if err == nil {
				err = oneOf(modes...)(s)
			}
			return err
		},
		write: func(j Job) any { return unless(j.Update == OnPing, string(j.Update)) },
	}
}

func maxCost() field {
	return field{
		key: "max-cost", kind: Text, help: "stop the run when it has cost this much, in USD",
		read: func(j *Job, v yamldoc.Value) (err error) {
			j.MaxCost, err = v.Number()
			if err == nil && !(j.MaxCost > 0 && j.MaxCost < 1e9) {
				err = errors.New("must be more than zero, and less than a billion")
			}
			return err
		},
		write: func(j Job) any { return unless(j.MaxCost == 0, j.MaxCost) },
	}
}

func unless(normal bool, value any) any {
	if normal {
		return nil
	}
	return value
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return fmt.Errorf("%q is not one of: %s", s, strings.Join(words, ", "))
	}
}
