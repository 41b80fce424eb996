package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/payload"
)

// agentOptions are what the agent of a question reads, may use and cost, and must answer. Their flags are those of the claude command.
type agentOptions struct {
	system  string
	more    string // added to the system prompt
	schema  string
	tools   []string
	without []string
	only    []string
	limited bool // only is given, which may be empty
	mode    string
	dirs    []string
	maxCost float64
}

func (o *agentOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.system, "system-prompt", "", "replace the system prompt by this text")
	f.StringVar(&o.more, "append-system-prompt", "", "add this text to the system prompt")
	f.StringVar(&o.schema, "json-schema", "", "require one JSON value as the answer, which fits this JSON Schema")
	f.StringArrayVar(&o.tools, "allowed-tools", nil, "allow tools that match these patterns, besides Read, Glob and Grep (separated by "+
		"commas or blanks; repeatable)")
	alias(f, "allowed-tools", "allowedTools")
	f.StringArrayVar(&o.without, "disallowed-tools", nil, "take these tools away, such as Grep (repeatable)")
	alias(f, "disallowed-tools", "disallowedTools")
	f.StringArrayVar(&o.only, "tools", nil, "offer no built-in tools but these, if they are allowed; default is all, \"\" is none (repeatable)")
	f.StringVar(&o.mode, "permission-mode", string(policy.DontAsk), "what becomes of a tool use that is not allowed: dontAsk and default refuse it; "+
		"acceptEdits also allows Write and Edit")
	f.StringArrayVar(&o.dirs, "add-dir", nil, "let the tools also use this directory (repeatable)")
	f.Float64Var(&o.maxCost, "max-cost", 0, "maximum cost in USD (default spend.per-run)")
	alias(f, "max-cost", "max-budget-usd")
}

func alias(f *pflag.FlagSet, name, other string) {
	same := f.Lookup(name)
	f.VarPF(same.Value, other, "", "the same as --"+name).NoOptDefVal = same.NoOptDefVal
}

// claudeOnly are flags of the claude command that ask does not have, each with the reason and what to use instead.
func claudeOnly() map[string]string {
	return map[string]string{
		"session-id":                   "ask chooses the id of a new session itself: --output-format json prints it as session_id, and -r ID continues it",
		"mcp-config":                   "MCP servers are those of mcp-servers in config.yaml: add the server there, and allow its tools with --allowed-tools mcp__SERVER__*",
		"settings":                     "the settings are those of ollim: use ollim config set, or --config FILE for another settings file",
		"replay-user-messages":         "it needs --input-format stream-json, which ask does not have: use ollim chat",
		"dangerously-skip-permissions": "nothing skips the patterns of tools: name what the agent may use with --allowed-tools",
	}
}

// refusedFlag returns why ask refuses a flag that the claude command has, "" for any other error.
func refusedFlag(err error) string {
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	name := missing.GetSpecifiedName()
	if why := claudeOnly()[name]; why != "" {
		return "--" + name + ": " + why
	}
	return ""
}

func (o *agentOptions) check(f *pflag.FlagSet) error {
	o.limited = f.Changed("tools")
	for name, text := range map[string]string{"system-prompt": o.system, "append-system-prompt": o.more, "json-schema": o.schema} {
		if f.Changed(name) && strings.TrimSpace(text) == "" {
			return usage("--%s: the text is empty", name)
		}
	}
	if f.Changed("max-cost") && f.Changed("max-budget-usd") {
		return usage("--max-budget-usd and --max-cost are the same: want one of them")
	}
	for _, name := range []string{"max-cost", "max-budget-usd"} {
		if f.Changed(name) && !(o.maxCost > 0 && o.maxCost < 1e9) {
			return usage("--%s %v: want more than zero", name, o.maxCost)
		}
	}
	return o.checkMode()
}

func (o *agentOptions) apply(q *turn.Question) (err error) {
	q.System, q.More, q.MaxCost = o.system, o.more, o.maxCost
	if o.schema != "" {
		if q.Schema, err = payload.ReadAnswer("json-schema", o.schema); err != nil {
			err = usage("%v", asFlags(err))
			if !strings.HasPrefix(o.schema, "{") {
				err = hint(err, "from a file: --json-schema \"$(cat FILE)\"")
			}
			return err
		}
	}
	roots := []policy.Root{{Dir: q.Root, Writable: true}}
	for _, dir := range o.dirs {
		real, err := existingDir(dir)
		if err != nil {
			return usage("--add-dir %q: %v", dir, err)
		}
		roots = append(roots, policy.Root{Dir: real, Writable: true})
	}
	q.Tools = policy.DefaultAsk()
	allowed := slices.Clone(o.tools)
	if o.mode == string(policy.AcceptEdits) {
		allowed = append(allowed, "Write,Edit")
	}
	for _, list := range allowed {
		for _, pattern := range policy.List(list) {
			granted, err := policy.Grant(pattern, roots)
			if err != nil {
				return usage("--allowed-tools %q: %v", pattern, err)
			}
			q.Tools = append(q.Tools, granted...)
		}
	}
	writes := slices.ContainsFunc(q.Tools, func(pattern string) bool {
		tool, _, _ := strings.Cut(pattern, "(")
		return policy.Edits(tool) || tool == "Bash"
	})
	for _, root := range roots[1:] {
		reading, err := policy.OfDir(policy.Root{Dir: root.Dir})
		if err != nil {
			return usage("--add-dir %q: %v", root.Dir, err)
		}
		q.Tools, q.Dirs = append(q.Tools, reading...), append(q.Dirs, policy.Root{Dir: root.Dir, Writable: writes})
	}
	return o.restrict(q)
}

// checkMode refuses a permission mode that a question cannot have.
func (o *agentOptions) checkMode() error {
	switch o.mode {
	case string(policy.DontAsk), string(policy.AskOwner), string(policy.AcceptEdits):
		return nil
	case "plan":
		return usage("--permission-mode plan: a question has no plan to accept: ask for a plan, and leave out --allowed-tools, so that the agent only reads")
	case "bypassPermissions", "auto":
		return usage("--permission-mode %s: what no pattern allows is always refused: name what the agent may use with --allowed-tools", o.mode)
	}
	return usage("--permission-mode %q: want dontAsk, default or acceptEdits", o.mode)
}

// restrict removes the patterns of tools that --disallowed-tools names, and those that --tools does not name.
func (o *agentOptions) restrict(q *turn.Question) error {
	without, err := toolNames("disallowed-tools", o.without)
	if err != nil {
		return err
	}
	only, err := toolNames("tools", o.only)
	if err != nil {
		return err
	}
	limited := o.limited && !slices.Contains(only, allTools)
	q.Tools = slices.DeleteFunc(q.Tools, func(pattern string) bool {
		tool, _, _ := strings.Cut(pattern, "(")
		return slices.Contains(without, tool) || limited && !isServerTool(tool) && !slices.Contains(only, tool)
	})
	return nil
}

// allTools is the value of --tools that stands for all of them.
const allTools = "default"

func isServerTool(tool string) bool { return strings.HasPrefix(tool, "mcp__") }

// toolNames returns the names of built-in tools in the values of a flag.
func toolNames(flag string, lists []string) (names []string, err error) {
	for _, list := range lists {
		for _, name := range policy.List(list) {
			if name != allTools && (strings.Contains(name, "(") || isServerTool(name) || !policy.IsTool(name)) {
				return nil, usage("--%s %q: want the name of a built-in tool, such as Grep: a use that no pattern of --allowed-tools allows is refused anyway", flag, name)
			}
			names = append(names, name)
		}
	}
	return names, nil
}

func existingDir(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", errors.New(store.Cause(err))
	}
	if !info.IsDir() {
		return "", errors.New("not a directory")
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// attachments returns the files of -f, then those that the text names. A text may have been pasted, so it cannot name files for which hides
// is true.
func attachments(text string, files []string, hides func(file string) bool) (list []engine.Attachment, err error) {
	for _, name := range files {
		if name == "-" || name == "" {
			return nil, hint(usage("-f %q: want a file", name), "standard input is read without it")
		}
	}
	for _, name := range append(slices.Clone(files), slices.DeleteFunc(mentioned(text), hides)...) {
		a, err := engine.Attach(name, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(b engine.Attachment) bool { return b.Path == a.Path }) {
			list = append(list, a)
		}
	}
	return list, nil
}

// mentioned returns the regular files that words such as @notes.txt or @"my notes.txt" name. A character before the @ that belongs to a
// word, as in an e-mail address, makes it part of that word. Punctuation after a name is not part of it.
func mentioned(text string) (names []string) {
	words := regexp.MustCompile(`(?:^|[\s("'\[])@(?:"([^"\n]+)"|([^\s"]+))`)
	for rest := text; ; {
		at := words.FindStringSubmatchIndex(rest)
		if at == nil {
			return names
		}
		switch {
		case at[2] >= 0:
			names = append(names, existing(rest[at[2]:at[3]])...)
		default:
			word := rest[at[4]:at[5]]
			names = append(names, existing(word, strings.TrimRight(word, ".,;:!?)]}'"))...)
		}
		rest = rest[at[1]:]
	}
}

func existing(names ...string) []string {
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			return []string{name}
		}
	}
	return nil
}
