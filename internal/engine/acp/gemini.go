package acp

import (
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/trialmodel"
)

// gemini asks about everything but commands that only read in the working directory, because of a policy that no settings of that directory
// change: settings there may allow tools, and may start programs, so gemini runs only sealed. Tools that do not say what they would do
// are denied (0.61.0).
//
// Each turn begins a session with the conversation so far in the prompt. A session that gemini loads has each result of a tool twice, which
// the service refuses, and is lost if it is loaded in the minute in which it was written.
func gemini() Profile {
	return Profile{
		Name: "gemini", Agent: "gemini-cli", Default: []string{"gemini", "--acp"},
		Install: "npm install -g @google/gemini-cli@0.61.0", Tested: [2]string{"0.61.0", "0.61.0"},
		Keys: []string{"GEMINI_API_KEY"},
		Services: []Service{{
			Keys: []string{"GEMINI_API_KEY"}, Base: "GOOGLE_GEMINI_BASE_URL", Address: "https://generativelanguage.googleapis.com",
			Paths: []string{"/v1beta/models/*:generateContent", "/v1beta/models/*:streamGenerateContent", "/v1beta/models/*:countTokens"},
		}},
		Args: []string{"--admin-policy", "${config}/policies"},
		Env:  []string{"GEMINI_CLI_HOME=${state}", "GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_CLI_TRUST_WORKSPACE=true", "NO_BROWSER=1", "GOOGLE_GEMINI_BASE_URL=${base}"},
		Config: `{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
			"general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 5, "checkpointing": {"enabled": false}},
			"privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}, "ide": {"enabled": false},
			"hooksConfig": {"enabled": false}, "skills": {"enabled": false}, "tools": {"shell": {"enableInteractiveShell": false}}}`,
		ConfigFile: "${state}/.gemini/settings.json",
		Files: map[string]string{
			"${state}/.gemini/GEMINI.md": "${text}",
			"${config}/policies/ollim.toml": `[[rule]]
toolName = "*"
decision = "ask_user"
priority = 900

[[rule]]
toolName = ["write_todos", "update_topic"]
decision = "allow"
priority = 950

[[rule]]
toolName = ["invoke_agent", "google_web_search", "web_fetch", 'activate_skill', "enter_plan_mode", "list_directory", "glob", "grep_search",
  "list_background_processes", "read_background_output"]
decision = "deny"
priority = 950
`,
		},
		Form: ByTitle, Quotes: true, Sealed: true, Mode: "default", Usage: true,
		Try:      trialmodel.Use{Tool: "run_shell_command", Input: `{"command": "touch tried", "description": "Try"}`},
		Promises: engine.Guarantees{Asks: engine.AsksEffects, Branch: true},
	}
}
