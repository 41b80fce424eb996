package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

var errUnknown = errors.New("unknown tool; names are case-sensitive, as in Read and WebFetch")

// instead has the tools of the claude command that nothing may allow, by what does the same with ollim: what they schedule, send or start
// ends with the process, and no record shows it.
const instead = `
CronCreate a routine: ollim routine add
CronDelete a routine: ollim routine rm
CronList a routine: ollim routine list, or ollim schedule list
ScheduleWakeup a reminder: ollim reminder add, or the tool add_reminder
Monitor a routine with a gate, see ollim-routine(5)
SendMessage a message to the owner: ollim ping, or the tool ping_user
PushNotification a message to the owner: ollim ping, or the tool ping_user
AskUserQuestion a question to the owner: ollim ping --ask, or the tool ask_owner
ListAgents the list of runs: ollim run list
TaskStop the command that ends runs: ollim stop
Workflow a subagent: subagent: NAME in the job, or the tool Task
RemoteTrigger a webhook: ollim webhook add
EnterWorktree a writable directory: rw:DIR in dirs of the job
ExitWorktree a writable directory: rw:DIR in dirs of the job`

// unknownTool returns the error for a tool that no pattern may name.
func unknownTool(name string) error {
	for line := range strings.Lines(strings.TrimPrefix(instead, "\n")) {
		if tool, what, _ := strings.Cut(strings.TrimSpace(line), " "); tool == name {
			return fmt.Errorf("%s cannot be used: use %s", name, what)
		}
	}
	return errUnknown
}

// Judge says why a pattern may not stand in a job or policy file, nil if it may: everything that Parse refuses, tools that are
// not known, ollim patterns that match an owner's verb, and paths that reach into the protected names or leave the roots. Roots
// are the directories outside the working directory that absolute patterns may reach (a job's dirs); Dir must be absolute.
// Judge looks at nothing but the text; what links lead to is Decide's to see.
func Judge(text string, roots ...Root) error {
	p, err := Parse(text)
	switch {
	case err != nil:
		return err
	case p.glob != nil:
		err = p.judgePath(roots)
	case p.words != nil:
		err = p.judgeCommand()
	case kindOf(p.tool) == unknown && p.server == "":
		err = unknownTool(p.tool)
	}
	if err != nil {
		return fmt.Errorf("tool pattern %s: %w", quote(text), err)
	}
	return nil
}

func (p Pattern) judgeCommand() error {
	if p.words[0][0] == ollim {
		if reason := ollimPattern(p.words); reason != "" {
			return errors.New(reason)
		}
	}
	for _, w := range p.words {
		names := strings.Split(strings.TrimPrefix(w[0], "./"), "/")
		if len(names) > 1 && slices.ContainsFunc(protectedNames(), func(name string) bool { return strings.EqualFold(name, names[0]) }) {
			return fmt.Errorf("it reaches %s", strings.ToLower(names[0]))
		}
		if slices.Contains(names, "..") {
			return errors.New("no .. in a path")
		}
	}
	return nil
}

// judgePath checks what the text of a file pattern can reach. A ** or a lone * never enters the protected names, so only a
// first name that has letters counts.
func (p Pattern) judgePath(roots []Root) error {
	if p.base != "" {
		base, _ := p.absolute("")
		for _, r := range roots {
			if filepath.IsAbs(r.Dir) && within(base, filepath.Clean(r.Dir)) && (r.Writable || !Edits(p.tool)) {
				return nil
			}
		}
		return errors.New("it leaves the working directory and the approved dirs")
	}
	first := p.glob[0]
	for _, name := range protectedNames() {
		file, literal := strings.Contains(name, "."), !strings.Contains(first, "*")
		if strings.Trim(first, "*") != "" && match(strings.ToLower(first), name) && (file == (len(p.glob) == 1) || literal) {
			return fmt.Errorf("it reaches %s", name)
		}
	}
	return nil
}

// protectedNames are the names in the data directory that no pattern may reach. Policy.Protected holds their paths.
func protectedNames() []string {
	return []string{"state", "sessions", "gates", "config.yaml", "tool-policy.yaml"}
}
