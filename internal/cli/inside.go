package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/forward"
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

// inside reports whether a run has started this command: then the gates of the run's tools hold.
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

// allowed is the spelling of a command, with a noun in the plural too, that the run may use; "" if it may use none.
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

// This file carries commands out of a sealed run, whose processes cannot read the data directory: the client is what such a process
// starts, and the server is the process that executes the run.

// forwardPatience is how long a hook waits for its answer: longer than the server may take, and shorter than the engine's wait, after
// which it lets pass what it asked about.
const forwardPatience = hookPatience + 10*time.Second

// forwardTo lets the server at a socket execute a command line. It never falls back to files: a hook that is not answered makes
// the engine refuse what it asked about.
func forwardTo(ctx context.Context, socket string, args []string, in io.Reader, out *os.File, errOut io.Writer) int {
	failed := statusUnavailable
	if n := len(args); n > 1 && args[n-2] == "hook" {
		failed = hookError
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, forwardPatience, errors.New("no answer in time"))
		defer cancel()
	}
	dir, _ := os.Getwd() // the server says so where a command needs it
	status, err := forward.Run(ctx, socket, forward.Call{Dir: dir, Args: args}, in, probed{out}, errOut)
	switch {
	case errors.Is(err, forward.ErrTooLong):
		failed = statusUsage
		fallthrough
	case err != nil:
		_, _ = fmt.Fprintf(errOut, "ollim: the process of this run at %s does not answer: %v\n", socket, err)
		return int(failed)
	}
	return status
}

// probed is standard output, whose reader an empty write looks for.
type probed struct{ *os.File }

func (p probed) Write(data []byte) (int, error) {
	if len(data) == 0 && readerGone(p.File) {
		return 0, syscall.EPIPE
	}
	return p.File.Write(data)
}

// executeForwarded executes a command line that a process of a sealed run has sent. The process may be the agent's engine or anything
// that the agent has started, and its command may do what an agent's command may do.
func (d *deps) executeForwarded(ctx context.Context, run app.Sealed, r forward.Request) (status int) {
	defer func() {
		if p := recover(); p != nil { // ends the command, as in a process of its own, and not the run
			_, _ = fmt.Fprintf(r.Stderr, "panic: %v\n\n%s", p, debug.Stack())
			status = int(hookError)
		}
	}()
	c := &deps{
		In: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, App: run.App(), Automatic: d.Automatic, caller: r.Dir, forwarded: true,
	}
	args, err := c.agentsOwn(run, r.Args)
	if err != nil {
		return c.conclude("", &ran{err})
	}
	return execute(ctx, c, args)
}

// agentsOwn returns the arguments that a process of a run may use, without the flags with which its engine names files.
func (d *deps) agentsOwn(run app.Sealed, args []string) ([]string, error) {
	dir, err := d.Dir()
	if err != nil {
		return nil, err
	}
	located := []string{"--data-dir", string(dir), "--config", d.ConfigFile(dir)}
	if len(args) > len(located) && slices.Equal(args[:len(located)], located) {
		args = args[len(located):]
	}
	if forEngine(args, run.Servers) {
		return args, nil
	}
	if reason := policy.OllimRefusal(args, commandAccess()); reason != "" {
		return nil, fmt.Errorf("%w: %s", app.ErrNotAllowed, reason)
	}
	return args, nil
}

// forEngine reports whether the engine of a run starts a command. servers is the patterns of tools of MCP servers that it has.
func forEngine(args, servers []string) bool {
	if len(args) < 2 {
		return false
	}
	switch verb, rest := args[0]+" "+args[1], args[2:]; verb {
	case "hook pre-tool", "hook stop", "mcp serve":
		return len(rest) == 0
	case "mcp connect":
		return len(rest) > 0 && slices.Contains(policy.Servers(servers), rest[0]) &&
			!slices.ContainsFunc(rest[1:], func(pattern string) bool { return !slices.Contains(servers, pattern) })
	}
	return false
}

func (d *deps) path(name string) (string, error) {
	switch {
	case !d.forwarded || filepath.IsAbs(name):
		return filepath.Abs(name)
	case !filepath.IsAbs(d.caller):
		return "", fmt.Errorf("%s: the working directory is not known", name)
	}
	return filepath.Join(d.caller, name), nil
}
