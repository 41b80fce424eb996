package cli

import (
	"sync"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/policy"
)

// Annotations of commands.
const (
	// onlyVerbs marks a command that does nothing itself.
	onlyVerbs = "group"
	// agentKey says what an agent may do with the command: all, own (for its own run and job) or never. A command without it is
	// for no agent. The Bash policy, `ollim help` inside a run and the guard before each command read it.
	agentKey = "agent"
	// toolKey names the agent's tool that the command is when an agent types it.
	toolKey = "tool"
	// insideKey weakens the guard of a command that no agent may type.
	insideKey = "inside"
)

// The values of insideKey.
const (
	refused  = ""         // to every process that descends from a run
	nested   = "nested"   // while OLLIM_RUN is set; a gate can remove it to start something that is no part of its run
	programs = "programs" // not refused: for the engine's hooks and server, and for programs of the owner such as gates
)

// agentAll is the annotation of a command that agents may use freely.
func agentAll() map[string]string { return map[string]string{agentKey: "all"} }

// agentOwn is that of a command that agents may use for their own run and job: as the tool of the same purpose, if there is one.
func agentOwn(tool string) map[string]string {
	return map[string]string{agentKey: "own", toolKey: tool}
}

// agentNever is that of a command that agents may not use. inside is a value of insideKey.
func agentNever(inside string) map[string]string {
	return map[string]string{agentKey: "never", insideKey: inside}
}

// accessOf returns what an agent may do with a command. A noun says only which verbs it has: it is for agents if one of those is.
func accessOf(cmd *cobra.Command) policy.Access {
	switch cmd.Annotations[agentKey] {
	case "all":
		return policy.All
	case "own":
		return policy.Own
	}
	if cmd.Annotations[onlyVerbs] != "" {
		for _, verb := range cmd.Commands() {
			if accessOf(verb) != policy.Never {
				return policy.All
			}
		}
	}
	return policy.Never
}

// commandAccess returns what app.App has as Commands. It makes a tree of its own when it is first asked.
func commandAccess() func(args []string) (string, policy.Access) {
	verbs := sync.OnceValue(func() policy.Verbs {
		root := newRoot(&Deps{App: &app.App{}})
		root.InitDefaultHelpCmd()
		return verbsOf(root)
	})
	return func(args []string) (string, policy.Access) { return verbs().Access(args) }
}

// verbsOf returns what an agent may do with each command of a tree.
func verbsOf(root *cobra.Command) policy.Verbs {
	verbs := policy.Verbs{}
	for _, noun := range root.Commands() {
		for _, cmd := range append(noun.Commands(), noun) {
			verbs[verbOf(cmd)] = accessOf(cmd)
		}
	}
	return verbs
}

// guard refuses, inside a run, a command that no agent may use.
func (d *Deps) guard(cmd *cobra.Command) error {
	if cmd.Annotations[onlyVerbs] != "" || accessOf(cmd) != policy.Never || cmd.Annotations[insideKey] == programs {
		return nil
	}
	if cmd.Annotations[insideKey] == nested {
		return d.Outside()
	}
	return d.OwnerOnly()
}
