package crontabimport

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
)

// option is one option with its words, or, without a name, a positional argument.
type option struct {
	name  string
	words []shell.Word
}

func parseOptions(words []shell.Word) (list []option) {
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		name, value, valued := strings.Cut(w.Text, "=")
		letters := strings.TrimPrefix(w.Text, "-")
		switch {
		case w.Text == "--":
			for i := range words {
				list = append(list, option{"", words[i : i+1]})
			}
			return list
		case !isOption(w):
			list = append(list, option{"", []shell.Word{w}})
		case valued && strings.HasPrefix(name, "--"):
			list = append(list, option{name, []shell.Word{{Text: value, Literal: w.Literal}}})
		case len(letters) > 1 && strings.Trim(letters, "pc") == "":
			for _, letter := range letters {
				list = append(list, option{name: "-" + string(letter)})
			}
		default:
			n := taken(w.Text, words)
			list = append(list, option{w.Text, words[:n]})
			words = words[n:]
		}
	}
	return list
}

func isOption(w shell.Word) bool { return len(w.Text) > 1 && w.Text[0] == '-' }

// taken returns the number of words that an option takes.
func taken(name string, words []shell.Word) int {
	in := func(list string) bool { return slices.Contains(strings.Fields(list), name) }
	upTo := slices.IndexFunc(words, isOption)
	if upTo < 0 {
		upTo = len(words)
	}
	switch {
	case in(`--model --fallback-model --max-turns --max-budget-usd --output-format --input-format --permission-mode
		--permission-prompt-tool --append-system-prompt --append-system-prompt-file --system-prompt --system-prompt-file --session-id
		--settings --setting-sources --effort --json-schema --agent --agents --max-thinking-tokens --thinking --task-budget
		--thinking-display --resume-session-at --debug-file --name -n --plugin-dir`):
		return min(1, len(words)) // whatever it is
	case in("--resume -r --debug -d --from-pr --worktree -w"):
		return min(1, upTo)
	case in("--allowedTools --allowed-tools --disallowedTools --disallowed-tools --tools --mcp-config --add-dir --betas --file"):
		return upTo
	}
	return 0
}

// prints reports whether claude runs without a terminal.
func prints(words []shell.Word) bool {
	return slices.ContainsFunc(parseOptions(words), func(o option) bool { return o.name == "-p" || o.name == "--print" })
}

func (r *reading) options(words []shell.Word) {
	var prompt []string
	for _, o := range parseOptions(words) {
		said := text(o.words)
		switch o.name {
		case "", "--append-system-prompt", "--system-prompt":
			r.filled = r.filled || !literal(o.words)
			if o.name == "" {
				prompt = append(prompt, said)
				continue
			}
			r.system = strings.TrimSpace(r.system + "\n\n" + said)
			if o.name == "--system-prompt" {
				r.lose("--system-prompt becomes part of the prompt")
			}
		default:
			r.option(o, said)
		}
	}
	r.prompt = strings.Join(prompt, " ")
	if word := strings.Fields(r.prompt + " ."); r.system == "" && len(word[0]) > 1 && word[0][0] == '/' && !strings.Contains(word[0][1:], "/") {
		r.lose("%s is a command of Claude Code: a routine has skills instead", word[0])
	}
}

// option records one that is not part of the prompt; said is its value.
func (r *reading) option(o option, said string) {
	switch o.name {
	case "-p", "--print", "--verbose", "--no-session-persistence", "--exclude-dynamic-system-prompt-sections":
	case "-r", "--resume", "-c", "--continue":
		r.job.Session = "persistent"
		r.lose("%s: the routine starts and keeps its own session", o.name)
	case "--add-dir":
		for _, w := range o.words {
			r.addDir(w.Text)
		}
	case "--allowedTools", "--allowed-tools":
		for _, w := range o.words {
			r.tools = append(r.tools, policy.List(w.Text)...)
		}
	case "--model":
		if !literal(o.words) {
			r.lose("--model is inserted by the shell")
			return
		}
		r.job.Model = said
	case "--max-budget-usd":
		usd, err := strconv.ParseFloat(said, 64)
		if err != nil || usd <= 0 {
			r.lose("--max-budget-usd is not understood")
			return
		}
		r.job.MaxCost = usd
	case "--max-turns":
		r.lose("--max-turns %s is omitted: a routine has timeout and max-cost", said)
	case "--output-format":
		r.lose("--output-format %s is omitted: ollim run log shows the answer", said)
	case "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--permission-mode":
		r.edits = r.edits || o.name == "--dangerously-skip-permissions" || said == "acceptEdits" || said == "bypassPermissions"
		if said == "plan" {
			r.denial = o.name + " plan"
		}
		r.lose("%s is omitted: a routine uses its default tools and those of allowed-tools", o.name)
	case "--disallowedTools", "--disallowed-tools", "--tools", "--settings":
		r.denial = o.name
		fallthrough
	default:
		r.lose("%s is omitted", o.name) // without its value, which may be a secret
	}
}

// allow gives the routine claude's permissions and no more: those of its tools that a routine may have, and its
// directories, writable only if claude edited files in them without asking. If an option removed tools, nothing is
// given, since a routine has no such option.
func (r *reading) allow(j *job.Job) {
	if r.denial != "" && len(r.tools)+len(j.Dirs) > 0 {
		j.Dirs = nil
		r.lose("its tools and directories are omitted: a routine cannot remove any, as %s does", r.denial)
		return
	}
	has := func(tool string) bool { return slices.Contains(r.tools, tool) }
	if r.edits || has("Write") && has("Edit") {
		for i, dir := range j.Dirs {
			j.Dirs[i] = "rw:" + dir
		}
	}
	for _, tool := range r.tools {
		r.allowTool(j, tool)
	}
	if r.workDir != "" {
		r.lose("it worked in %s: the routine works in the data directory, and may use that directory by its full path", r.workDir)
	}
}

func (r *reading) allowTool(j *job.Job, tool string) {
	name, _, scoped := strings.Cut(tool, "(")
	file := slices.Contains([]string{"Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Glob", "Grep"}, name)
	writes := !scoped && (name == "Write" || name == "Edit")
	switch {
	case slices.Contains(j.AllowedTools, tool), writes && len(j.Dirs) > 0 && strings.HasPrefix(j.Dirs[0], "rw:"):
		return
	case writes && len(j.Dirs) > 0:
		r.lose("--allowedTools: %s is omitted: a routine writes in a directory with Write and Edit, and the line does not "+
			"have both", tool)
		return
	case file && scoped:
		r.lose("--allowedTools: %s is omitted: such a path is relative to the data directory", tool)
		return
	}
	if err := policy.Judge(tool, j.Roots("")...); err != nil {
		r.lose("--allowedTools: %v", err)
		return
	}
	j.AllowedTools = append(j.AllowedTools, tool)
}
