package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/ui"
	"github.com/ollim/ollim/man"
)

func newHelp(d *deps, root *cobra.Command) *cobra.Command {
	cmd := command(agentOwn(""), "help [COMMAND | SUBJECT | PAGE | 7 | all | search WORDS...]",
		"Show help for a command, a subject or a manual page",
		func(_ *cobra.Command, args []string) error { return runHelp(d, root, args) })
	cmd.Args = cobra.ArbitraryArgs
	return cmd
}

func runHelp(d *deps, root *cobra.Command, args []string) error {
	if file, found := pageOf(args); found {
		return d.showPage(file)
	}
	d.pager.Page()
	out := root.OutOrStdout()
	switch {
	case len(args) == 0:
		if d.inside() {
			if box, err := d.insideTools(); err == nil {
				return helpInside(root, box)
			}
		}
		root.InitDefaultHelpFlag()
		return root.Help()
	case len(args) == 1 && args[0] == "all":
		columns := 0
		if isTerminal(d.Stdout) {
			columns = ui.Columns(d.Stdout)
		}
		return helpAll(root, columns)
	case len(args) == 1 && slices.Contains([]string{"1", "5", "7"}, args[0]):
		_, err := io.WriteString(out, man.Contents(args[0]))
		return err
	case len(args) > 1 && args[0] == "search":
		_, err := fmt.Fprintln(out, man.Answer(strings.Join(args[1:], " ")))
		return err
	}
	cmd, rest, err := root.Find(args)
	known := err == nil && cmd != root && len(rest) == 0
	if file, found := man.Find("ollim-" + args[0] + ".7"); found && len(args) == 1 && (!known || cmd.Annotations[onlyVerbs] != "") {
		return d.showPage(file)
	}
	if !known {
		return unknownTopic(root, args)
	}
	cmd.InitDefaultHelpFlag()
	return cmd.Help()
}

// helper returns the function that shows the help of a command: the texts of its manual page, and the pages about it.
func (d *deps) helper(root *cobra.Command) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, _ []string) {
		if cmd == root {
			hideRest(root)
		}
		describe(cmd)
		d.pager.Page()
		columns := ui.Columns(d.Stdout)
		text := helpText(cmd, columns)
		if pages := manualOf(cmd); pages != "" {
			text += "\n" + ui.Fold("Manual: "+pages+"\n", columns)
		}
		_, _ = io.WriteString(root.OutOrStdout(), text) // a failed write shows when the output is flushed
	}
}

// unknownTopic returns the error for words that name neither a command nor a page, with the names that may have been meant.
func unknownTopic(root *cobra.Command, args []string) error {
	topic := strings.Join(args, " ")
	if strings.HasPrefix(topic, "ollim") || strings.Trim(args[0], "0123456789") == "" {
		return hint(usage("no manual page %q", topic), "ollim help 7")
	}
	var names []string
	for _, e := range man.Section("7") {
		names = append(names, e.Topic())
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	near := append(plaintext.Similar(topic, names), man.Titled(topic)...)
	for _, name := range names {
		if len(topic) > 2 && strings.HasPrefix(name, topic) {
			near = append(near, name)
		}
	}
	slices.Sort(near)
	return hint(usage("no command or subject %q%s", topic, plaintext.Suggestion(slices.Compact(near)...)), "ollim help search %s", topic)
}

// manualOf returns the commands that show the pages about a command, or about the verbs of a noun.
func manualOf(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "ollim help ollim; ollim help 7 lists the subjects"
	}
	names := []string{cmd.CommandPath()}
	for _, verb := range cmd.Commands() {
		names = append(names, verb.CommandPath())
	}
	var commands []string
	for _, e := range man.About(names...) {
		commands = append(commands, "ollim help "+e.Topic())
	}
	return strings.Join(commands, ", ")
}

// pageOf returns the file of the manual page that words name: PAGE, or a section and PAGE, as for man.
func pageOf(words []string) (file string, found bool) {
	switch {
	case len(words) == 1:
		return man.Find(words[0])
	case len(words) == 2 && len(words[0]) == 1:
		page := strings.TrimPrefix(words[1], "ollim-")
		if page != "ollim" {
			page = "ollim-" + page
		}
		return man.Find(page + "." + words[0])
	}
	return "", false
}

// showPage shows a manual page on a terminal with man, and writes it as plain text to anything else.
func (d *deps) showPage(file string) error {
	if isTerminal(d.Stdout) && isTerminal(d.In) && d.manShows(file) {
		return nil
	}
	d.pager.Page()
	width, _ := ui.Size(d.Stdout)
	_, err := io.WriteString(d.Out, man.Plain(file, width))
	return err
}

// manShows shows a page with the man command and reports whether that worked. The page is a file in a temporary directory: every
// man command takes a path that has a slash, but not every one takes a page on standard input.
func (d *deps) manShows(file string) bool {
	program, err := exec.LookPath("man")
	if err != nil {
		return false
	}
	page, err := man.Pages().Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = page.Close() }()
	dir, err := os.MkdirTemp("", "ollim-man-")
	if err != nil {
		return false
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, err := io.ReadAll(page)
	path := filepath.Join(dir, file)
	if err != nil || os.WriteFile(path, text, 0o600) != nil {
		return false
	}
	cmd := exec.Command(program, path) //nolint:noctx // the owner ends it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.In, d.Stdout, d.Stderr
	if err := cmd.Start(); err != nil {
		return false
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for man, which has not inherited this
	return cmd.Wait() == nil
}

// helpAll lists all commands and exit statuses. In a pipe each command has one line.
func helpAll(root *cobra.Command, columns int) error {
	commands, statuses := ui.Table{Width: columns}, ui.Table{Width: columns}
	walk(root, func(cmd *cobra.Command) {
		if cmd.Annotations[onlyVerbs] == "" && cmd.HasParent() {
			commands.Add(ui.Cell{Text: strings.TrimSuffix(cmd.UseLine(), " [flags]"), Fit: ui.Prose}, ui.Cell{Text: cmd.Short, Fit: ui.Below})
		}
	})
	for _, m := range statusTable() {
		statuses.Add(ui.Cell{Text: fmt.Sprintf("%4d", m.status)}, ui.Cell{Text: m.text, Fit: ui.Prose})
	}
	lines := slices.Concat(commands.Lines(), []string{"", "EXIT STATUS"}, statuses.Lines())
	_, err := io.WriteString(root.OutOrStdout(), strings.Join(lines, "\n")+"\n")
	return err
}

// helpText returns the description, usage, examples, verbs and flags of a command, in lines of at most so many columns.
func helpText(cmd *cobra.Command, columns int) string {
	var text strings.Builder
	part := func(title, body string) {
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		text.WriteString(title + strings.TrimRight(body, " \n") + "\n")
	}
	for _, paragraph := range strings.Split(cmp.Or(cmd.Long, cmd.Short), "\n\n") {
		if !strings.HasPrefix(paragraph, "\t") { // an example in cobra's own texts
			paragraph = strings.Join(ui.Wrap(strings.Join(strings.Fields(paragraph), " "), columns, 0), "\n")
		}
		part("", paragraph)
	}
	usages := "  " + cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usages += "\n  " + cmd.CommandPath() + " [command]"
	}
	part("Usage:\n", usages)
	if len(cmd.Aliases) > 0 {
		part("Aliases:\n", "  "+cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		part("Examples:\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		verbs := ui.Table{Width: columns}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				verbs.Add(ui.Cell{Text: "  " + c.Name()}, ui.Cell{Text: c.Short, Fit: ui.Prose})
			}
		}
		part("Available Commands:\n", strings.Join(verbs.Lines(), "\n"))
	}
	if cmd.HasAvailableLocalFlags() {
		part("Flags:\n", cmd.LocalFlags().FlagUsagesWrapped(columns))
	}
	if cmd.HasAvailableInheritedFlags() {
		part("Global Flags:\n", cmd.InheritedFlags().FlagUsagesWrapped(columns))
	}
	if cmd.HasAvailableSubCommands() {
		more := fmt.Sprintf("Use \"%s [command] --help\" for more information about a command.", cmd.CommandPath())
		part("", strings.Join(ui.Wrap(more, columns, 0), "\n"))
	}
	return text.String()
}

// hideRest keeps the first help screen short; `ollim help all` has every command.
func hideRest(root *cobra.Command) {
	first := []string{"init", "ask", "chat", "remind", "routine", "fire", "run", "check", "status", "backtest", "distil", "schedule", "config", "doctor", "help"}
	for _, c := range root.Commands() {
		c.Hidden = !slices.Contains(first, c.Name())
	}
}

func newMan(d *deps) *cobra.Command {
	return group("man", "Install the manual pages",
		command(agentNever(refused), "install [DIR]", "Install the manual pages for man",
			func(cmd *cobra.Command, args []string) error {
				return runManInstall(cmd.Context(), d, strings.Join(args, "")) // one at most
			}),
	)
}

func runManInstall(ctx context.Context, d *deps, dir string) error {
	if dir == "" {
		var err error
		if dir, err = d.manDir(); err != nil {
			return err
		}
	}
	if packed := filepath.Join(dir, "man1", "ollim.1.gz"); exists(packed) {
		return &withStatus{fmt.Errorf("%s: a package has installed the manuals there", packed), statusConfig}
	}
	installed, err := installPages(ctx, dir)
	if errors.Is(err, fs.ErrPermission) {
		return hint(err, "ollim man install ~/.local/share/man")
	}
	if err == nil {
		d.note("%s installed in %s; to read the first: man 7 ollim", plaintext.Count(installed, "page"), dir)
	}
	return err
}

// manDir returns the directory in which man looks for the pages of programs in this program's directory.
func (d *deps) manDir() (string, error) {
	program, err := program()
	if err != nil {
		return "", err
	}
	if bin := filepath.Dir(program); filepath.Base(bin) == "bin" {
		return filepath.Join(filepath.Dir(bin), "share", "man"), nil
	}
	home, err := d.UserHome()
	return filepath.Join(home, ".local", "share", "man"), err
}

// installPages writes all pages, deletes those of other versions, and returns how many it has written.
func installPages(ctx context.Context, dir string) (installed int, err error) {
	pages, err := fs.Glob(man.Pages(), "*.[157]")
	if err != nil {
		return 0, err
	}
	current := map[string]bool{}
	for _, name := range pages {
		text, err := fs.ReadFile(man.Pages(), name)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return installed, err
		}
		folder := filepath.Join(dir, "man"+name[len(name)-1:])
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everybody may read manuals
			return installed, &store.NotWritten{Path: folder, Err: err}
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // as above
			return installed, &store.NotWritten{Path: path, Err: err}
		}
		current[path] = true
		installed++
	}
	for _, pattern := range []string{"man[157]/ollim.[157]", "man[157]/ollim-*.[157]"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return installed, err
		}
		for _, path := range found {
			if !current[path] {
				if err := os.Remove(path); err != nil {
					return installed, err
				}
			}
		}
	}
	return installed, nil
}
