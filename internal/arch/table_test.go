package arch

// layer is a directory of packages. Its packages may import those of the layers before it in the table, and of their own layer only
// what beside says.
type layer struct {
	path   string
	beside map[string][]string // package of the layer → packages of the same layer that it imports
}

// layers is the order of the tree, lowest first.
func layers() []layer {
	return []layer{
		{path: "man"},
		{path: "internal/platform", beside: map[string][]string{
			"media":     {"plaintext"},
			"process":   {"seal"},
			"store":     {"lock"},
			"shell":     {"plaintext"},
			"timeparse": {"plaintext"},
			"yamldoc":   {"plaintext"},
		}},
		{path: "internal/ui"},
		{path: "internal/policy"},
		{path: "internal/state", beside: map[string][]string{
			"": {
				"approval", "budget", "changed", "channel", "gate", "heartbeat", "inbox", "job", "ledger", "notice", "object", "question", "queue",
				"request", "runlog", "session", "skill", "slot", "spend", "update",
			},
			"approval":  {"config", "job", "object"},
			"config":    {"heartbeat", "model"},
			"gate":      {"ledger"},
			"heartbeat": {"ledger"},
			"inbox":     {"payload"},
			"job":       {"heartbeat", "model", "payload"},
			"notice":    {"ledger"},
			"request":   {"object", "runlog"},
			"runlog":    {"ledger"},
			"spend":     {"ledger"},
			"update":    {"ledger"},
		}},
		{path: "internal/schedule"},
		{path: "internal/engine", beside: map[string][]string{
			"acp":            {"", "command", "trialmodel"},
			"claudecode":     {"", "command", "gateway", "trialmodel"},
			"command":        {"", "gateway"},
			"gateway":        {""},
			"mcpclient":      {""},
			"native":         {"", "provider"},
			"native/builtin": {""},
			"provider":       {"", "gateway"},
			"script":         {""},
		}},
		{path: "internal/agent", beside: map[string][]string{
			"backtest":     {"prompt", "tools"},
			"conversation": {"prompt"},
			"distil":       {"backtest", "prompt"},
			"tools":        {"confine", "notify", "prompt"},
			"run":          {"confine", "conversation", "notify", "prompt", "tools"},
			"turn":         {"conversation", "prompt", "run", "tools"},
			"fire":         {"confine", "conversation", "notify", "prompt", "run", "tools", "turn"},
			"runtest":      {"run"},
			"replay":       {"backtest", "prompt", "run", "tools"},
			"tick":         {"distil", "fire", "notify", "prompt", "run", "turn"},
		}},
		{path: "internal/server", beside: map[string][]string{
			"discord":         {"discord/api", "discord/gateway", "listener", "listener/messenger"},
			"discord/api":     {"listener/messenger"},
			"discord/gateway": {"discord/api"},
			"door":            {"listener", "listener/messenger"},
			"listener":        {"listener/messenger", "listener/stream"},
			"listener/stream": {"listener/messenger"},
		}},
		{path: "internal/app", beside: map[string][]string{
			"doctor":   {""},
			"overview": {""},
			"report":   {""},
			"setup":    {"", "doctor"},
			"trace":    {""},
		}},
		{path: "internal/cli"},
		{path: "cmd/ollim"},
	}
}

// tests is the directory of packages that only tests import; they import no other package of the module but each other.
const tests = "internal/testkit"

// owners maps each outside library to the packages that alone may import it, with those below them.
func owners() map[string]string {
	return map[string]string{
		"github.com/agext/levenshtein":         "internal/platform/plaintext",
		"github.com/bwmarrin/discordgo":        "internal/server/discord",
		"github.com/clipperhouse/displaywidth": "internal/ui",
		"github.com/gofrs/flock":               "internal/platform/lock",
		"github.com/google/jsonschema-go":      "internal/state/payload",
		"gopkg.in/yaml.v3":                     "internal/platform/yamldoc",
		"mvdan.cc/sh/v3":                       "internal/platform/shell",
		"github.com/spf13/viper":               "internal/state/config",
		"github.com/rogpeppe/go-internal/diff": "internal/platform/plaintext",
		"golang.org/x/net/html":                "internal/engine/native/builtin",
		"golang.org/x/net/netutil":             "internal/engine/gateway",
		"golang.org/x/net/http/httpproxy":      "internal/engine/command",
		"golang.org/x/image":                   "internal/platform/media",
		"github.com/cenkalti/backoff/v5":       "internal/agent/conversation",
		"github.com/gorilla/websocket":         "internal/server/discord/gateway",
		"github.com/mark3labs/mcp-go/client":   "internal/engine/mcpclient",
		"github.com/mark3labs/mcp-go/mcp":      "internal/engine/mcpclient internal/server/mcp",
		"github.com/mark3labs/mcp-go/server":   "internal/server/mcp",
		"github.com/spf13/cobra":               "internal/cli",
		"github.com/spf13/pflag":               "internal/cli",
		"golang.org/x/sys":                     "internal/cli internal/platform/seal internal/platform/store internal/ui",
		"golang.org/x/term":                    "internal/cli internal/ui",
	}
}
