package crontabimport

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
)

// arity is how many words an option of claude takes.
type arity int

const (
	alone    arity = iota
	one            // the next word, whatever it is
	optional       // the next word, unless it begins with -
	many           // every word up to one that begins with -
)

func arityOf(option string) arity {
	in := func(list string) bool { return slices.Contains(strings.Fields(list), option) }
	switch {
	case in(`--model --fallback-model --max-turns --max-budget-usd --output-format --input-format --permission-mode
		--permission-prompt-tool --append-system-prompt --append-system-prompt-file --system-prompt --system-prompt-file --session-id
		--settings --setting-sources --effort --json-schema --agent --agents --max-thinking-tokens --thinking --task-budget
		--thinking-display --resume-session-at --debug-file --name -n --plugin-dir`):
		return one
	case in("--resume -r --debug -d --from-pr --worktree -w"):
		return optional
	case in("--allowedTools --allowed-tools --disallowedTools --disallowed-tools --tools --mcp-config --add-dir --betas --file"):
		return many
	}
	return alone
}

// parsed is one option with its words, or, without a name, a positional argument.
type parsed struct {
	name  string
	words []policy.Word
}

func (p parsed) text() string {
	var texts []string
	for _, w := range p.words {
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, " ")
}

func (p parsed) literal() bool {
	return !slices.ContainsFunc(p.words, func(w policy.Word) bool { return !w.Literal })
}

// parseOptions splits claude's arguments as claude does.
func parseOptions(words []policy.Word) (list []parsed) {
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case w.Text == "--":
			for _, rest := range words {
				list = append(list, parsed{"", []policy.Word{rest}})
			}
			return list
		case !isOption(w):
			list = append(list, parsed{"", []policy.Word{w}})
			continue
		}
		if name, value, found := strings.Cut(w.Text, "="); found && strings.HasPrefix(name, "--") {
			list = append(list, parsed{name, []policy.Word{{Text: value, Literal: w.Literal}}})
			continue
		}
		if cluster := strings.TrimLeft(w.Text, "-"); len(cluster) > 1 && w.Text[1] != '-' && strings.Trim(cluster, "pc") == "" {
			for _, letter := range cluster {
				list = append(list, parsed{name: "-" + string(letter)})
			}
			continue
		}
		n := taken(arityOf(w.Text), words)
		list = append(list, parsed{w.Text, words[:n]})
		words = words[n:]
	}
	return list
}

func isOption(w policy.Word) bool { return len(w.Text) > 1 && w.Text[0] == '-' }

// taken is how many of the words an option takes.
func taken(a arity, words []policy.Word) int {
	upTo := slices.IndexFunc(words, isOption)
	if upTo < 0 {
		upTo = len(words)
	}
	switch a {
	case one:
		return min(1, len(words))
	case optional:
		return min(1, upTo)
	case many:
		return upTo
	case alone:
	}
	return 0
}

// prints says whether claude runs without a terminal.
func prints(words []policy.Word) bool {
	return slices.ContainsFunc(parseOptions(words), func(p parsed) bool { return p.name == "-p" || p.name == "--print" })
}

func (r *reading) options(words []policy.Word) {
	var prompt []string
	for _, p := range parseOptions(words) {
		switch p.name {
		case "":
			prompt = append(prompt, p.text())
			r.filled = r.filled || !p.literal()
		case "--append-system-prompt", "--system-prompt":
			r.system = strings.TrimSpace(r.system + "\n\n" + p.text())
			r.filled = r.filled || !p.literal()
			if p.name == "--system-prompt" {
				r.lose("--system-prompt becomes a part of the prompt")
			}
		default:
			r.option(p)
		}
	}
	r.prompt = strings.Join(prompt, " ")
	if word := strings.Fields(r.prompt + " ."); r.system == "" && len(word[0]) > 1 && word[0][0] == '/' && !strings.Contains(word[0][1:], "/") {
		r.lose("%s is a command of Claude Code: a routine has skills", word[0])
	}
}

// option notes one that is no part of the prompt.
func (r *reading) option(p parsed) {
	switch p.name {
	case "-p", "--print", "--verbose", "--no-session-persistence", "--exclude-dynamic-system-prompt-sections":
	case "-r", "--resume", "-c", "--continue":
		r.job.Session = "persistent"
		r.lose("%s: the routine begins a session of its own, and keeps it", p.name)
	case "--add-dir":
		for _, w := range p.words {
			r.addDir(w.Text)
		}
	case "--allowedTools", "--allowed-tools":
		for _, w := range p.words {
			r.tools = append(r.tools, splitTools(w.Text)...)
		}
	case "--model":
		if r.job.Model = p.text(); !p.literal() {
			r.job.Model = ""
			r.lose("--model is filled in by the shell")
		}
	case "--max-budget-usd":
		if usd, err := strconv.ParseFloat(p.text(), 64); err == nil && usd > 0 {
			r.job.MaxCost = usd
			return
		}
		r.lose("--max-budget-usd is not understood")
	case "--max-turns":
		r.lose("--max-turns %s is left out: a routine has timeout and max-cost", p.text())
	case "--output-format":
		r.lose("--output-format %s is left out: ollim run log shows the answer", p.text())
	case "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--permission-mode":
		r.edits = r.edits || p.name == "--dangerously-skip-permissions" || p.text() == "acceptEdits" || p.text() == "bypassPermissions"
		if p.text() == "plan" {
			r.denial = p.name + " plan"
		}
		r.lose("%s is left out: a routine uses its default tools and those that allowed-tools names", p.name)
	case "--disallowedTools", "--disallowed-tools", "--tools", "--settings":
		r.denial = p.name
		r.lose("%s is left out", p.name) // without its value, which may be a secret
	default: // without its value, which may be a secret
		r.lose("%s is left out", p.name)
	}
}

// splitTools splits a list of tool patterns at commas and spaces outside of parentheses, and writes Bash(git:*) as we do.
func splitTools(text string) (tools []string) {
	depth := 0
	for tool := range strings.FieldsFuncSeq(text, func(c rune) bool {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && (c == ',' || c == ' ')
	}) {
		if begin, found := strings.CutSuffix(tool, ":*)"); found && strings.HasPrefix(tool, "Bash(") {
			tool = begin + " *)"
		}
		tools = append(tools, tool)
	}
	return tools
}

// allow gives the routine what claude had, and no more: those of its tools that a routine may have, and its folders, to write to
// only where claude changed files in them without being asked. Where an option took tools away nothing is given, since a routine
// has no such option.
func (r *reading) allow(j *job.Job) {
	if r.denial != "" && len(r.tools)+len(j.Dirs) > 0 {
		j.Dirs = nil
		r.lose("its tools and folders are left out: a routine cannot take any away as %s does", r.denial)
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
		r.lose("it worked in %s: the routine works in the data directory, and may use that folder by its full name", r.workDir)
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
		r.lose("--allowedTools: %s is left out: a routine writes in a folder with Write and Edit, which the line did not both have", tool)
		return
	case file && scoped:
		r.lose("--allowedTools: %s is left out: a path there is one of the data directory", tool)
		return
	}
	if err := policy.Judge(tool, j.Roots("")...); err != nil {
		r.lose("--allowedTools: %v", err)
		return
	}
	j.AllowedTools = append(j.AllowedTools, tool)
}
