package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/model"
)

// keys returns the table for a configuration, in the order of a new config.yaml.
func keys(c *Config) []key {
	return slices.Concat(c.general(), c.chat(), c.messengers(), c.servers(), c.limits())
}

func (c *Config) general() []key {
	return []key{
		{"timezone", &c.Timezone, "Time zone of schedules and output.", "timezone: Europe/Paris", "", func(s string) error {
			if _, err := time.LoadLocation(s); err != nil || s == "Local" || s == "" {
				return unknownZone(s)
			}
			return nil
		}},
		{"engine", &c.Engine, "Engine: claude-code runs the claude command; native needs no other program and calls a model\n" +
			"service itself; acp:NAME runs an agent of the section acp; script:FILE plays a file of turns, without a model.", "engine: claude-code", "", CheckEngine},
		{"seal", &c.Seal,
			"The seal: the kernel prevents programs that agents start from reading secrets and state, and from changing files\n" +
				"elsewhere. auto seals where the kernel can, on refuses to run where it cannot, off seals only jobs that say seal: on.\n" +
				"See ollim-seal(7).", "", sealAuto, oneOf(sealAuto, SealOn, SealOff)},
		{"heartbeat", &c.Heartbeat, "URL of an outside monitor, called by every `ollim tick` that succeeded. The monitor notifies you when the calls stop.",
			"heartbeat: https://hc-ping.com/ID", "", heartbeat.CheckURL},
		{"claim", &c.Claim, "Command that gives each slot of a routine to one of several machines with separate directories. It is started with\n" +
			"JOB SLOT MACHINE: exit status 0 means that the slot is ours, 75 that another machine has it. See ollim-schedules(7).",
			"claim: /usr/local/bin/claim-slot", "", checkAbsolute},
		parsed("quiet", &c.Quiet, "Hours in which only critical messages are sent to you. The others are sent when they end; none means no such hours.",
			"22:00-07:00", timeparse.ReadSpan),
		{"summary", &c.Summary, "weekly sends you a summary each Monday at 08:00: what ran, failed, was missed, cost and grew. It costs nothing;\n" +
			"`ollim status --week` prints it at any time.", "", summaryOff, oneOf(SummaryWeekly, summaryOff)},
		{"env", &c.Env, "Environment of child processes, as KEY=value; HOME, PATH and TZ are inherited unless set here.",
			"env: [\"PATH=/usr/local/bin:/usr/bin:/bin\"]", "", func(s string) error {
				if name, _, found := strings.Cut(s, "="); !found || name == "" || strings.ContainsAny(name, " \t\n") {
					return fmt.Errorf("%q is not KEY=value", s)
				}
				return checkNUL(s)
			}},
		{models, &c.Models, "Additions and changes to the table of `ollim model list`: windows in tokens, prices in USD per million tokens.",
			"models: [\"qwen3:8b window=32768 in=0 out=0\"]", "", func(s string) error {
				_, err := model.Known().With([]string{s})
				return err
			}},
		{"fallback", &c.Fallback, "Models to ask, in order, if the requested one does not exist any more, is refused for the account, or stays\n" +
			"overloaded before the agent has said or done anything. You are told, and no limit is exceeded.",
			"fallback: [sonnet]", "", model.CheckName},
	}
}

func (c *Config) chat() []key {
	return []key{
		{"chat.model", &c.Chat.Model,
			"Model of the main conversation and its interactive forks; the default is the engine's.", "model: opus", "",
			func(s string) error {
				if s == "" { // an empty text leaves the default
					return nil
				}
				return model.CheckName(s)
			}},
		{"chat.thinking", &c.Chat.Thinking, "Thinking in the main conversation: off, adaptive, true or a number of tokens.", "", "off",
			func(s string) error { _, err := model.ParseThinking(s); return err }},
		{"chat.fork-thinking", &c.Chat.Forks, "Thinking in interactive forks: a value as for chat.thinking, or main for that value itself. With a different value a\n" +
			"service charges main's messages as new input instead of reading them from its cache.", "", "adaptive",
			func(s string) error {
				if s == model.LikeMain {
					return nil
				}
				_, err := model.ParseThinking(s)
				return err
			}},
		{"chat.permissions", &c.Chat.Permissions,
			"Tool uses that no pattern allows: dontAsk refuses them; default asks you, on the terminal of the turn or\n" +
				"in Discord; acceptEdits does the same, but lets the agent write files of the data directory without asking.",
			"", string(policy.DontAsk), policy.CheckMode},
		{"chat.busy", &c.Chat.Busy,
			"A message that arrives during a turn: queue lets it wait; interrupt stops the turn.", "", busyQueue, oneOf(busyQueue, BusyInterrupt)},
		{"chat.markdown", &c.Chat.Markdown,
			"Answers on a terminal: on shows the Markdown in them with attributes and colour, off as it was written. A pipe and a\n" +
				"terminal with NO_COLOR always get it as it was written.", "", on, oneOf(on, Off)},
		{"channels.allowed-tools", &c.Channels.AllowedTools,
			"Tools of channel turns (`ollim chat --channel`), as in the allowed-tools of jobs. Anyone who writes in a\n" +
				"channel can have them used.", "allowed-tools: [WebSearch]", "", func(s string) error { return policy.Judge(s) }},
	}
}

func (c *Config) messengers() []key {
	return []key{
		{"delivery.command", &c.Delivery.Command, "", recipes, "", checkNUL},
		{"delivery.format", &c.Delivery.Format,
			"What the command gets on its standard input: text, or json for a line with the text, the buttons and the file; it can\n" +
				"print the id of its message, to which replies then refer. See ollim-messages(7).", "", FormatText, oneOf(FormatText, FormatJSON)},
		{"delivery.to", &c.Delivery.To,
			"How messages are sent, the preferred way first: doors, discord and command. The first that takes a message is enough. By\n" +
				"default they are sent by the command and by Discord; if you have neither, by the first door that takes them.",
			"to: [telegram, discord]", "", checkWay},
		{"delivery.critical", &c.Delivery.Critical, "The same for critical messages (default: as to).", "critical: [discord, telegram]", "", checkWay},
		{"delivery.timeout", &c.Delivery.Timeout, "Time limit of one attempt.", "", "30s", checkDuration("30s")},
		{"claude-code.command", &c.Claude.Command,
			"Absolute path of the claude command, because cron has a short PATH.", "command: /usr/local/bin/claude", "", checkAbsolute},
		{"claude-code.effort", &c.Claude.Effort,
			"How much the model of claude thinks and works: low, medium, high, xhigh or max. The default of the command itself\n" +
				"changes with its version.", "", "high", oneOf("low", "medium", "high", "xhigh", "max")},
		{"claude-code.gateway", &c.Claude.Gateway,
			"With on, claude sends its requests through ollim, which keeps them, adds the key and counts their cost; a job with\n" +
				"`network: none` needs this. With off, claude connects to its service by itself.", "", on, oneOf(on, Off)},
		{"discord.api", &c.Discord.API,
			"Address of Discord's API. The bot's token is stored by ollim secret set discord.TOKEN. With a token,\n" +
				"messages also go to your direct messages; no delivery command is needed.", "api: https://discord.com", "", checkAPI},
		{"discord.owner", &c.Discord.Owner,
			"Your user id on Discord (default: the owner of the bot's application).", "owner: \"123456789012345678\"", "", checkSnowflake},
		{"discord.allow", &c.Discord.Allow,
			"Ids of server channels and users that the bot answers besides you, each in a session of its own; none by default.",
			"allow: [\"123456789012345678\"]", "", checkSnowflake},
		{"transcribe", &c.Discord.Transcribe,
			"Command that transcribes a voice note: it reads the audio (Ogg Opus) on standard input and writes the text on standard output.",
			"transcribe: [/usr/local/bin/transcribe]", "", checkNUL},
	}
}

func (c *Config) servers() []key {
	return []key{
		{"webhook.listen", &c.Webhook.Listen,
			"Address of `ollim webhook serve`; a proxy in front of it does TLS.", "", "127.0.0.1:8420", checkListen},
		{"webhook.url", &c.Webhook.URL,
			"Address of the server as senders see it (default: http and webhook.listen).",
			"url: https://hooks.example.org", "", func(s string) error {
				if CheckURL(s) != nil { // the error does not quote the address, which may hold a password
					return errors.New("want the address of the server as senders see it, without a password and a query, such as https://hooks.example.org")
				}
				return nil
			}},
		parsed("webhook.max-body", &c.Webhook.MaxBody, "Maximum size of a payload, up to 25MiB, which is the maximum of GitHub.", "1MiB", size),
		number("webhook.inbox", &c.Webhook.Inbox, "Maximum number of events that wait for their runs.", 10000, 1000000),
		number("webhook.jobs", &c.Webhook.Jobs, "Maximum number of runs of webhooks at once.", 4, 1000),
		{"native.provider", &c.Native.Provider,
			"API of the service: anthropic, or openai, which many other services and local servers support. The key is stored\n" +
				"by ollim secret set engine.ANTHROPIC_API_KEY, or engine.OPENAI_API_KEY.", "", Anthropic, func(s string) error {
				if s != Anthropic && s != OpenAI {
					return fmt.Errorf("unknown provider %q: write %s or %s", s, Anthropic, OpenAI)
				}
				return nil
			}},
		{"native.base-url", &c.Native.BaseURL,
			"Address of the service (default: the provider's own).", "base-url: http://localhost:11434/v1", "", CheckURL},
		{"native.model", &c.Native.Model, "Model: an alias or the service's own name.", "", "sonnet", model.CheckName},
		{"native.max-tokens", &c.Native.MaxTokens,
			"Maximum tokens of one answer; 0 means the maximum of the model.", "", "0", func(s string) error {
				if n, err := strconv.ParseUint(s, 10, 31); err != nil || strconv.FormatUint(n, 10) != s { // 010 would be read as 8
					return fmt.Errorf("%q is not a number of tokens: write one like 16000", s)
				}
				return nil
			}},
		{"native.web-search", &c.Native.WebSearch,
			"The tool WebSearch, by the service's own search: auto offers it with api.anthropic.com and api.openai.com, on with any\n" +
				"service, off never. A search costs about 0.01 USD besides its tokens.", "", searchAuto, oneOf(searchAuto, searchOn, searchOff)},
	}
}

func (c *Config) limits() []key {
	return []key{
		parsed("spend.per-run", &c.Spend.PerRun, "Maximum cost of one run in USD; none means no limit.", "1.00", amount),
		parsed("spend.per-day", &c.Spend.PerDay, "Maximum cost per day, for days with more work than usual; at the limit no automatic run starts until the next day.", "5.00", amount),
		parsed("spend.per-month", &c.Spend.PerMonth, "Maximum cost per month; the default is 20 days at the default of per-day, or 3.20 each day.", "100.00", amount),
		parsed("spend.runs-per-day", &c.Spend.RunsPerDay, "Maximum number of automatic runs per day that reach an engine.", "500", amount),
		parsed("limits.parallel", &c.Limits.Parallel, "Maximum number of routines that ticks let run at once; further slots wait in their order. auto is 4 for each core, at\n"+
			"least 8, and with claude no more than three quarters of the memory hold at 320 MiB for each.", auto, parallel),
		parsed("compact-at", &c.CompactAt,
			"Length in tokens at which a session is compacted without being asked. It is compacted sooner where its next request\n"+
				"would cost half of what a run may, or would fill 80 % of the model's window.", "120000", tokens),
		parsed("keep.runs", &c.Keep.Runs, "How long run records and the outcomes of slots are kept.", "90d", days),
		parsed("keep.idle", &c.Keep.Idle, "How long the records of fires that did nothing are kept: gated, skipped, paused. Their slots keep the outcome.", "14d", days),
		parsed("keep.transcripts", &c.Keep.Transcripts, "How long a transcript is kept after a compaction has replaced it.", "90d", days),
		parsed("keep.history", &c.Keep.History, "How long the events of sessions and the archives of updates and notices are kept.", "365d", days),
		number("keep.backups", &c.Keep.Backups, "How many crontabs from before a change are kept.", 20, 1000),
		{"names.user", &c.Names.User, "Name of the owner.", "user: Ada", "", CheckName},
		{"names.bot", &c.Names.Bot, "Name of the agent.", "bot: Ollim", "", CheckName},
	}
}

// parsed returns a key whose text parse converts.
func parsed[T any](name string, at *T, about, standard string, parse func(string) (T, error)) key {
	return key{
		name: name, about: about, standard: standard,
		at:    func(text string) { *at, _ = parse(text) },
		check: func(text string) error { _, err := parse(text); return err },
	}
}

// number returns the key of a whole number from 1 to most.
func number(name string, at *int, about string, standard, most int) key {
	k := parsed(name, at, about, strconv.Itoa(standard), func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > most || strconv.Itoa(n) != s { // 010 would be read as 8
			return 0, fmt.Errorf("%q: want a number from 1 to %d", s, most)
		}
		return n, nil
	})
	k.at = at // so that it is shown as a number
	return k
}

// auto is the value of limits.parallel that depends on the machine.
const auto = "auto"

func parallel(s string) (int, error) {
	if s == auto {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 10000 || strconv.Itoa(n) != s { // 010 would be read as 8
		return 0, fmt.Errorf("%q: want %s, or a number from 1 to 10000", s, auto)
	}
	return n, nil
}

// leastCompact and mostCompact are the limits of compact-at, in tokens. The instructions, the tools and a summary take some thousand
// tokens, and no model has a larger window.
const leastCompact, mostCompact = 20_000, 10_000_000

func tokens(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < leastCompact || n > mostCompact || strconv.Itoa(n) != s { // 010 would be read as 8
		return 0, fmt.Errorf("%q: want a number of tokens from %d to %d", s, leastCompact, mostCompact)
	}
	return n, nil
}

func checkAbsolute(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is not an absolute path", path)
	}
	return nil
}

func unknownZone(name string) error {
	return fmt.Errorf("unknown zone %q: write one like Europe/Paris", name)
}

func checkDuration(example string) func(string) error {
	return func(s string) error {
		if d, err := time.ParseDuration(s); err != nil || d <= 0 {
			return fmt.Errorf("%q is not a duration: write one like %s", s, example)
		}
		return nil
	}
}
