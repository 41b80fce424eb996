package job

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/model"
)

func text(key, help string, at func(*Job) *string, check func(string) error) field {
	return scalar(key, help, at, yamldoc.Value.Text, func(j *Job) error {
		if check == nil {
			return nil
		}
		return check(*at(j))
	})
}

// scalar returns a field with a single value, which get reads into the job. parse, if it is not nil, converts the value.
func scalar[T comparable](
	key, help string, at func(*Job) *T, get func(yamldoc.Value) (T, error), parse func(*Job) error,
) field {
	return field{
		key: key, kind: scalarField, help: help,
		read: func(j *Job, v yamldoc.Value) (err error) {
			if *at(j), err = get(v); err == nil && parse != nil {
				err = parse(j)
			}
			return err
		},
		write: func(j Job) any {
			fresh := New(j.Kind)
			return unless(*at(&j) == *at(&fresh), *at(&j))
		},
	}
}

func boolean(key, help string, at func(*Job) *bool) field {
	f := scalar(key, help, at, yamldoc.Value.Bool, nil)
	f.kind, f.flag = Bool, at
	return f
}

func list(key, help string, at func(*Job) *[]string, check ...func(string) error) field {
	return field{
		key: key, kind: List, help: help,
		read: func(j *Job, v yamldoc.Value) (err error) {
			*at(j), err = v.Texts(check...)
			return err
		},
		write: func(j Job) any { return unless(len(*at(&j)) == 0, *at(&j)) },
	}
}

// fallback returns the field fallback. An empty list, unlike none, turns the configured one off.
func fallback() field {
	const help = "models to ask, in order, if the job's own cannot be used (default: the configured ones; an empty list is none)"
	f := list("fallback", help, func(j *Job) *[]string { return &j.Fallback }, model.CheckName)
	f.write = func(j Job) any { return unless(j.Fallback == nil, j.Fallback) }
	return f
}

// parsed returns a field whose text parse puts into the job.
func parsed(key, help string, parse func(*Job, string) error, write func(Job) any) field {
	return field{key: key, kind: scalarField, help: help, write: write, read: func(j *Job, v yamldoc.Value) error {
		s, err := v.Text()
		if err == nil {
			err = parse(j, s)
		}
		return err
	}}
}

func duration(key, help string, positive bool, at func(*Job) *time.Duration) field {
	fresh := New(Routine)
	normal := *at(&fresh)
	return parsed(key, help+fmt.Sprintf(" (default %s)", FormatDuration(normal)), func(j *Job, s string) (err error) {
		if *at(j), err = ParseDuration(s); err == nil && positive && *at(j) == 0 {
			err = errors.New("must be longer than zero")
		}
		return err
	}, func(j Job) any { return unless(*at(&j) == normal, FormatDuration(*at(&j))) })
}

// count returns a field that is a small number, 0 by default.
func count(key, help string, at func(*Job) *int) field {
	const most = 1000
	return scalar(key, help, at, yamldoc.Value.Int, func(j *Job) error {
		if n := *at(j); n < 0 || n > most {
			return fmt.Errorf("want 0 to %d", most)
		}
		return nil
	})
}

func cronLine() field {
	const help = "five cron fields, or @hourly @daily @weekly @monthly @yearly"
	return scalar("cron", help, func(j *Job) *string { return &j.Cron }, yamldoc.Value.Text, func(j *Job) (err error) {
		if strings.TrimSpace(j.Cron) == "" {
			return errors.New("is empty")
		}
		j.Schedule, err = cron.Parse(j.Cron)
		return err
	})
}

// timezone returns the field timezone. It loads each zone once for all files that are read with one table, because loading a zone reads a
// file.
func timezone() field {
	const help = "IANA zone of the cron line (default: the configured one)"
	zones := map[string]*time.Location{}
	return scalar("timezone", help, func(j *Job) *string { return &j.Timezone }, yamldoc.Value.Text, func(j *Job) (err error) {
		if zones[j.Timezone] == nil {
			zones[j.Timezone], err = loadZone(j.Timezone)
		}
		j.zone = zones[j.Timezone]
		return err
	})
}

// runAt returns the field run-at, which has whole seconds and is written with its offset.
func runAt() field {
	const help = "time, such as 2026-03-07T09:00 (in the configured zone), or with an offset"
	return parsed("run-at", help, func(j *Job, s string) error {
		at, floating, ok := timeparse.ISO(s)
		if !ok {
			return fmt.Errorf("%q is not a time: write one like 2026-03-07T09:00 or 2026-03-07T09:00:00+01:00", s)
		}
		j.RunAt, j.floating = at.Truncate(time.Second), floating
		return nil
	}, func(j Job) any { return j.RunAt.Format(time.RFC3339) })
}

// chainParent returns the field chain-parent. It is not written for the first reminder of a chain, whose own id it is.
func chainParent() field {
	f := text("chain-parent", "id of the first reminder of the chain", func(j *Job) *string { return &j.ChainParent }, checkID)
	f.write = func(j Job) any {
		return unless(j.ChainParent == "" || j.MaxChain > 0 && j.ChainParent == j.ID, j.ChainParent)
	}
	return f
}

// description returns the field description. White space alone counts as no description.
func description() field {
	const help = "name of the job in lists and messages"
	return scalar("description", help, func(j *Job) *string { return &j.Description }, yamldoc.Value.Text, func(j *Job) error {
		if strings.TrimSpace(j.Description) == "" {
			j.Description = ""
		}
		return nil
	})
}

// thinking returns the field thinking. Different spellings (True, 0100) are stored in one form.
func thinking() field {
	return field{
		key: "thinking", kind: scalarField, help: "true, false, off, adaptive, main or a number of tokens",
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
			return oneOf("true", "false", "off", "adaptive", model.LikeMain)(s)
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
	help := strings.Join(modes, ", ") + ": when the run reports to the main session"
	return text("update-main-session", help, func(j *Job) *string { return (*string)(&j.Update) }, oneOf(modes...))
}

func maxCost() field {
	const help = "maximum cost of a run, in USD"
	return scalar("max-cost", help, func(j *Job) *float64 { return &j.MaxCost }, yamldoc.Value.Number, func(j *Job) error {
		if !(j.MaxCost > 0 && j.MaxCost < 1e9) {
			return errors.New("must be more than zero, and less than a billion")
		}
		return nil
	})
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
