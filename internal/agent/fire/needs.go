package fire

import (
	"cmp"
	"errors"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

// needsOf returns what the engine of a job must be able to promise.
func needsOf(j job.Job) (n engine.Needs) {
	for _, text := range j.AllowedTools {
		if exactRead(text) {
			n.Reads = "allowed-tools: " + text
		}
	}
	if j.Mode() == job.Forked {
		n.Branch = "a background job without isolated: true or session: persistent"
	}
	if j.MaxCost > 0 {
		n.MaxCost = "max-cost"
	}
	if j.GateAudit > 0 {
		n.Records = "gate-audit"
	}
	if j.Subagent != "" {
		n.Delegate = "subagent: " + j.Subagent
	}
	n.Think(j.Thinking, "thinking: "+j.Thinking)
	return n
}

// exactRead reports whether a pattern lets only some files of a directory be read.
func exactRead(text string) bool {
	tool, scope, scoped := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if _, err := policy.Parse(text); err != nil || !scoped || tool != "Read" && tool != "Glob" && tool != "Grep" {
		return false
	}
	return scope != "**" && !strings.HasSuffix(scope, "/**")
}

// CheckEngine returns why the engine of a job cannot run it, and the key of the job's file that the error is about. It starts nothing, and
// leaves out what may change until the job fires, such as a program that is missing.
func (u Rules) CheckEngine(j job.Job) (key string, err error) {
	name := cmp.Or(j.Engine, u.r.Settings.Engine)
	if j.Plain || !strings.HasPrefix(name, engine.ACP+":") {
		return "", nil // the other engines promise all
	}
	made, err := u.r.Engines(name)
	if wrong := (*config.Wrong)(nil); errors.As(err, &wrong) && j.Engine != "" {
		return "engine", err
	}
	if err != nil {
		return "", nil //nolint:nilerr // the check of the settings reports it
	}
	return "", engine.GuaranteesOf(made, j.Model).Lacks(needsOf(j), name)
}

// Unreached returns the engine of a job with network: none if it is an agent that then reaches no model service; "" if it is not.
func (u Rules) Unreached(j job.Job) string {
	name := cmp.Or(j.Engine, u.r.Settings.Engine)
	if j.Network != job.NetworkNone || !strings.HasPrefix(name, engine.ACP+":") {
		return ""
	}
	if made, err := u.r.Engines(name); err != nil || engine.GuaranteesOf(made, j.Model).Key { // an error is reported elsewhere
		return ""
	}
	return name
}
