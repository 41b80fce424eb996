package acp

import (
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/trialmodel"
)

// codex runs commands in a sandbox of its own, which needs namespaces that the seal refuses. So a command under the seal either asks first,
// because the model wants it outside of that sandbox, or it cannot run at all (codex-acp 2.6.0). The mode agent, which is the default, lets
// a model decide instead. A directory .codex of the working directory has settings, too, so codex runs only sealed.
//
// Newer models are offered subagents, whatever multi_agent says. A session may have one thread, which is the first agent's, so none can be started.
//
// Its databases name the files of sessions by absolute paths. In a copy without them codex finds the files by itself.
func codex() Profile {
	return Profile{
		Name: "codex", Agent: "@agentclientprotocol/codex-acp", Default: []string{"codex-acp"},
		Install: "npm install -g @agentclientprotocol/codex-acp@2.6.0", Tested: [2]string{"2.6.0", "2.6.0"},
		Keys:     []string{"OPENAI_API_KEY"},
		Services: []Service{{Keys: []string{"OPENAI_API_KEY"}, Base: "OPENAI_BASE_URL", Address: "https://api.openai.com/v1", Paths: []string{"/responses"}}},
		Env: []string{
			"CODEX_HOME=${state}/codex", "MODEL_PROVIDER=ollim", "INITIAL_AGENT_MODE=read-only", "NO_BROWSER=1",
		},
		ConfigVariable: "CODEX_CONFIG",
		// The key is read from the environment for each request, so that no login is stored.
		Config: `{"model_provider": "ollim", "model_providers": {"ollim": {"name": "ollim", "base_url": "${base}", "wire_api": "responses",
			"env_key": "OPENAI_API_KEY", "requires_openai_auth": false, "supports_websockets": false}},
			"web_search": "disabled", "check_for_update_on_startup": false, "analytics": {"enabled": false}, "feedback": {"enabled": false},
			"history": {"persistence": "none"}, "otel": {"exporter": "none"}, "features": {"multi_agent": false, "multi_agent_v2": {"enabled": false, "max_concurrent_threads_per_session": 1}, "goals": false}}`,
		Files: map[string]string{"${state}/codex/config.toml": ""},
		Note: "No command can run in the sandbox of this machine. Run every command with sandbox_permissions: \"require_escalated\" and a " +
			"justification. A command that is refused must not be tried in another form.",
		Session: `{"systemPrompt": {"mode": "append", "content": [{"type": "text", "text": "${text}"}]}}`,
		Form:    ByInput, Sealed: true, Mode: "read-only", Title: "session/set_title", Uncopied: []string{"*.sqlite*", "*.lock"}, Denial: true, Usage: true,
		Try: trialmodel.Use{
			Tool: "exec_command", Offer: "exec_command", Input: `{"cmd": "touch tried", "sandbox_permissions": "require_escalated", "justification": "Try"}`,
		},
		Promises: engine.Guarantees{Asks: engine.AsksSandbox, Branch: true},
	}
}
