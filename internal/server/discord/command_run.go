package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/session"
)

// output returns the function of a command that shows what a command line of ollim prints.
func output(words ...string) func(*Interactions, context.Context, call) (reply, error) {
	return func(x *Interactions, ctx context.Context, _ call) (reply, error) {
		printed, err := x.Ollim(ctx, words...)
		return reply{text: block(printed)}, err
	}
}

// withRunner lets a command work with the settings as they are now.
func withRunner(do func(*Interactions, context.Context, *run.Runner, call) (reply, error)) func(*Interactions, context.Context, call) (reply, error) {
	return func(x *Interactions, ctx context.Context, c call) (reply, error) {
		r, err := x.Runner()
		if err != nil {
			return reply{}, err
		}
		return do(x, ctx, r, c)
	}
}

func block(text string) string {
	text = strings.TrimRight(text, "\n ")
	if text == "" {
		return "There is nothing to show."
	}
	return "```\n" + strings.ReplaceAll(text, "```", "'''") + "\n```"
}

func (x *Interactions) cost(ctx context.Context, c call) (reply, error) {
	return output("cost", "--by", cmp.Or(c["by"], "job"))(x, ctx, c)
}

// setting returns the function of a command that shows or changes the setting of the conversation.
func setting(key string) func(*Interactions, context.Context, call) (reply, error) {
	return func(x *Interactions, ctx context.Context, c call) (reply, error) {
		if value, given := c["value"]; given {
			if value == standard {
				value = ""
			}
			if _, err := x.Ollim(ctx, "config", "set", key, value); err != nil {
				return reply{}, err
			}
		}
		return x.show(ctx, key)
	}
}

// standard stands for the engine's own model.
const standard = "default"

func (x *Interactions) show(ctx context.Context, key string) (reply, error) {
	value, err := x.Ollim(ctx, "config", "get", key)
	return reply{text: block(key + ": " + cmp.Or(strings.TrimSpace(value), standard))}, err
}

func (*Interactions) thinkings(context.Context) []completion {
	return []completion{
		{"off", "no thinking"}, {"adaptive", "as the model decides"}, {"true", "always"}, {"4096", "at most 4096 tokens"},
	}
}

func (x *Interactions) models(ctx context.Context) []completion {
	list := []completion{{standard, "the engine's own"}}
	printed, err := x.Ollim(ctx, "model", "list")
	if err != nil {
		return list
	}
	for line := range strings.Lines(printed) {
		if words := strings.Fields(line); len(words) > 0 {
			list = append(list, completion{value: words[0]})
		}
	}
	return list
}

// settings are those that may be shown and changed in a messenger: no commands, no addresses, and nothing that grants anything to
// anybody else.
func settings() []string {
	return []string{
		"timezone", "chat.model", "chat.thinking", "chat.permissions", "chat.busy", "delivery.timeout", "native.model", "native.max-tokens",
		"spend.per-run", "spend.per-day", "spend.per-month", "spend.runs-per-day", "compact-at", "keep.runs", "names.user", "names.bot", "summary",
	}
}

func (*Interactions) settingKeys(context.Context) (list []completion) {
	for _, key := range settings() {
		list = append(list, completion{value: key})
	}
	return list
}

func (x *Interactions) config(ctx context.Context, c call) (reply, error) {
	key, value := c["key"], c["value"]
	switch {
	case key == "" && value == "":
		return x.allSettings(ctx)
	case !slices.Contains(settings(), key):
		return reply{}, fmt.Errorf("%q cannot be shown or changed here: use ollim config at a shell", key)
	case value != "":
		if _, err := x.Ollim(ctx, "config", "set", key, value); err != nil {
			return reply{}, err
		}
	}
	return x.show(ctx, key)
}

func (x *Interactions) allSettings(ctx context.Context) (reply, error) {
	printed, err := x.Ollim(ctx, "config", "list", "--json")
	if err != nil {
		return reply{}, err
	}
	var lines strings.Builder
	for line := range strings.Lines(printed) {
		var item config.Item
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			return reply{}, err
		}
		if slices.Contains(settings(), item.Key) {
			fmt.Fprintf(&lines, "%-20s %s\n", item.Key, item.Text())
		}
	}
	return reply{text: block(lines.String())}, nil
}

func (x *Interactions) pingBudget(ctx context.Context, c call) (reply, error) {
	set := []string{"budget", "set"}
	for _, name := range []string{"capacity", "rate"} {
		if value, given := c[name]; given {
			set = append(set, "--"+name, value)
		}
	}
	if len(set) > 2 {
		if _, err := x.Ollim(ctx, set...); err != nil {
			return reply{}, err
		}
	}
	return output("budget")(x, ctx, c)
}

func (x *Interactions) jobs(context.Context) (list []completion) {
	r, err := x.Runner()
	if err != nil {
		return nil
	}
	files, err := r.Jobs.Load()
	if err != nil {
		return nil
	}
	for _, j := range files.Jobs {
		list = append(list, completion{j.Name(), j.Description})
	}
	return list
}

// fire starts a job as a process of its own, as tick does.
func (x *Interactions) fire(_ context.Context, r *run.Runner, c call) (reply, error) {
	files, err := r.Jobs.Load()
	if err != nil {
		return reply{}, err
	}
	j, err := files.Find(c["job"])
	if err != nil {
		return reply{}, err
	}
	return reply{text: "Started `" + api.InCode(j.Name()) + "`."}, x.Launch("fire", "--", j.ID)
}

func (x *Interactions) interrupt(_ context.Context, r *run.Runner, _ call) (reply, error) {
	run, err := turn.New(r).Queue.Stop()
	if err == nil && run == "" {
		return reply{text: "No turn is in progress."}, nil
	}
	return reply{text: "The turn in progress is being stopped."}, err
}

func (x *Interactions) compact(ctx context.Context, r *run.Runner, c call) (reply, error) {
	record, err := turn.New(r).CompactSession(ctx, "", cmp.Or(c["instructions"], prompt.StandardSummary), turn.Options{Owner: true})
	if err := listener.Failure(record, err); err != nil {
		return reply{}, err
	}
	return reply{text: fmt.Sprintf("Compacted: %d tokens before, %d after.", record.ContextBefore, record.Context)}, nil
}

// askToClear asks the owner to confirm.
func (x *Interactions) askToClear(_ context.Context, r *run.Runner, _ call) (reply, error) {
	main, err := r.Sessions.Main()
	switch {
	case err != nil:
		return reply{}, err
	case main == "":
		return reply{text: "There is no conversation to clear."}, nil
	}
	return reply{"Begin a new conversation? The transcript of this one is kept.", x.ConfirmClear(main)}, nil
}

func (x *Interactions) fork(ctx context.Context, r *run.Runner, c call) (reply, error) {
	f, open, err := r.Sessions.Fork(ctx)
	switch {
	case err != nil:
		return reply{}, err
	case c["end"] != "" && !open:
		return reply{}, session.ErrNoFork
	case c["end"] == "exit":
		return reply{"Drop the fork? The main conversation does not hear of it.", x.ConfirmExit(f.ID)}, nil
	case c["end"] != "":
		said, err := listener.EndFork(ctx, r, c["end"], f.ID)
		return reply{text: said}, err
	case open && c["topic"] == "":
		shown, err := output("fork", "status")(x, ctx, c)
		shown.buttons = listener.ForkButtons(f)
		return shown, err
	}
	if f, err = turn.New(r).Forks.Open(ctx, c["topic"]); err != nil {
		return reply{}, err
	}
	return reply{"A fork is open: your next message is its first turn.", listener.ForkButtons(f)}, nil
}
