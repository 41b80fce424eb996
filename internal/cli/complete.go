package cli

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/task"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/man"
)

// A completer lists the words that may stand in a place, each with a tab and a description if it has one. It omits what cannot be read,
// because completion shows no errors. Most completers list directories only.
type completer func(d *deps, dir paths.Dir) []string

// maxCompleted is how many runs and transcripts are listed, the newest first.
const maxCompleted = 50

const maxAbout = 60

func completers() map[string]completer {
	routines, reminders, hooks := namesIn(paths.Dir.Routines, ".md"), namesIn(paths.Dir.Reminders, ".md"), namesIn(paths.Dir.Webhooks, ".md")
	jobs := all(routines, reminders, hooks)
	runs := all(words("last"), jobs, newestRuns(false))
	sessions := all(words("main"), routineSessions, namesIn(paths.Dir.Channels, ".json"), transcripts)
	skills := namesIn(paths.Dir.Skills, "")
	return map[string]completer{
		"fire": jobs, "approve": all(jobs, prefixed(skillPrefix, skills), words("tool-policy.yaml")),
		"routine show": routines, "routine edit": routines, "routine rm": routines, "routine enable": routines, "routine disable": routines,
		"reminder show": reminders, "reminder cancel": reminders,
		"webhook show": hooks, "webhook edit": hooks, "webhook rm": hooks, "webhook call": hooks,
		"schedule list": all(routines, reminders), "schedule audit": routines,
		"run list": jobs, "run show": runs, "run log": runs, "stop": newestRuns(true), "answer": openQuestions,
		"session show": sessions, "session id": sessions, "session compact": sessions, "session branch": sessions,
		"session export": sessions, "session history": sessions, "session rm": sessions, "session clear": all(words("main"), routineSessions),
		"skill show": skills, "skill render": skills,
		"config get": settings, "config set": settings,
		"secret set": words(config.KnownSecrets()...), "secret rm": func(d *deps, _ paths.Dir) []string { return secretNames(d) },
		"task done": tasks, "task edit": tasks, "task rm": tasks,
	}
}

// flagCompleters returns the completers of flags by name. They also complete settings that end in that name.
func flagCompleters() map[string]completer {
	return map[string]completer{
		"model": models, "fallback": models, "engine": words(engine.ClaudeCode, engine.Native, engine.ACP+":", "script:"), "resume": transcripts,
		"output-format": words("text", "json", "stream-json"), "log-format": words("text", "json"),
		"permissions": words("dontAsk", "default", "acceptEdits"), "thinking": words("off", "adaptive", "true"),
		"by": words("job", "day", "model"), "skills": namesIn(paths.Dir.Skills, ""),
	}
}

func isCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

func (d *deps) complete(root *cobra.Command) {
	d.Warn = func(string) {}
	arguments, values := completers(), flagCompleters()
	walk(root, func(cmd *cobra.Command) {
		cmd.ValidArgsFunction = d.arguments(cmd, arguments[verbOf(cmd)])
		for name, c := range values {
			if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
					return d.candidates(c, begun), cobra.ShellCompDirectiveNoFileComp
				})
			}
		}
	})
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return helpTopics(root, args, begun), cobra.ShellCompDirectiveNoFileComp
		}
	}
}

func helpTopics(root *cobra.Command, args []string, begun string) (list []string) {
	at, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return nil
	}
	for _, c := range at.Commands() {
		if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), begun) {
			list = append(list, c.Name()+"\t"+c.Short)
		}
	}
	if len(args) > 0 {
		return list
	}
	for _, e := range man.Section("7") {
		known := slices.ContainsFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == e.Topic() })
		if !known && strings.HasPrefix(e.Topic(), begun) {
			list = append(list, e.Topic()+"\t"+e.Summary)
		}
	}
	return list
}

// arguments completes the first argument, or all where the usage repeats it. Files are left to the shell.
func (d *deps) arguments(cmd *cobra.Command, c completer) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	usage := strings.Fields(cmd.Use)[1:]
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch first := len(args) == 0; {
		case c != nil && (first || strings.Contains(usage[0], "...")):
			list := slices.DeleteFunc(d.candidates(c, begun), func(word string) bool {
				word, _, _ = strings.Cut(word, "\t")
				return slices.Contains(args, word)
			})
			return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		case cmd.Use == "set KEY VALUE..." && len(args) == 1:
			if c := flagCompleters()[args[0][strings.LastIndexByte(args[0], '.')+1:]]; c != nil {
				return d.candidates(c, begun), cobra.ShellCompDirectiveNoFileComp
			}
		case strings.Contains(cmd.Use, "FILE"):
			return nil, cobra.ShellCompDirectiveDefault
		case first && len(usage) == 1 && strings.Contains(usage[0], "|") && usage[0] == strings.ToLower(usage[0]):
			return d.candidates(words(strings.Split(strings.Trim(usage[0], "[]"), "|")...), begun), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// candidates returns the words of a completer that begin with the typed word.
func (d *deps) candidates(c completer, begun string) (list []string) {
	dir, err := d.Dir()
	if err != nil {
		return nil
	}
	for _, line := range c(d, dir) {
		word, about, described := strings.Cut(line, "\t")
		if !strings.HasPrefix(word, begun) || printable(word) != word {
			continue
		}
		if described {
			word += "\t" + plaintext.Short(printable(about), maxAbout)
		}
		list = append(list, word)
	}
	return list
}

func words(list ...string) completer {
	return func(*deps, paths.Dir) []string { return slices.Clone(list) }
}

func all(list ...completer) completer {
	return func(d *deps, dir paths.Dir) (found []string) {
		for _, c := range list {
			found = append(found, c(d, dir)...)
		}
		return found
	}
}

func prefixed(prefix string, c completer) completer {
	return func(d *deps, dir paths.Dir) []string {
		list := c(d, dir)
		for i := range list {
			list[i] = prefix + list[i]
		}
		return list
	}
}

// namesIn completes the names in a directory that end in end, without that end.
func namesIn(folder func(paths.Dir) string, end string) completer {
	return func(_ *deps, dir paths.Dir) (names []string) {
		entries, _ := os.ReadDir(folder(dir))
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), end); ok && !strings.HasPrefix(e.Name(), ".") {
				names = append(names, name)
			}
		}
		return names
	}
}

func newestRuns(inProgress bool) completer {
	return func(_ *deps, dir paths.Dir) (list []string) {
		book := runlog.Book{Home: dir, Zone: time.UTC}
		ids, _ := book.After(time.Time{})
		for _, id := range slices.Backward(ids[max(len(ids)-maxCompleted, 0):]) {
			switch r, err := book.Load(id); {
			case err != nil, inProgress && r.Done():
			case inProgress:
				list = append(list, r.ID+"\t"+r.Name)
			default:
				list = append(list, r.ID+"\t"+r.Name+" "+outcome(r))
			}
		}
		return list
	}
}

func openQuestions(_ *deps, dir paths.Dir) (list []string) {
	all, _ := question.Book{Home: dir}.List()
	for _, q := range all {
		list = append(list, q.Run+"\t"+q.Text)
	}
	return list
}

func routineSessions(_ *deps, dir paths.Dir) (list []string) {
	ids, _ := session.Book{Home: dir}.Routines()
	for _, id := range ids {
		list = append(list, "routine:"+id)
	}
	return list
}

func transcripts(_ *deps, dir paths.Dir) (list []string) {
	all, _ := transcript.Dir(dir.Sessions()).Names()
	for _, t := range all[:min(len(all), maxCompleted)] {
		list = append(list, t.ID+"\t"+t.Timestamp.Format("2006-01-02 15:04"))
	}
	return list
}

func settings(*deps, paths.Dir) []string { return config.Keys() }

func tasks(_ *deps, dir paths.Dir) (list []string) {
	all, _ := task.Book{Home: dir}.All()
	for _, t := range all {
		if !t.Done {
			list = append(list, strconv.Itoa(t.Number)+"\t"+t.Text)
		}
	}
	return list
}

func models(d *deps, _ paths.Dir) (list []string) {
	h, err := d.NewHome()
	if err != nil {
		return nil
	}
	table, _ := h.Models()
	for _, m := range table.Models() {
		list = append(append(list, m.ID), m.Aliases...)
	}
	return list
}
