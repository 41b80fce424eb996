package acp

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/trialmodel"
)

// Profile is what ollim knows of one agent. It is data; only the types of messages have fields that one agent alone sends.
//
// All texts for the agent may contain the names of the table below, which are replaced:
//
//	${state}   directory that the agent can write, and that keeps the session
//	${config}  directory that the agent can only read
//	${system}  file with the system prompt
//	${text}    the system prompt
//	${random}  a random word
//	${base}    the address of the gateway to the service, or of the first of Services
//	${service} the name of the service to which there is a gateway
type Profile struct {
	Name    string
	Agent   string    // name that the agent gives itself in agentInfo
	Install string    // command that installs a tested version
	Tested  [2]string // oldest and newest version that was tested
	Default []string  // command, with the program's name to be found in PATH
	Keys    []string  // variables of which one must hold a key

	Env      []string  // KEY=value
	Args     []string  // added to the command
	Services []Service // those that the agent reaches through a gateway
	Note     string    // added to the system prompt

	Form   Form // how the agent reports uses of its tools
	Sealed bool // files that the agent may write change what it asks for, so that it runs only sealed

	// Config is a JSON object, which Append or Replace extends with the system prompt: added to the agent's own, or in its place. It is
	// passed in the variable ConfigVariable or in the file ConfigFile.
	// With a gateway to a service with a name it has Through, too.
	Config, Append, Replace, Through string
	ConfigVariable, ConfigFile       string

	Reads []string // variables with a file that the agent may read
	// Hide is a JSON object that takes the tool ${tool} away from the agent, in its configuration. It is added for each key of Hidden if the
	// run has none of the policy's tools in its value, so that the model does not try what is refused.
	Hide   string
	Hidden map[string]string

	Files   map[string]string // files in ${state} or ${config} by their paths
	Session string            // JSON object that extends the parameters of session/new, load, resume and fork

	Title    string            // method that gives a new session a title, for which the agent would ask a model
	Uncopied []string          // patterns of names of files in ${state} that a branch does not copy
	Quotes   bool              // the agent cannot continue a session: each turn begins one, with the conversation so far in its prompt
	Mode     string            // mode in which the agent asks; "": it has only such modes
	Auth     string            // method of authenticate; "": not needed
	Server   string            // prefix of the names of MCP tools before the name of the server, and Between after it
	Between  string            // see Server
	Tools    map[string]string // names of the agent's tools, and the policy's names for the same
	Free     []string          // names of tools that do nothing, for which the agent does not ask
	Denial   bool              // a denial ends the turn
	AsksAll  bool              // the agent asks for every tool use, so that a use without a request is an error
	Usage    bool              // the usage of a turn is complete

	// Early matches "TOOL: TEXT" of uses that fail before the agent asks about them, such as one with an input that the tool does not have.
	Early string

	// Try is a use of a tool that the agent has to ask about: the command makes the file tried in the working directory. See Engine.Try.
	Try trialmodel.Use

	Promises engine.Guarantees
}

// Profiles returns the agents that ollim was tested with, by name.
func Profiles() map[string]Profile {
	all := map[string]Profile{}
	for _, p := range []Profile{opencode(), codex(), gemini()} {
		all[p.Name] = p
	}
	return all
}

// ProfileNames returns the names of the profiles, sorted.
func ProfileNames() []string { return slices.Sorted(maps.Keys(Profiles())) }

// early reports whether a use has failed as one does before the agent asks about it.
func (p Profile) early(u *use) bool {
	return p.Early != "" && regexp.MustCompile(p.Early).MatchString(u.own+": "+u.failure)
}

// Unknown is the profile of an agent that ollim was not tested with: nothing is promised.
func Unknown() Profile { return Profile{Server: "mcp__", Between: "__"} }

// given are the values of the names in a profile.
type given map[string]string

func newGiven(state, config, system, text string) given {
	return given{"service": "", "state": state, "config": config, "system": system, "text": text, "base": "", "random": strings.ToLower(rand.Text())}
}

// fill replaces the names in a text.
func (g given) fill(text string) string {
	var pairs []string
	for name, value := range g {
		pairs = append(pairs, "${"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// object replaces the names in the texts of a JSON object; "" is an empty one.
func (g given) object(text string) object {
	o := object{}
	if text == "" {
		return o
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(fmt.Sprintf("profile: %v", err)) // TestProfiles reads all of them
	}
	return g.within(map[string]any(o)).(map[string]any)
}

func (g given) within(v any) any {
	switch v := v.(type) {
	case string:
		return g.fill(v)
	case map[string]any:
		filled := map[string]any{}
		for key, value := range v {
			filled[g.fill(key)] = g.within(value)
		}
		return filled
	case []any:
		for i, value := range v {
			v[i] = g.within(value)
		}
	}
	return v
}

// merge adds the values of another object, recursively.
func (o object) merge(more object) object {
	for key, value := range more {
		mine, isObject := o[key].(map[string]any)
		theirs, areObjects := value.(map[string]any)
		if isObject && areObjects {
			o[key] = map[string]any(object(mine).merge(theirs))
		} else {
			o[key] = value
		}
	}
	return o
}

// config returns the agent's configuration as JSON.
func (p Profile) config(g given, in engine.Input, builtIns []string) string {
	o := g.object(p.Config)
	if g["service"] != "" {
		o = o.merge(g.object(p.Through))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Hidden)) {
		if !slices.ContainsFunc(strings.Fields(p.Hidden[key]), func(tool string) bool { return slices.Contains(builtIns, tool) }) {
			o = o.merge(given{"tool": key}.object(p.Hide))
		}
	}
	switch {
	case in.System == "":
	case in.SystemOnly && p.Replace != "":
		o = o.merge(g.object(p.Replace))
	default:
		o = o.merge(g.object(p.Append))
	}
	text, _ := json.Marshal(o) // what was decoded can be encoded
	return string(text)
}

// opencode asks for everything with permission "*": ask. A file opencode.json of the working directory, which the agent may write, could
// change that, so it is not read. A subagent's commands would neither ask nor end: there are no subagents (1.18.33).
func opencode() Profile {
	return Profile{
		Name: "opencode", Agent: "OpenCode", Default: []string{"opencode", "acp"},
		Install: "npm install -g opencode-ai@1.18.33", Tested: [2]string{"1.18.33", "1.18.33"},
		Keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
		Env: []string{
			"XDG_CONFIG_HOME=${config}", "XDG_DATA_HOME=${state}/data", "XDG_STATE_HOME=${state}/state",
			"OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_PURE=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_CLAUDE_CODE=1",
			"OPENCODE_SERVER_PASSWORD=${random}", // of a server that it starts on 127.0.0.1
		},
		Services: []Service{{
			Name: "anthropic", Keys: []string{"ANTHROPIC_API_KEY"}, Base: "ANTHROPIC_BASE_URL", Address: "https://api.anthropic.com/v1", Path: "/v1",
			Paths: []string{"/messages", "/messages/count_tokens"},
		}},
		Through:        `{"enabled_providers": ["${service}"], "provider": {"${service}": {"options": {"baseURL": "${base}"}}}}`,
		Reads:          []string{"OPENCODE_CONFIG"}, // of the owner, for services and models
		ConfigVariable: "OPENCODE_CONFIG_CONTENT",
		Config: `{"autoupdate": false, "share": "disabled", "snapshot": false, "plugin": [], "lsp": false, "formatter": false,
			"permission": {"*": "ask", "task": "deny", "question": "deny"},
			"agent": {"title": {"disable": true}, "build": {"permission": {"*": "ask", "task": "deny"}}}}`,
		Append:  `{"instructions": ["${system}"]}`,
		Replace: `{"agent": {"build": {"prompt": "{file:${system}}"}}}`,
		Files:   map[string]string{"${config}/opencode/.keep": ""},
		Mode:    "build", Between: "_", Denial: true, AsksAll: true, Free: []string{"invalid"},
		// A tool that edits looks at the file before it asks. A refusal ends the other uses of the same answer.
		Early: `^(edit|patch|apply_patch|multiedit|skill): |^[a-z]+: (The [a-z]+ tool was called with invalid arguments|Invalid timeout|Failed to parse command|` +
			`pattern is required|URL must start)|^\S+: (The user rejected permission|The user has specified a rule|Tool execution aborted)`,
		Tools: map[string]string{
			"bash": "Bash", "read": "Read", "write": "Write", "edit": "Edit", "patch": "Edit", "apply_patch": "Edit", "multiedit": "Edit",
			"glob": "Glob", "list": "Glob", "grep": "Grep", "webfetch": "WebFetch", "websearch": "WebSearch", "todowrite": "TodoWrite",
			"todoread": "TodoWrite", "task": "Task",
		},
		Hide: `{"permission": {"${tool}": "deny"}, "agent": {"build": {"permission": {"${tool}": "deny"}}}}`,
		Hidden: map[string]string{
			"bash": "Bash", "read": "Read", "edit": "Write Edit", "glob": "Glob", "list": "Glob", "grep": "Grep", "webfetch": "WebFetch",
			"websearch": "WebSearch", "codesearch": "WebSearch", "todowrite": "TodoWrite", "todoread": "TodoWrite",
		},
		Try:      trialmodel.Use{Tool: "bash", Input: `{"command": "touch tried", "description": "Try"}`},
		Promises: engine.Guarantees{Asks: engine.AsksAll, Reads: true, Branch: true, Records: true, Turns: true},
	}
}
