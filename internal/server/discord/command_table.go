package discord

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/policy"
)

type command struct {
	name     string
	about    string
	options  []*discordgo.ApplicationCommandOption
	run      func(*Interactions, context.Context, call) (reply, error)
	complete func(*Interactions, context.Context) []completion // of the option that has completions; nil: none has
}

// completion is what an option can be.
type completion struct{ value, about string }

func commands() []command {
	return []command{
		{name: "clear", about: "Begin a new conversation; the transcript of this one is kept", run: withRunner((*Interactions).askToClear)},
		{
			name: "compact", about: "Replace the conversation by a summary", run: withRunner((*Interactions).compact),
			options: options(text("instructions", "What the summary should keep")),
		},
		{
			name: "cost", about: "Show what runs have cost in the last 30 days", run: (*Interactions).cost,
			options: options(choice("by", "One line for each", "job", "day", "model")),
		},
		{
			name: "fork", about: "Open an interactive fork, show it, or end it", run: withRunner((*Interactions).fork),
			options: options(text("topic", "What the fork is about"), choice("end", "How to end the open fork", "save", "report", "exit")),
		},
		{
			name: "model", about: "Choose the model of the conversation, or show it", run: setting("chat.model"),
			options: options(typed(text("value", "Name of a model, or default"))), complete: (*Interactions).models,
		},
		{
			name: "thinking", about: "Choose how much the model thinks, or show it", run: setting("chat.thinking"),
			options: options(typed(text("value", "off, adaptive, true or a number of tokens"))), complete: (*Interactions).thinkings,
		},
		{name: "interrupt", about: "Stop the turn in progress; what was said is kept", run: withRunner((*Interactions).interrupt)},
		{
			name: "permissions", about: "Choose what happens when the agent wants a tool that is not allowed, or show it", run: setting("chat.permissions"),
			options: options(choice("value", "dontAsk: deny; default: ask you; acceptEdits: ask you, except for edits of files",
				string(policy.DontAsk), string(policy.AskOwner), string(policy.AcceptEdits))),
		},
		{
			name: "ping-budget", about: "Show or change the ping budget of background runs", run: (*Interactions).pingBudget,
			options: options(number("capacity", "Maximum number of pings that are left", 0, 1000), number("rate", "Minutes until one ping is added", 1, 10080)),
		},
		{
			name: "config", about: "Show settings, or change one", run: (*Interactions).config,
			options: options(typed(text("key", "The setting")), text("value", "What to set it to")), complete: (*Interactions).settingKeys,
		},
		{name: "status", about: "Show what runs, what waits and what failed", run: output("status")},
		{name: "routines", about: "List the routines and when they fire next", run: output("routine", "list")},
		{
			name: "fire", about: "Run a job now", run: withRunner((*Interactions).fire),
			options: options(needed(typed(text("job", "The job")))), complete: (*Interactions).jobs,
		},
		{name: "version", about: "Show the version of ollim", run: output("version")},
	}
}

func commandOf(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func options(list ...*discordgo.ApplicationCommandOption) []*discordgo.ApplicationCommandOption {
	return list
}

func text(name, about string) *discordgo.ApplicationCommandOption {
	return &discordgo.ApplicationCommandOption{Type: discordgo.ApplicationCommandOptionString, Name: name, Description: about}
}

func choice(name, about string, values ...string) *discordgo.ApplicationCommandOption {
	o := text(name, about)
	for _, v := range values {
		o.Choices = append(o.Choices, &discordgo.ApplicationCommandOptionChoice{Name: v, Value: v})
	}
	return o
}

func number(name, about string, least, most float64) *discordgo.ApplicationCommandOption {
	return &discordgo.ApplicationCommandOption{
		Type: discordgo.ApplicationCommandOptionInteger, Name: name, Description: about, MinValue: &least, MaxValue: most,
	}
}

// typed makes an option one that has completions.
func typed(o *discordgo.ApplicationCommandOption) *discordgo.ApplicationCommandOption {
	o.Autocomplete = true
	return o
}

// needed makes an option one that must be given.
func needed(o *discordgo.ApplicationCommandOption) *discordgo.ApplicationCommandOption {
	o.Required = true
	return o
}

// Discord's limits of completions.
const (
	maxCompletions = 25
	maxCompletion  = 100 // characters
)

// completions returns those that contain what was typed.
func completions(all []completion, typed string) (list []*discordgo.ApplicationCommandOptionChoice) {
	typed = strings.ToLower(strings.TrimSpace(typed))
	for _, c := range all {
		name := c.value
		if c.about != "" {
			name += " – " + plaintext.Line(c.about)
		}
		if !strings.Contains(strings.ToLower(name), typed) || len(list) == maxCompletions || utf8.RuneCountInString(c.value) > maxCompletion {
			continue
		}
		list = append(list, &discordgo.ApplicationCommandOptionChoice{Name: plaintext.Short(name, maxCompletion), Value: c.value})
	}
	return list
}
