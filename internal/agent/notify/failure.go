package notify

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// Remedies of several causes.
const (
	askRemedy = "`ollim doctor --ask` asks each engine a question for about a cent"
	logOf     = "`ollim run log %s` shows what happened"
)

// Failure returns the cause of a run's failure. what says how the run ended; the text uses it if the fault is the job's own. home is the data
// directory.
func Failure(record runlog.Record, what string, home paths.Dir) Cause {
	c := Cause{
		Kind: Kind(record.Fault), Subject: record.Engine, Run: record.ID, Remedy: fmt.Sprintf(logOf, record.ID),
		Jobs: []Affected{{ID: record.Job, Name: record.Label(), Count: notice.Count{Failed: 1}}},
	}
	switch c.Kind {
	case Service:
		c.Name = "The service of the engine " + record.Engine
		c.Text = fmt.Sprintf("The model service of the engine %s is overloaded or cannot be reached: %s", record.Engine, record.Error)
		c.Remedy = "wait until it passes; " + askRemedy
	case Key:
		c.Name = "The key of the engine " + record.Engine
		c.Text = fmt.Sprintf("The engine %s has no key or login that works: %s", record.Engine, record.Error)
		c.Remedy = keyRemedy(record.Engine) + "; then " + askRemedy
	case Model:
		c.Subject, _, _ = strings.Cut(cmp.Or(record.ModelUsed, record.Model), "[") // without a window, as in claude-opus-4-8[1m]
		c.Name = "The model " + c.Subject
		c.Text = fmt.Sprintf("The model %s of the engine %s cannot be used: %s", c.Subject, record.Engine, record.Error)
		c.Remedy = "choose another one: `model:` of a job, `ollim config set chat.model`, or `native.model`; " +
			"`ollim config set fallback MODEL` names one for the next time"
	case Engine:
		c.Name, c.Remedy = "The engine "+record.Engine, "`ollim doctor` says what is missing"
		c.Text = fmt.Sprintf("The engine %s cannot be used: %s", record.Engine, record.Error)
	case Disk:
		c.Subject, c.Name, c.Remedy = "full", "The disk", "free disk space: `df -h "+string(home)+"`"
		c.Text = "The disk is full: " + record.Error
	case Limit:
		c.Subject, c.Name, c.Remedy = "spend", "The spending limit", "`ollim cost` shows what was spent, `ollim config list` the limits"
		if limit := limitIn(record.Error); limit != nil {
			same := AtLimit(limit)
			c.Subject, c.Name, c.Remedy, c.Until = same.Subject, same.Name, same.Remedy, same.Until
		}
		c.Text = failed(record.Label(), "ended early", record.Error)
	default:
		c.Kind, c.Subject, c.Name = Job, record.Job, record.Label()
		c.Text = failed(record.Label(), what, record.Error)
	}
	return c
}

// Substitute returns the cause of a run that another model than the requested one has answered. setting says where the model is chosen.
func Substitute(record runlog.Record, model, setting string) Cause {
	c := Cause{
		Kind: Model, Subject: model, Name: "The model " + model, Run: record.ID, Remedy: setting,
		Text: fmt.Sprintf("%s answers in place of %s: %s", record.ModelUsed, model, record.Fallback),
		Jobs: []Affected{{ID: record.Job, Name: record.Label()}},
	}
	if strings.Contains(record.Fallback, runlog.StaysOverloaded) {
		c.Remedy = "nothing if it passes; else " + setting
	}
	return c
}

func keyRemedy(name string) string {
	if name == engine.ClaudeCode {
		return "`claude auth login`, or `ollim secret set engine.ANTHROPIC_API_KEY`"
	}
	if strings.HasPrefix(name, engine.ACP+":") {
		return "`ollim secret set engine.KEY`, with the variable of the agent's key, which `ollim doctor` names"
	}
	return "`ollim secret set engine.ANTHROPIC_API_KEY`, or `engine.OPENAI_API_KEY`, with a valid key"
}

// limitIn returns the daily or monthly limit that the error of a run names; nil if it names none. The cause is then the same whether the
// limit ended the run or refused it.
func limitIn(text string) *spend.Limit {
	m := regexp.MustCompile(`\b(runs-per-day|per-day|per-month): .* of ([0-9.]+).*, until ([0-9TZ:+-]+)`).FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	allowed, err := strconv.ParseFloat(m[2], 64)
	until, untilErr := time.Parse(time.RFC3339, m[3])
	if err == nil && untilErr == nil {
		return &spend.Limit{Key: m[1], Allowed: allowed, Until: until}
	}
	return nil
}

// AtLimit returns the cause of a daily or monthly limit that is reached.
func AtLimit(limit *spend.Limit) Cause {
	unit := map[string]string{"per-day": "day's", "runs-per-day": "day's", "per-month": "month's"}[limit.Key]
	c := Cause{
		Kind: Limit, Subject: limit.Key, Name: "The " + unit + " spending limit", Until: limit.Until,
		Text: "No automatic run starts: " + limit.Error(),
	}
	raised := strconv.FormatFloat(max(2*limit.Allowed, 1), 'f', -1, 64)
	c.Remedy = fmt.Sprintf("`ollim cost` shows what was spent; `ollim config set spend.%s %s` raises it", limit.Key, raised)
	if limit.Until.IsZero() {
		c.Name = "The spending limit " + limit.Key
		c.Remedy = "`ollim config set spend.per-run 1.00` lets runs start again"
	}
	return c
}

// NotRun returns the text that a job was not allowed to run.
func NotRun(label, reason string) string { return fmt.Sprintf("%s was not run: %s", label, reason) }

// failed returns the text that a job did not do its work.
func failed(label, what, reason string) string {
	if reason == "" {
		return label + " " + what
	}
	return fmt.Sprintf("%s %s: %s", label, what, reason)
}
