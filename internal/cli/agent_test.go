package cli

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/policy"
)

// commandsOfAgents is what an agent may do with each command. A new command must be added here with the access that it was given.
func commandsOfAgents() map[string][]string {
	return map[string][]string{
		"all": {
			"budget", "check", "cost", "fork status", "model list", "reminder show", "routine list", "routine show", "session history", "session id", "session list", "skill list", "skill show", "status", "task add", "task done", "task edit",
			"task list", "task rm", "update list", "update peek", "webhook list", "webhook show",
		},
		"own": {
			"changed", "events", "fork exit", "fork save", "fork start", "help", "names", "ping", "remind", "reminder add", "reminder cancel", "reminder follow-up", "reminder list",
			"run list", "run log", "run replay", "run show", "session compact", "update add", "version", "why",
		},
		"never": {
			"answer", "approve", "backtest", "backtest continue", "backtest list", "backtest show", "discord check", "discord sync", "distil", "distil list", "distil put", "door send", "door test", "man install", "model check", "model move", "model update",
			"pause", "report", "resume", "routine rm",
			"schedule install", "schedule remove", "secret list", "secret rm", "secret set", "session branch",
			"session clear", "session export", "session rm", "session search", "session show", "stop", "webhook add", "webhook call", "webhook rm",
		},
		"never nested": {
			"ask", "budget set", "chat", "config set", "discord listen", "doctor", "door serve", "fire", "fork nudge", "fork reply", "fork report", "routine disable", "routine enable", "skill render", "tick", "update clear", "update pop", "webhook serve",
		},
		"never programs": { // an engine's hook or a gate may use them
			"config get", "config list", "demo", "hook post-tool", "hook pre-tool", "hook stop", "init", "mcp connect", "mcp serve", "mcp tools", "routine add", "routine edit",
			"schedule audit", "schedule diff", "schedule failed", "schedule list", "schedule print", "webhook edit",
		},
	}
}

// leaves are the commands of a tree that do something.
func leaves(cmd *cobra.Command) (found []*cobra.Command) {
	if cmd.HasParent() && cmd.Annotations[onlyVerbs] == "" {
		found = append(found, cmd)
	}
	for _, child := range cmd.Commands() {
		found = append(found, leaves(child)...)
	}
	return found
}

// Every command says what an agent may do with it, and the guard, the Bash policy and help read it alike.
func TestAccessOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n")
	w.must("routine", "add", "talk", "--cron", "0 9 * * *", "Look.")
	w.must("fire", "talk")
	defer w.inRun()()
	d := w.deps(nil, nil, nil)
	d.Commands = commandAccess()
	root := newRoot(d)
	root.InitDefaultHelpCmd()
	box, err := d.insideTools()
	if err != nil {
		t.Fatal(err)
	}
	box.Run.Tools = append(box.Run.Tools, "Bash(ollim *)")
	is := map[string][]string{}
	for _, cmd := range leaves(root) {
		verb, access := verbOf(cmd), strings.TrimSpace(cmd.Annotations[agentKey]+" "+cmd.Annotations[insideKey])
		is[access] = append(is[access], verb)
		typed := strings.HasPrefix(access, "all") || strings.HasPrefix(access, "own")
		if got := box.MayRun("ollim "+verb+" x") || box.MayRun("ollim "+verb); got != typed {
			t.Errorf("%s: the Bash policy allows it: %v", verb, got)
		}
		if listed := allowed(cmd, box) != ""; listed && !typed || !listed && strings.HasPrefix(access, "all") {
			t.Errorf("%s: help lists it: %v", verb, listed)
		}
		if got := d.guard(cmd) == nil; got != (typed || strings.HasSuffix(access, programs)) {
			t.Errorf("%s: the guard lets it pass: %v", verb, got)
		}
	}
	want := commandsOfAgents()
	for _, access := range slices.Sorted(maps.Keys(is)) {
		slices.Sort(is[access])
		if !slices.Equal(is[access], want[access]) {
			t.Errorf("%q:\nis   %q\nwant %q", access, is[access], want[access])
		}
	}
}

// A command of the owner's ends with status 77 inside a run, whatever its arguments are.
func TestOwnersCommandsInsideARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["OLLIM_RUN"] = "20260101T000000.000Z-000000"
	for _, verb := range slices.Concat(commandsOfAgents()["never"], commandsOfAgents()["never nested"]) {
		r := w.run(strings.Fields(verb)...)
		for args := []string{"x", "y"}; r.status == int(statusUsage) && len(args) > 0; args = args[1:] {
			r = w.run(append(strings.Fields(verb), args...)...)
		}
		if r.status != int(statusRefused) || !strings.Contains(r.errOut, ": not allowed: this is inside run 20260101T000000.000Z-000000") {
			t.Errorf("%s: exit status %d, %s", verb, r.status, r.errOut)
		}
	}
}

// A command that nothing was said of is for no agent.
func TestCommandWithoutAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["OLLIM_RUN"] = "20260101T000000.000Z-000000"
	d := w.deps(nil, nil, nil)
	root := newRoot(d)
	root.AddCommand(group("radio", "", &cobra.Command{Use: "listen", RunE: func(*cobra.Command, []string) error { return nil }}))
	verbs := verbsOf(root)
	for _, args := range [][]string{{"radio"}, {"radio", "listen"}, {"nosuch"}} {
		if _, access := verbs.Access(args); access != policy.Never {
			t.Errorf("%q: access %v", args, access)
		}
	}
	listen, _, err := root.Find([]string{"radio", "listen"})
	if err != nil || d.guard(listen) == nil {
		t.Errorf("the guard lets %q pass, %v", verbOf(listen), err)
	}
}

// The verbs that no pattern in a file may match are for no agent, and the tools of commands exist.
func TestAccessAgreesWithPatternsAndTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n")
	w.must("routine", "add", "talk", "--cron", "0 9 * * *", "Look.")
	w.must("fire", "talk")
	defer w.inRun()()
	d := w.deps(nil, nil, nil)
	box, err := d.insideTools()
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]bool{"": true}
	for _, tool := range box.List() {
		tools[tool.Name] = true
	}
	root := newRoot(d)
	verbs := verbsOf(root)
	for verb := range policy.OwnerVerbs() {
		if access := verbs[verb]; access != policy.Never {
			t.Errorf("%s: access %v", verb, access)
		}
	}
	for _, cmd := range leaves(root) {
		if tool := cmd.Annotations[toolKey]; !tools[tool] || tool != "" && accessOf(cmd) == policy.Never {
			t.Errorf("%s: tool %q, access %v", verbOf(cmd), tool, accessOf(cmd))
		}
	}
}

// ollim-tools(7) lists the commands that no agent may use.
func TestManualListsCommandsThatAgentsMayNotUse(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../man/ollim-tools.7")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "No agent may use these commands, whatever its patterns allow:\n")
	if !found {
		t.Fatal("ollim-tools(7) does not list the commands that no agent may use")
	}
	list, _, _ = strings.Cut(list, "Inside a run")
	var listed []string
	for _, match := range regexp.MustCompile(`(?m)^\.BR? "?([a-z -]+?)"?( [,.])?$`).FindAllStringSubmatch(list, -1) {
		listed = append(listed, match[1])
	}
	root := newRoot(&deps{App: &app.App{}})
	root.InitDefaultCompletionCmd()
	var never []string
	for _, noun := range root.Commands() {
		if accessOf(noun) == policy.Never {
			never = append(never, noun.Name())
			continue
		}
		for _, cmd := range noun.Commands() {
			if accessOf(cmd) == policy.Never {
				never = append(never, verbOf(cmd))
			}
		}
	}
	slices.Sort(never)
	if !slices.Equal(listed, never) {
		t.Errorf("listed %q\nwant   %q", listed, never)
	}
}
