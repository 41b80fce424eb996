package claudecode

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
)

// server is the name of ollim's tool server. The agent sees its tools as mcp__ollim__ping_user and so on.
const server = "ollim"

// DefaultModel is used if none is chosen. Without the flag --model a resumed session gets another window and system prompt than a new
// one.
const DefaultModel = "opus"

// common returns the flags that turns, forks and compactions of a session share. The command does not store them.
func (e *Engine) common(r engine.Request, known Known) ([]string, error) {
	settings, err := e.settings(r)
	if err != nil {
		return nil, err
	}
	servers, err := e.servers(r)
	if err != nil {
		return nil, err
	}
	delegate, err := offered(r.Scope.Subagent)
	if err != nil {
		return nil, err
	}
	args := []string{
		"-p", "--output-format", "stream-json", "--verbose",
		"--model", e.model(r), "--effort", e.Effort,
		"--setting-sources", "", "--settings", settings,
		"--strict-mcp-config", "--mcp-config", servers,
		"--tools", strings.Join(r.Scope.BuiltIns, ","),
		// A list of allowed tools and --add-dir for the directories are not needed: the hook allows tool uses.
		"--permission-mode", "dontAsk",
	}
	args = append(args, e.newer(r, known)...)
	switch {
	case r.Input.System == "":
	case r.Input.SystemOnly:
		args = append(args, "--system-prompt", r.Input.System)
	default:
		args = append(args, "--append-system-prompt", r.Input.System)
	}
	args = append(append(args, delegate...), thinking(r.Model.Thinking)...)
	if r.Limits.MaxCost > 0 {
		args = append(args, "--max-budget-usd", strconv.FormatFloat(max(r.Limits.MaxCost-r.Limits.Spent, least), 'f', -1, 64))
	}
	return args, nil
}

// newer returns the flags that only newer versions have. With them a system prompt takes effect in the turn that it is passed to, other
// processes cannot send messages to the agent, a question that nobody answers counts as a refusal, and the conversation is compacted at
// the length that ollim chooses.
func (e *Engine) newer(r engine.Request, known Known) (args []string) {
	if known.has(flagSnapshot) {
		args = append(args, flagSnapshot, "off")
	}
	if known.has(flagRestricted) {
		args = append(args, flagRestricted)
		// without the flag file tools refuse these directories, and the root if it is named by a link
		for _, dir := range slices.Concat(r.Scope.Dirs, []policy.Root{{Dir: r.Scope.Root}}) {
			args = append(args, "--add-dir", dir.Dir)
		}
	}
	if known.has(flagPrompts) {
		args = append(args, flagPrompts, "none")
	}
	if at := e.compactAt(r, known); at > 0 && at < e.Models.Resolve(withoutWindow(e.model(r))).Window {
		args = append(args, flagAutoCompact, strconv.Itoa(at))
	}
	return args
}

// model returns the id of the request's model at the service. The command's meaning of an alias changes with its version.
func (e *Engine) model(r engine.Request) string {
	name, long, isLong := strings.Cut(orElse(r.Model.Name, DefaultModel), "[")
	if name = e.Models.Resolve(name).ID; isLong {
		name += "[" + long
	}
	return name
}

// options returns the flags that a turn has and a compaction does not.
func options(r engine.Request) (args []string) {
	if r.Input.Delta != nil {
		args = append(args, "--include-partial-messages")
	}
	if r.Limits.MaxTurns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(r.Limits.MaxTurns))
	}
	if unkept(r.Session) {
		args = append(args, "--no-session-persistence")
	}
	return args
}

// least is the smallest budget, in USD, with which the command starts.
const least = command.Least

// thinking returns the flags for how much the model thinks. For Opus, Sonnet and Haiku 5.5 and for Fable, the command (2.1.330) sends
// "adaptive" in place of "disabled". MAX_THINKING_TOKENS=0 changes nothing in that; with CLAUDE_CODE_DISABLE_THINKING=1 it sends neither, which the
// service takes for "adaptive".
func thinking(how string) []string {
	switch how {
	case "", "true", "adaptive":
		return nil
	case "false", "off":
		return []string{"--thinking", "disabled"}
	}
	return []string{"--max-thinking-tokens", how}
}

// hookLimit is how long the command waits for a hook, in seconds: longer than a hook waits for the owner.
const hookLimit = 120

// object is a JSON object in a file for the command.
type object = map[string]any

// A hook that cannot be started allows the tool, but exit status 2 denies it: hence "|| exit 2" after pre-tool. The command ignores
// the whole settings file, and prints nothing, if it does not accept it: hence the hook at the start, whose standard error it reports
// before anything else happens. (Its standard output would reach the model.)

// settings writes the settings file of a run and returns its path. The deny rules also apply where no tool is used: to an @path in a
// prompt.
func (e *Engine) settings(r engine.Request) (string, error) {
	deny := []string{} // not null, which would make the command ignore the whole file
	for _, path := range spelt(r.Scope.Protected) {
		for _, tool := range []string{"Read", "Edit"} { // Edit covers every tool that writes, Read every one that reads
			deny = append(deny, fmt.Sprintf("%s(/%s)", tool, path), fmt.Sprintf("%s(/%s/**)", tool, path))
		}
	}
	hook := func(command string, timeout int) []object {
		return []object{{"hooks": []object{{"type": "command", "command": command, "timeout": timeout}}}}
	}
	hooks := object{
		"SessionStart": hook("echo '"+inForce(r.Run.ID)+"' >&2", 60),
		"PreToolUse":   hook(e.shell("hook", "pre-tool")+" || exit 2", hookLimit),
		"Stop":         hook(e.shell("hook", "stop"), hookLimit),
	}
	if r.Scope.Seal != nil {
		hooks["PostToolUse"], hooks["PostToolUseFailure"] = e.afterBash(ifDenied), e.afterBash(always)
	}
	return e.write(r.Run.ID, "settings.json", object{
		"crossSessionInbound": "refuse", // messages of other processes, for versions that have the socket but not the flag --restricted
		"cleanupPeriodDays":   36500,    // by default, a process that runs for five seconds deletes sessions older than thirty days
		"permissions":         object{"deny": deny},
		"hooks":               hooks,
	})
}

// Shell patterns that decide when the hook after a command of the agent asks what the seal denied. A successful command starts no process
// of ollim unless its output has words of a refusal.
const (
	always   = `*`
	ifDenied = `*enied*|*ENIED*|*EACCES*|*EPERM*|*ermitted*|*ead-only*|*eadonly*|*"nable to open"*`
)

// afterBash returns a hook that runs when a command of the agent has ended, if the hook's input matches a pattern of the shell's case.
func (e *Engine) afterBash(pattern string) []object {
	script := `in=$(cat); case $in in ` + pattern + `) printf %s "$in" | ` + e.shell("hook", "post-tool") + `;; esac; exit 0`
	return []object{{"matcher": "Bash", "hooks": []object{{"type": "command", "command": script, "timeout": hookLimit}}}}
}

// spelt returns the paths as given and with links resolved, because the command uses the resolved name of its working directory.
// Each is returned escaped, as the rules' .gitignore syntax needs it, and unescaped: searches apply a rule only if it begins with the
// working directory, byte by byte.
func spelt(paths []string) (all []string) {
	escaped := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `*`, `\*`, `?`, `\?`)
	for _, named := range paths {
		for _, path := range []string{named, command.Followed(named)} {
			all = append(all, path, escaped.Replace(path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func inForce(run string) string { return "ollim settings of " + run }

// servers writes the file that names ollim's tool server and the other MCP servers of the request. The command reaches those through
// ollim, so that neither the file nor the environment of the command holds their secrets. With alwaysLoad the tools are in the first
// request.
func (e *Engine) servers(r engine.Request) (string, error) {
	env := maps.Clone(e.Located)
	if env == nil {
		env = map[string]string{}
	}
	for _, entry := range r.Run.Env() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	entry := func(verb ...string) object {
		return object{
			"type": "stdio", "command": e.Self, "args": slices.Concat(e.Args, []string{"mcp"}, verb), "alwaysLoad": true,
			"env": env,
		}
	}
	all := object{server: entry("serve")}
	for _, name := range policy.Servers(r.Scope.Servers) {
		all[name] = entry(append([]string{"connect", name}, r.Scope.Servers...)...)
	}
	return e.write(r.Run.ID, "mcp.json", object{"mcpServers": all})
}

func (e *Engine) write(run, name string, v any) (string, error) {
	path := e.Home.Run(run, name)
	return path, store.WriteJSON(path, v, store.Buffered)
}

// shell returns ollim's command line, quoted for the shell that starts the hooks.
func (e *Engine) shell(words ...string) string {
	line := make([]string, 0, len(words)+len(e.Args)+1)
	for _, w := range append(append([]string{e.Self}, e.Args...), words...) {
		line = append(line, shell.Quote(w))
	}
	return strings.Join(line, " ")
}

// envFile is the documented variable for a script that the command runs before each command of the agent, in the same shell.
const envFile = "CLAUDE_ENV_FILE"

// shellEnv writes that script if the run has a shell, and returns its variable. The script sets PATH to the PATH of this process and the
// directory of ollim, which cron's PATH lacks. Without it the command starts a login shell for each command of the agent if the owner's
// shell profile fails or takes more than ten seconds, and /etc/profile sets another PATH.
func (e *Engine) shellEnv(r engine.Request) ([]string, error) {
	if !slices.Contains(r.Scope.BuiltIns, "Bash") || e.variable(envFile) != "" {
		return nil, nil
	}
	file := e.Home.Run(r.Run.ID, "env.sh")
	text := "export PATH=" + shell.Quote(e.variable("PATH")+string(filepath.ListSeparator)+filepath.Dir(e.Self)) + "\n"
	return []string{envFile + "=" + file}, store.Write(file, []byte(text), store.Buffered)
}

// environment returns the command's environment: what was given, settings that keep it quiet and predictable, and the run.
func (e *Engine) environment(r engine.Request) []string {
	env := slices.Clone(e.Env)
	fd := 3
	for _, by := range e.descriptors() {
		env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, by.name+"=") })
		if e.variable(by.name) != "" {
			env = append(env, fmt.Sprintf("%s=%d", by.as, fd))
			fd++
		}
	}
	env = append(env,
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"ENABLE_TOOL_SEARCH=false", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=4",
		"CLAUDE_CODE_MAX_RETRIES=2", // ollim itself waits between later tries
		"CLAUDE_CODE_DISABLE_ATTACHMENTS=1",
		"CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS=1", // otherwise git status is in the system prompt, which then differs in every turn
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",      // memory files in a directory that ollim's policy protects
		"CLAUDE_CODE_MCP_ALLOWLIST_ENV=1",
	)
	switch e.cache(r) {
	case engine.CacheHour:
		env = append(env, "ENABLE_PROMPT_CACHING_1H=1")
	case engine.CacheNone:
		env = append(env, "DISABLE_PROMPT_CACHING=1")
	}
	return append(env, r.Run.Env()...)
}
