package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Annotations of commands.
const (
	// onlyVerbs marks a command that does nothing itself.
	onlyVerbs = "group"
	// agentKey says what an agent may do with the command. The Bash policy, `ollim help` inside a run, the guard before each command
	// and the socket of a sealed run read it.
	//   - all: what its patterns allow
	//   - own: the same, and without a pattern, from a sealed program, what belongs to its own run and job
	//   - never, as a command without it: nothing
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

// agentAll is the annotation of a command that agents may use where a pattern allows it.
func agentAll() map[string]string { return map[string]string{agentKey: "all"} }

// agentOwn is the annotation of a command that agents may use for their own run and job, without a pattern. tool is the tool of the same
// purpose, whose rules apply; "": there is none.
func agentOwn(tool string) map[string]string {
	return map[string]string{agentKey: "own", toolKey: tool}
}

// agentNever is the annotation of a command that agents may not use. inside is a value of insideKey.
func agentNever(inside string) map[string]string {
	return map[string]string{agentKey: "never", insideKey: inside}
}

// accessOf returns what an agent may do with a command. A noun only lists its verbs: agents may use it if they may use one of them.
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

// commandAccess returns the function for app.App.Commands. Its first call builds a command tree of its own.
func commandAccess() func(args []string) (string, policy.Access) {
	verbs := sync.OnceValue(func() policy.Verbs {
		root := newRoot(&deps{App: &app.App{}})
		root.InitDefaultHelpCmd()
		return verbsOf(root)
	})
	return func(args []string) (string, policy.Access) { return verbs().Access(args) }
}

func verbsOf(root *cobra.Command) policy.Verbs {
	verbs := policy.Verbs{}
	for _, noun := range root.Commands() {
		for _, cmd := range append(noun.Commands(), noun) {
			verbs[verbOf(cmd)] = accessOf(cmd)
			if cmd.HasParent() && cmd.Parent() == noun {
				for _, alias := range cmd.Aliases {
					verbs[noun.Name()+" "+alias] = accessOf(cmd)
				}
			}
		}
	}
	return verbs
}

// guard refuses, inside a run, a command that no agent may use.
func (d *deps) guard(cmd *cobra.Command) error {
	if cmd.Annotations[onlyVerbs] != "" || accessOf(cmd) != policy.Never || cmd.Annotations[insideKey] == programs {
		return nil
	}
	if cmd.Annotations[insideKey] == nested {
		return d.Outside()
	}
	return d.OwnerOnly()
}

// inside reports whether a run has started this command. The rules of the run's tools then apply.
func (d *deps) inside() bool { return d.RunID() != "" }

// useTool runs a command typed by an agent as the tool of the same purpose, with the same answers.
func (d *deps) useTool(ctx context.Context, h app.Home, tool string, input any) (string, error) {
	set, err := h.Tools()
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	answer, err := set.Use(ctx, tool, data)
	if err == nil {
		return answer, nil
	}
	if reason, bad := strings.CutPrefix(err.Error(), "bad arguments: "); bad {
		return "", &withStatus{errors.New(reason), statusUsage}
	}
	if as[*tools.Refused](err) {
		return "", fmt.Errorf("%w: %w", app.ErrNotAllowed, err)
	}
	return "", err
}

// mayUse refuses a command that a run uses without a pattern, if the run may not use the tool of the same purpose.
func (d *deps) mayUse(tool string) error {
	if !d.own {
		return nil
	}
	set, err := d.insideTools()
	if err == nil && !slices.Contains(set.Usable(), tool) {
		err = fmt.Errorf("%w: this run may not use %s", app.ErrNotAllowed, tool)
	}
	return err
}

// helpInside lists what a run may use: the commands of ollim that its patterns allow, and its tools.
func helpInside(root *cobra.Command, set *tools.Set) error {
	var lines []string
	walk(root, func(cmd *cobra.Command) {
		if spelling := allowed(cmd, set); spelling != "" {
			usage := strings.TrimPrefix(strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.CommandPath())
			lines = append(lines, fmt.Sprintf("%-52s %s\n", spelling+usage, cmd.Short))
		}
	})
	text := "Commands of ollim that this run may use; all except help take --help:\n" + strings.Join(lines, "")
	if names := set.Usable(); len(names) > 0 {
		text += "\nTools of ollim that this run may use: " + strings.Join(names, ", ") + "\n"
	}
	_, err := io.WriteString(root.OutOrStdout(), text)
	return err
}

// allowed returns the spelling of a command, with a noun in the singular or the plural, that the run may use; "" if there is none.
func allowed(cmd *cobra.Command, set *tools.Set) string {
	if cmd.Annotations[onlyVerbs] != "" || !cmd.HasParent() || accessOf(cmd) == policy.Never || unusable(cmd, set) {
		return ""
	}
	nouns, verb := []string{cmd.Name()}, ""
	if group := cmd.Parent(); group.HasParent() {
		nouns, verb = append([]string{group.Name()}, group.Aliases...), " "+cmd.Name()
	}
	for _, noun := range nouns {
		words := "ollim " + noun + verb
		if set.MayRun(words) || cmd.Name() != "help" && set.MayRun(words+" x") {
			return words
		}
	}
	return ""
}

// unusable reports whether a command is one of the agent's tools, which the run may not use.
func unusable(cmd *cobra.Command, set *tools.Set) bool {
	if verbOf(cmd) == "remind" && !set.Run.Foreground {
		return true
	}
	tool := cmd.Annotations[toolKey]
	return tool != "" && !slices.Contains(set.Usable(), tool)
}

// runs returns the records of runs that the command may show: all of them, or those of the run's own job. A run without a job, such as a
// question at a shell or a guest's turn, may show only its own record.
func (d *deps) runs(h app.Home) runlog.Book {
	book := h.Runs
	if !d.own {
		return book
	}
	run, err := book.Load(d.RunID())
	book.Only = func(r runlog.Record) bool {
		return err == nil && (r.ID == run.ID || r.OfJob() && r.Kind == run.Kind && r.Job == run.Job)
	}
	return book
}

// path returns an absolute path. A command that was forwarded has the working directory of its sender.
func (d *deps) path(name string) (string, error) {
	switch {
	case !d.forwarded || filepath.IsAbs(name):
		return filepath.Abs(name)
	case !filepath.IsAbs(d.caller):
		return "", fmt.Errorf("%s: the working directory is not known", name)
	}
	return filepath.Join(d.caller, name), nil
}
