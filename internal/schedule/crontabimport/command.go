package crontabimport

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
)

// reading is the one call of claude in a line, as far as it is understood.
type reading struct {
	entry entry
	job   job.Job
	lost  []string

	system, prompt, input string
	filled                bool   // the shell fills in a part of them
	dir                   string // where the last cd went
	workDir               string // the same as an entry of dirs, for reading
	tools                 []string
	edits                 bool     // claude changes files of its folders without being asked
	denial                string   // an option that takes tools or folders away
	sets                  []string // names of variables
	source                string   // where its input comes from, when that is not in the line
}

func (r *reading) lose(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.lost, s) {
		r.lost = append(r.lost, s)
	}
}

// call finds the call of claude -p; nil when there is none.
func (e entry) call() (*reading, error) {
	commands, err := policy.Commands(e.command)
	if err != nil {
		switch {
		case !mention(e.command):
			return nil, nil
		case e.input != "":
			return nil, fmt.Errorf("its command, which cron ends at the first %% (write \\%%): %w", err)
		}
		return nil, fmt.Errorf("its command: %w", err)
	}
	commands = opened(commands, 3)
	at := -1
	for i, c := range commands {
		if words := unwrap(c.Words, nil); isClaude(words) && prints(words[1:]) {
			if at >= 0 {
				return nil, ErrSeveral
			}
			at = i
		}
	}
	if at < 0 {
		return nil, nil
	}
	r := &reading{entry: e, job: job.New(job.Routine)}
	r.around(commands, at)
	words := unwrap(commands[at].Words, r)
	r.options(words[1:])
	r.standardInput(commands, at)
	r.standardOutput(commands, at)
	return r, nil
}

// around notes what the other commands do: cd, variables, and what is left out. Those that feed claude or are fed by it are
// another matter.
func (r *reading) around(commands []policy.Command, at int) {
	first, last := pipeline(commands, at)
	for i, c := range commands {
		r.sets = append(r.sets, c.Sets...)
		if i >= first && i <= last || len(c.Words) == 0 {
			continue
		}
		switch c.Words[0].Text {
		case "cd", "pushd":
			if i < at {
				r.chdir(c.Words[1:])
			}
		case "export", "declare", "typeset", "true", ":", "exit", "set":
		default:
			r.lose("%s is left out: see gate and after in ollim-routine(5)", shown(c))
		}
	}
	r.workDir = r.addDir(r.dir)
}

// chdir follows cd; "" is home, where cron begins.
func (r *reading) chdir(words []policy.Word) {
	words = slices.DeleteFunc(slices.Clone(words), func(w policy.Word) bool { return len(w.Text) > 1 && w.Text[0] == '-' })
	r.dir = ""
	if len(words) > 0 {
		r.dir = words[0].Text
	}
}

// addDir gives the routine a folder that claude worked in, for reading, and returns the entry of dirs. A path that is not absolute
// begins at home, where cron starts its commands; all of home is no more than where every line of a crontab works.
func (r *reading) addDir(dir string) (entry string) {
	for _, name := range []string{"$HOME", "${HOME}"} {
		if rest, found := strings.CutPrefix(dir, name); found && (rest == "" || rest[0] == '/') {
			dir = "~" + rest
		}
	}
	if dir == "" || dir == "~" || dir == "~/" || dir == "." {
		return ""
	}
	if !path.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
		dir = "~/" + dir
	}
	full := path.Clean(strings.Replace(dir, "~/", "/home/", 1))
	if _, err := policy.OfDir(policy.Root{Dir: full, Writable: true}); err != nil || strings.ContainsAny(dir, "$`") {
		r.lose("the folder %s cannot stand in dirs", dir)
		return ""
	}
	if !slices.Contains(r.job.Dirs, dir) {
		r.job.Dirs = append(r.job.Dirs, dir)
	}
	return dir
}

// leaveVariables names the variables that claude had and a routine has not. Their values may be secrets.
func (r *reading) leaveVariables() {
	names := slices.Concat(r.sets, slices.Collect(maps.Keys(r.entry.vars)))
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "LC_") || slices.Contains(strings.Fields("HOME LANG LANGUAGE LOGNAME USER PATH SHELL TERM TZ PWD "+
			"CRON_TZ MAILTO MAILFROM CONTENT_TYPE CONTENT_TRANSFER_ENCODING RANDOM_DELAY START_HOURS_RANGE"), name)
	})
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		r.lose("it sets %s: env in config.yaml is for that, or secrets.env", strings.Join(names, ", "))
	}
}
