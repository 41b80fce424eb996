package doctor

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/skill"
)

// loaded returns the job files that can be read. Those that cannot be are the business of the check "jobs".
func (e *examination) loaded() []job.Job {
	set, _ := e.home.Jobs.Load()
	return set.Jobs
}

// enabled returns the jobs that are to run.
func (e *examination) enabled() (list []job.Job) {
	for _, j := range e.loaded() {
		if j.Enabled {
			list = append(list, j)
		}
	}
	return list
}

// jobs reads all job files, and looks for routines that never fire and for executables that are missing.
func (e *examination) jobs(context.Context) string {
	set, err := e.home.Jobs.Load()
	e.fault(err, "")
	if len(set.Faults) > 0 {
		e.fault(set.Faults, "correct the file; then: ollim check")
	}
	for _, j := range set.Jobs {
		if !j.Enabled {
			continue
		}
		if _, fires := j.Schedule.Next(e.App.Now(), j.Zone(e.home.Config.Zone)); j.Kind == job.Routine && !fires {
			e.warn("ollim routine edit "+j.Name(), "%s never fires: cron %q", j.Name(), j.Cron)
		}
		for _, program := range j.Unstartable(e.home.Dir) {
			e.fail("create it, or chmod +x "+program.Path+"; or remove "+program.Key+" from the job", "%s: %s: %s", j.Name(), program.Key, program.Reason)
		}
	}
	return plaintext.Count(len(set.Jobs), "job")
}

// skills reads all skills and subagents, also those that jobs name and that are not there.
func (e *examination) skills(context.Context) string {
	const remedy = "correct the file; then: ollim check"
	found, faults, err := e.home.Skills.Load()
	e.fault(err, "")
	if len(faults) > 0 {
		e.fault(faults, remedy)
	}
	names := skill.AgentNames(e.home.Dir)
	for _, name := range names {
		_, err := skill.LoadAgent(e.home.Dir, name)
		e.fault(err, remedy)
	}
	for _, j := range e.enabled() {
		for _, name := range j.Skills {
			if _, err := e.home.Skills.Find(name); isUnknown(err) {
				e.fault(err, "create it, or remove it from skills of "+j.Name())
			}
		}
		if j.Subagent == "" {
			continue
		}
		if _, err := skill.LoadAgent(e.home.Dir, j.Subagent); isUnknown(err) {
			e.fault(err, "create it, or remove it from subagent of "+j.Name())
		}
	}
	return plaintext.Count(len(found), "skill") + ", " + plaintext.Count(len(names), "subagent")
}

// isUnknown reports whether a name that a job has is that of no file. Other faults of a file are named once, for the file.
func isUnknown(err error) bool { return errors.As(err, new(*skill.Unknown)) }

// approvals names what waits for the owner.
func (e *examination) approvals(context.Context) string {
	book := e.home.Approvals
	for _, j := range e.enabled() {
		waits, err := book.Waits(j)
		e.fault(err, "ollim approve "+j.Name())
		if waits {
			e.warn("ollim approve "+j.Name(), "%s does not run: it waits for your approval", j.Name())
		}
	}
	policy, err := book.Policy()
	e.fault(err, "correct the file; then: ollim approve "+approval.PolicyName)
	if policy.Waits {
		e.warn("ollim approve "+approval.PolicyName, "%s gives no tools: it waits for your approval", approval.PolicyName)
	}
	return "nothing waits for your approval"
}

// servers looks at the MCP servers that are configured, and at those that jobs name.
func (e *examination) servers(context.Context) string {
	list := e.home.Config.Servers
	for _, s := range list {
		e.fault(e.home.ServerFault(s.Name), "correct mcp-servers."+s.Name+" in "+e.App.ConfigFile(e.home.Dir))
	}
	for _, j := range e.loaded() {
		for _, name := range e.home.UnknownServers(j) {
			e.fail("add it, or remove its tools from the job", "%s uses the MCP server %s, which is not in mcp-servers of config.yaml", j.Name(), name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return plaintext.Count(len(list), "MCP server")
}
