package crontabimport

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
)

// reading is the one call of claude in a line, as far as it is understood.
type reading struct {
	entry entry
	job   job.Job
	lost  []string

	system, prompt, input string
	filled                bool   // the shell expands a part of them
	source                string // the source of its input, if that is not in the line
	workDir               string // the target of the last cd, as an entry of dirs
	tools                 []string
	edits                 bool     // claude edits files in its directories without asking
	denial                string   // an option that removes tools or directories
	sets                  []string // names of variables
}

func (r *reading) lose(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.lost, s) {
		r.lost = append(r.lost, s)
	}
}

func text(words []shell.Word) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, " ")
}

func literal(words []shell.Word) bool {
	return !slices.ContainsFunc(words, func(w shell.Word) bool { return !w.Literal })
}

func shown(c shell.Command) string { return plaintext.Short(text(c.Words), 60) }

// mention reports whether a call of claude occurs anywhere in a command, such as in the arguments of an unknown
// program.
func mention(command string) bool {
	return regexp.MustCompile(`(^|[\s/"'(;&|` + "`" + `])claude\s(.*\s)?(-p|--print)(\s|["']|$)`).MatchString(command)
}

// call finds the call of claude -p; nil if there is none.
func (e entry) call() (*reading, error) {
	commands, err := shell.Commands(e.command)
	switch {
	case err == nil:
	case !mention(e.command):
		return nil, nil
	case e.input != "":
		return nil, fmt.Errorf("its command, which cron cuts at the first %% (write \\%%): %w", err)
	default:
		return nil, fmt.Errorf("its command: %w", err)
	}
	commands = opened(commands, 3)
	var calls []int
	for i, c := range commands {
		if words := unwrap(c.Words, nil); isClaude(words) && prints(words[1:]) {
			calls = append(calls, i)
		}
	}
	switch {
	case len(calls) > 1:
		return nil, errSeveral
	case len(calls) == 0 && mention(e.command):
		return nil, errUnclear
	case len(calls) == 0:
		return nil, nil
	}
	r, at := &reading{entry: e, job: job.New(job.Routine)}, calls[0]
	first, last := pipeline(commands, at)
	r.around(commands, at, first, last)
	r.options(unwrap(commands[at].Words, r)[1:])
	r.standardInput(commands[first:at], commands[at])
	r.standardOutput(commands[at], commands[at+1:last+1])
	return r, nil
}

// opened replaces sh -c TEXT by the commands of the text.
func opened(commands []shell.Command, depth int) (all []shell.Command) {
	for _, c := range commands {
		inner, err := shell.Commands(shellText(unwrap(c.Words, nil)))
		if err != nil || len(inner) == 0 || depth == 0 {
			all = append(all, c)
			continue
		}
		for _, i := range inner {
			i.In, i.Out = i.In || c.In, i.Out || c.Out
			i.Files, i.Sets = append(i.Files, c.Files...), append(i.Sets, c.Sets...)
			all = append(all, opened([]shell.Command{i}, depth-1)...)
		}
	}
	return all
}

// shellText returns the text that a shell runs; "" if these words give none.
func shellText(words []shell.Word) string {
	if len(words) < 3 || !slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh"}, path.Base(words[0].Text)) {
		return ""
	}
	for i, w := range words[1 : len(words)-1] {
		switch {
		case !strings.HasPrefix(w.Text, "-"):
			return ""
		case !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "c"):
			return words[i+2].Text
		}
	}
	return ""
}

func isClaude(words []shell.Word) bool {
	return len(words) > 0 && (path.Base(words[0].Text) == "claude" || strings.HasPrefix(words[0].Text, "@anthropic-ai/claude-code"))
}

// wrapper returns the options that take a value of a program that runs another command; ok is false for any other program.
func wrapper(name string) (valued string, ok bool) {
	valued, ok = map[string]string{
		"nohup": "", "setsid": "", "chronic": "", "command": "", "unbuffer": "", "npx": "", "bunx": "", "caffeinate": "",
		"time": "-o -f", "exec": "-a", "nice": "-n --adjustment", "ionice": "-c -n --class --classdata",
		"env": "-u --unset -C --chdir", "stdbuf": "-i -o -e",
		"timeout": "-k --kill-after -s --signal", "flock": "-w --timeout -E --conflict-exit-code",
	}[name]
	return valued, ok
}

// unwrap removes the programs that run the command after them, and records in r, unless it is nil, the settings that a
// routine can have too.
func unwrap(words []shell.Word, r *reading) []shell.Word {
	for len(words) > 0 {
		name := path.Base(words[0].Text)
		valued, ok := wrapper(name)
		if !ok {
			break
		}
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
			skip := 1
			if slices.Contains(strings.Fields(valued), words[0].Text) {
				skip = 2
			}
			words = words[min(skip, len(words)):]
		}
		for name == "env" && len(words) > 0 && strings.Contains(words[0].Text, "=") {
			if variable, _, _ := strings.Cut(words[0].Text, "="); r != nil {
				r.sets = append(r.sets, variable)
			}
			words = words[1:]
		}
		if name != "timeout" && name != "flock" {
			continue
		}
		if len(words) == 0 { // a time or a file comes before the command
			return nil
		}
		if name == "timeout" && r != nil {
			r.limit(words[0].Text)
		}
		words = words[1:]
	}
	return words
}

// limit parses the duration of timeout(1): seconds by default; 0 means no limit.
func (r *reading) limit(text string) {
	if text != "" && strings.Trim(text, "0123456789.") == "" {
		text += "s"
	}
	switch d, err := job.ParseDuration(text); {
	case err != nil:
		r.lose("timeout %s is not understood", text)
	case d >= time.Second:
		r.job.Timeout = d.Truncate(time.Second)
	}
}

// around records the commands outside of claude's pipe: cd, variables, and what is omitted.
func (r *reading) around(commands []shell.Command, at, first, last int) {
	dir := "" // home, where cron begins
	for i, c := range commands {
		r.sets = append(r.sets, c.Sets...)
		if i >= first && i <= last || len(c.Words) == 0 {
			continue
		}
		switch c.Words[0].Text {
		case "cd", "pushd":
			if i < at {
				target := slices.DeleteFunc(slices.Clone(c.Words[1:]), isOption)
				dir = text(target[:min(1, len(target))])
			}
		case "export", "declare", "typeset", "true", ":", "exit", "set":
		default:
			r.lose("%s is omitted: see gate and after in ollim-routine(5)", shown(c))
		}
	}
	r.workDir = r.addDir(dir)
}

// addDir adds a directory in which claude worked to the routine, read-only, and returns the entry of dirs. A relative
// path begins at home, where cron starts its commands. Home as a whole is omitted, because every line of a crontab
// works there.
func (r *reading) addDir(dir string) (entry string) {
	dir = regexp.MustCompile(`^\$(HOME|\{HOME\})(/|$)`).ReplaceAllString(dir, "~$2")
	if dir == "" || dir == "~" || dir == "~/" || dir == "." {
		return ""
	}
	if !path.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
		dir = "~/" + dir
	}
	full := path.Clean(strings.Replace(dir, "~/", "/home/", 1))
	if _, err := policy.OfDir(policy.Root{Dir: full, Writable: true}); err != nil || strings.ContainsAny(dir, "$`") {
		r.lose("the directory %s cannot be used in dirs", dir)
		return ""
	}
	if !slices.Contains(r.job.Dirs, dir) {
		r.job.Dirs = append(r.job.Dirs, dir)
	}
	return dir
}

// leaveVariables reports the names of the variables that claude had and a routine has not. Their values may be secrets.
func (r *reading) leaveVariables() {
	names := slices.Concat(r.sets, slices.Collect(maps.Keys(r.entry.vars)))
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "LC_") || slices.Contains(strings.Fields("HOME LANG LANGUAGE LOGNAME USER PATH SHELL TERM TZ PWD "+
			"CRON_TZ MAILTO MAILFROM CONTENT_TYPE CONTENT_TRANSFER_ENCODING RANDOM_DELAY START_HOURS_RANGE"), name)
	})
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		r.lose("it sets %s: use env in config.yaml, or ollim secret set", strings.Join(names, ", "))
	}
}

// pipeline returns the first and the last command of claude's pipe.
func pipeline(commands []shell.Command, at int) (first, last int) {
	first, last = at, at
	for commands[first].In && first > 0 && commands[first-1].Out {
		first--
	}
	for commands[last].Out && last+1 < len(commands) && commands[last+1].In {
		last++
	}
	return first, last
}

// standardInput reads claude's input besides its arguments.
func (r *reading) standardInput(before []shell.Command, claude shell.Command) {
	if len(before) > 0 {
		written, ok := echoed(before[0].Words)
		if !ok || len(before) > 1 {
			r.source = " but comes from " + shown(before[0])
			r.lose("%s pipes into claude: what a gate writes joins the prompt", shown(before[0]))
			return
		}
		r.input, r.filled = written, r.filled || !literal(before[0].Words[1:])
		return
	}
	r.input = strings.TrimSpace(r.entry.input)
	for _, f := range claude.Files {
		switch strings.TrimPrefix(f.Op, "0") {
		case "<<<":
			r.input, r.filled = f.To.Text, r.filled || !f.To.Literal
		case "<":
			r.input = ""
			if f.To.Text != "/dev/null" {
				r.source = " but in " + f.To.Text
				r.lose("claude reads %s: put its text into the routine", f.To.Text)
			}
		}
	}
}

// echoed returns the output of echo or a plain printf.
func echoed(words []shell.Word) (written string, ok bool) {
	if len(words) < 2 {
		return "", false
	}
	name, words := words[0].Text, words[1:]
	format := strings.ReplaceAll(words[0].Text, `\n`, "\n")
	switch {
	case name == "echo":
		for len(words) > 0 && slices.Contains([]string{"-n", "-e", "-ne", "-en"}, words[0].Text) {
			words = words[1:]
		}
		return text(words), true
	case name == "printf" && len(words) == 1 && !strings.Contains(format, "%"):
		return strings.TrimSpace(format), true
	case name == "printf" && len(words) == 2 && strings.TrimSuffix(format, "\n") == "%s":
		return words[1].Text, true
	}
	return "", false
}

// standardOutput records how the line uses the answer.
func (r *reading) standardOutput(claude shell.Command, after []shell.Command) {
	const instead = "a routine reports by a ping or an update"
	quiet := len(after) > 0
	for _, f := range claude.Files {
		if !slices.Contains([]string{">", ">>", ">|", "&>", "&>>"}, strings.TrimPrefix(f.Op, "1")) {
			continue
		}
		if quiet = true; f.To.Text != "/dev/null" {
			r.lose("its answer went to %s: %s", f.To.Text, instead)
		}
	}
	if len(after) > 0 {
		r.lose("its answer went to %s: %s, or pipe what ollim fire --print writes", shown(after[0]), instead)
	}
	if mail := r.entry.vars["MAILTO"]; mail != "" && !quiet {
		r.lose("cron mailed its answer to %s: %s", mail, instead)
	}
}
