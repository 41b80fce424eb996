package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/man"
)

// newRoot builds the commands that a command line may need; without args all of them.
func newRoot(d *deps, args ...string) *cobra.Command {
	root := &cobra.Command{
		Annotations:   agentAll(),
		Use:           "ollim",
		Short:         "Run a personal AI agent on a schedule",
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.version {
				return runVersion(d)
			}
			return runBare(cmd.Context(), d)
		},
	}
	root.Flags().BoolVar(&d.version, "version", false, "print the version and how it was built")
	f := root.PersistentFlags()
	f.StringVar(&d.DataDir, "data-dir", "", "the data directory (default $OLLIM_DATA_DIR, else ~/.ollim-bot)")
	f.StringVar(&d.ConfigPath, "config", "", "the settings file (default $OLLIM_CONFIG, else config.yaml in the data directory)")
	f.BoolVarP(&d.quiet, "quiet", "q", false, "print only warnings and errors")
	f.BoolVarP(&d.verbose, "verbose", "v", false, "print more on standard error")
	f.StringVar(&d.logFormat, "log-format", "text", "format of messages on standard error: text or json")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if why := refusedFlag(err); why != "" && (cmd == root || cmd.Name() == "ask") {
			return &ran{usage("%s", why)}
		}
		if strings.Contains(err.Error(), "unknown shorthand flag: ' '") {
			return &ran{hint(usage("%v", err), "put -- before a text that begins with a dash")}
		}
		return plainFlag(err)
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if d.logFormat != "text" && d.logFormat != "json" {
			return usage("--log-format %q: want text or json", d.logFormat)
		}
		if err := d.guard(cmd); err != nil {
			return &ran{err}
		}
		return plainGroup(cmd.ValidateFlagGroups())
	}
	root.AddCommand(commandsFor(d, args)...)
	root.CompletionOptions.DisableDefaultCmd = len(root.Commands()) == 1 // completion is for all commands
	helpCommand := newHelp(d, root)
	root.SetHelpCommand(helpCommand)
	finish(root)
	finish(helpCommand)
	if isCompletion(args) {
		root.InitDefaultHelpCmd()
		d.complete(root)
	}
	root.SetHelpFunc(d.helper(root))
	return root
}

// describe gives a command the texts of its manual page. Those of cobra's own commands are in the program.
func describe(cmd *cobra.Command) {
	if cmd.Long == "" {
		cmd.Long, cmd.Example = man.Help(cmd.CommandPath())
	}
}

// plainFlag rewords the error of a flag's value to say which kind of value the flag takes.
func plainFlag(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	wanted := map[string]string{"int": "want a whole number", "float64": "want a number", "bool": "want true or false"}[bad.GetFlag().Value.Type()]
	switch {
	case wanted == "":
		return err
	case errors.Is(err, strconv.ErrRange):
		wanted = "out of range"
	}
	return fmt.Errorf("--%s %q: %s", bad.GetFlag().Name, bad.GetValue(), wanted)
}

// plainGroup says which flags exclude each other, instead of which are in a group.
func plainGroup(err error) error {
	if err == nil {
		return nil
	}
	_, set, found := strings.Cut(err.Error(), "none of the others can be; [")
	set, _, whole := strings.Cut(set, "]")
	if !found || !whole {
		return err
	}
	return usage("%s: only one of them can be given", "--"+strings.Join(strings.Fields(set), " and --"))
}

// command makes a command. The words of use say how many arguments it takes.
func command(access map[string]string, use, short string, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Annotations: access, Use: use, Short: short, RunE: run}
}

// since returns the instant to which the value of a flag --since looks back.
func (d *deps) since(text string) (time.Time, error) {
	back, err := job.ParseDuration(text)
	if err != nil {
		return time.Time{}, usage("--since %v", err)
	}
	return d.Now().Add(-back), nil
}

// past is since for a command that shows only the past. The duration must not be zero.
func (d *deps) past(text string) (time.Time, error) {
	if back, err := job.ParseDuration(text); err != nil || back == 0 {
		return time.Time{}, usage("--since %q: want a duration like 7d", text)
	}
	return d.since(text)
}

// hidden leaves a command out of lists of commands.
func hidden(cmd *cobra.Command) *cobra.Command {
	cmd.Hidden = true
	return cmd
}

// group makes a noun, whose verbs are its subcommands. Called without a verb it lists them.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	var names []string
	for _, v := range verbs {
		v.Aliases = map[string][]string{"list": {"ls"}, "rm": {"remove", "delete"}, "cancel": {"rm", "remove", "delete"}}[v.Name()]
		if !v.Hidden {
			names = append(names, v.Name())
		}
	}
	cmd := &cobra.Command{
		Use: use, Aliases: []string{use + "s"}, Short: short, Args: cobra.ArbitraryArgs, Annotations: map[string]string{onlyVerbs: "yes"},
	}
	cmd.AddCommand(verbs...)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("missing command: want %s", strings.Join(names, ", "))
		}
		return usage("unknown command %q: want one of %s", args[0], strings.Join(names, ", "))
	}
	return cmd
}

// finish makes a command and its verbs check the number of arguments by the usage line, unless Args is set, and mark the errors of their
// work with ran.
func finish(cmd *cobra.Command) {
	check, do := cmd.Args, cmd.RunE
	if check == nil {
		check = argsOf(cmd.Use)
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		switch {
		case err == nil, as[*usageError](err):
			return err
		case !cmd.HasParent() && len(args) > 0:
			return usage("unknown command %q%s", args[0], plaintext.Suggestion(near(cmd, args[0])...))
		}
		return usage("want: %s", cmd.UseLine())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := do(cmd, args)
		if err == nil || cmd.Annotations[onlyVerbs] != "" {
			return err
		}
		return &ran{err}
	}
	for _, verb := range cmd.Commands() {
		finish(verb)
	}
}

// near returns the commands that a word may mean: those that do what the word means in other programs, else those of a similar name.
func near(root *cobra.Command, word string) []string {
	if known := foreignWords()[word]; known != nil {
		return known
	}
	root.SuggestionsMinimumDistance = 2
	return root.SuggestionsFor(word)
}

// foreignWords maps words of other programs to commands.
func foreignWords() map[string][]string {
	lists := []string{"run list", "routine list"}
	return map[string][]string{
		"list": lists, "lst": lists, "ls": lists, "jobs": lists, "history": {"run list", "session history"}, "ps": {"status", "run list"},
		"log": {"run log"}, "logs": {"run log"}, "tail": {"run log -f"}, "show": {"run show", "routine show"},
		"add": {"routine add"}, "create": {"routine add"}, "new": {"routine add"}, "edit": {"routine edit"}, "rm": {"routine rm"},
		"delete": {"routine rm"}, "remove": {"routine rm"}, "start": {"fire"}, "kill": {"stop"}, "cron": {"schedule list"},
		"crontab": {"schedule print crontab"}, "install": {"schedule install", "man install"}, "search": {"session search"},
		"set": {"config set"}, "get": {"config get"}, "settings": {"config list"}, "login": {"init"}, "setup": {"init"},
	}
}

// argsOf checks the number of arguments by a usage line such as "show [NAME] RUN...".
func argsOf(use string) cobra.PositionalArgs {
	words, needed := strings.Fields(use)[1:], 0
	for _, word := range words {
		if !strings.HasPrefix(word, "[") {
			needed++
		}
	}
	if strings.Contains(use, "...") {
		return cobra.MinimumNArgs(needed)
	}
	return cobra.RangeArgs(needed, len(words))
}

// inHome returns the work of a command that needs the data directory and its settings.
func inHome(d *deps, do homeCommand) func(*cobra.Command, []string) error { return opened(d.Home, do) }

// inAnyHome is inHome for a command that must work even if the settings cannot be used.
func inAnyHome(d *deps, do homeCommand) func(*cobra.Command, []string) error {
	return opened(d.AnyHome, do)
}

type homeCommand func(context.Context, app.Home, []string) error

func opened(open func() (app.Home, error), do homeCommand) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		h, err := open()
		if err != nil {
			return err
		}
		return do(cmd.Context(), h, args)
	}
}

func verbOf(cmd *cobra.Command) string {
	if cmd == nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "ollim"))
}

// walk visits every command that people can see, a parent before its children.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() || child.Name() == "help" && !cmd.HasParent() {
			walk(child, visit)
		}
	}
}

func newVersion(d *deps) *cobra.Command {
	return withJSON(d, command(agentOwn(""), "version", "Print the version and how it was built",
		func(*cobra.Command, []string) error { return runVersion(d) }), "print one JSON object")
}

func runVersion(d *deps) error {
	v := struct {
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if d.json {
		return d.emit(v)
	}
	return d.answer(fmt.Sprintf("ollim %s %s %s/%s", v.Version, v.Go, v.OS, v.Arch), nil)
}
