// Package tools implements the agent's tools. The record of the calling run determines what a tool may do, never memory, so
// the process that fires, the server that the engine starts and a shell command that the agent types agree. Each tool has a .md
// file with the description that the agent reads.
package tools

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// Set is the tools of one run.
type Set struct {
	World World
	*state.Stores

	Run      *runlog.Run
	Sender   outbox.Sender
	Busy     func() bool                  // reports whether the main conversation is in a turn
	SetNames func(user, bot string) error // stores them in the settings; "" leaves a name unchanged
	Commands policy.OllimAccess           // what the agent may do with the commands of ollim

	within *[]string // names and patterns of the subagent that uses the tools; nil: the run's agent does
}

// World is what the process provides to the tools.
type World struct {
	Home   paths.Dir
	Disk   store.Disk
	Zone   *time.Location
	Random io.Reader
	Secret []string       // paths outside the data directory that no agent may reach
	Env    []string       // environment of the commands in skills
	Seal   *seal.Seal     // seal of those commands; nil: they are not sealed
	Quiet  timeparse.Span // hours in which only critical messages are sent
	Embeds func() bool    // reports whether a messenger of the owner shows embeds; nil: none does
}

// tool is one entry of a set.
type tool struct {
	name   string // its description is the file NAME.md
	effect engine.Effect
	may    func(*Set) error // a *Refused when the run may not use it at all
	call   func(context.Context, *Set, json.RawMessage) (string, error)
	schema string // "": the result of reminderSchema, which depends on the run
}

//go:embed *.md
var descriptions embed.FS

// Types of the tools' properties.
const (
	text   = `{"type":"string"}`
	flag   = `{"type":"boolean"}`
	choice = `{"type":"string","maxLength":80}`
	week   = `{"type":"integer","minimum":1,"maximum":10080}`
)

// EmbedSchema returns the JSON Schema of an embed with buttons, with further properties.
func EmbedSchema(more ...string) string {
	const (
		action = `{"type":"string","pattern":"^(task_done|task_del|agent):."}`
		style  = `{"enum":["primary","success","danger"]}`
		color  = `{"type":"string","pattern":"^#[0-9a-fA-F]{6}$"}`
	)
	list := func(most, items string) string {
		return `{"type":"array","maxItems":` + most + `,"items":` + items + `}`
	}
	return engine.Schema(1, append([]string{
		"title", text, "description", text, "url", text, "color", color,
		"fields", list("25", engine.Schema(2, "name", text, "value", text, "inline", flag)), "footer", text,
		"buttons", list("5", engine.Schema(2, "label", choice, "action", action, "style", style)),
	}, more...)...)
}

func tools() []tool {
	schema := engine.Schema
	return []tool{
		{"ping_user", engine.Sends, pings, takes(callPing), schema(1, "message", text, "critical", flag)},
		{embedTool, engine.Sends, pings, takes(callEmbed), EmbedSchema("critical", flag)},
		{"send_file", engine.Sends, pings, takes(callSendFile), schema(1, "path", text, "message", `{"type":"string"}`, "critical", flag)},
		{runlog.AskOwner, engine.Sends, asks, takes(callAsk), schema(1, "question", text,
			"choices", `{"type":"array","items":`+choice+`,"maxItems":10}`, "expires", `{"type":"string"}`)},
		{"report_updates", engine.Reports, reports, takes(callReport), schema(1, "message", text)},
		{"follow_up_chain", engine.Changes, chains, takes(callFollowUp), schema(1, "minutes_from_now", week)},
		{"add_reminder", engine.Changes, listed("add_reminder"), takes(callAddReminder), ""},
		{"list_reminders", engine.ReadsOnly, listed("list_reminders"), takes(callListReminders), schema(0)},
		{"cancel_reminder", engine.Changes, listed("cancel_reminder"), takes(callCancelReminder), schema(1, "id", text)},
		{"update_names", engine.Changes, only(func(r *runlog.Run) bool { return r.Foreground }, "update_names is for the main conversation only."), takes(callNames), schema(0, "user_name", text, "bot_name", text)},
		{"compact_session", engine.Compacts, only(func(r *runlog.Run) bool { return r.Persistent }, "compact_session is for persistent routine sessions only."), takes(callCompact), schema(1, "instructions", text)},
		{"skill", engine.Starts, usesSkills, takes(callSkill), schema(1, "name", text, "arguments", `{"type":"string"}`)},
		{"search_docs", engine.ReadsOnly, listed("search_docs"), takes(callSearchDocs), schema(1, "query", text)},
		{runlog.EnterFork, engine.Changes, only(func(r *runlog.Run) bool { return r.Key == session.MainKey }, "enter_fork is for the main conversation only."), takes(callEnterFork), schema(0, "topic", `{"type":"string"}`)},
		{runlog.ExitFork, engine.Changes, only(inFork, "exit_fork is for an interactive fork only."), takes(callExitFork), schema(0)},
		{runlog.SaveContext, engine.Changes, only(inFork, "save_context is for an interactive fork only."), takes(callSaveContext), schema(0)},
	}
}

// embedTool is the tool that sends an embed. An agent whose owner has no messenger for it is not shown it; a call sends the text.
const embedTool = "discord_embed"

func (w World) embeds() bool { return w.Embeds != nil && w.Embeds() }

// only returns the check of a tool that only some runs have; other runs get the refusal.
func only(has func(*runlog.Run) bool, refusal string) func(*Set) error {
	return func(b *Set) error {
		if !has(b.Run) {
			return &Refused{refusal}
		}
		return nil
	}
}

// Refused is the error of a call that the run may not make. The agent reads the reason.
type Refused struct{ Reason string }

func (e *Refused) Error() string { return e.Reason }

// List returns the tools that the agent is shown: those that the run may use. The main conversation and its branches are shown the same
// list, so that the model's cache is used (behaviour 8.6); a tool that such a run may not use is refused when called. So is follow_up_chain
// at the final check of a chain, whose refusal says what to do instead.
func (b *Set) List() []engine.Tool {
	var list []engine.Tool
	for _, t := range tools() {
		if !(permits{b}).names(Prefix+t.name) || t.name == embedTool && !b.World.embeds() {
			continue
		}
		if b.Run.Shared || t.may(b) == nil || t.name == "follow_up_chain" && b.Run.MaxChain > 0 {
			schema := json.RawMessage(t.schema)
			if t.schema == "" {
				schema = reminderSchema(b)
			}
			description, _ := descriptions.ReadFile(t.name + ".md") // every tool has one
			list = append(list, engine.Tool{Name: t.name, Description: string(description), Schema: schema, Effect: t.effect})
		}
	}
	return list
}

// Usable returns the names of the tools that the run may use, even if it is shown more.
func (b *Set) Usable() (names []string) {
	for _, t := range tools() {
		if t.may(b) == nil {
			names = append(names, t.name)
		}
	}
	return names
}

// Call is Use for an engine: the agent reads errors in the result.
func (b *Set) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	text, err := b.Use(ctx, name, input)
	if err != nil {
		return engine.ToolResult{Text: b.Run.Hide(err.Error()), IsError: true}
	}
	return engine.ToolResult{Text: b.Run.Hide(text)}
}

// Use runs one tool. A call that the run may not make is recorded, and its error is a *Refused. The error of invalid arguments begins with
// "bad arguments: ".
func (b *Set) Use(ctx context.Context, name string, input json.RawMessage) (string, error) {
	list := tools()
	at := slices.IndexFunc(list, func(t tool) bool { return t.name == name })
	if at < 0 {
		return "", fmt.Errorf("no tool %q", name)
	}
	var text string
	err := list[at].may(b)
	if err == nil {
		text, err = list[at].call(ctx, b, input)
	}
	if refused := (*Refused)(nil); errors.As(err, &refused) {
		err = errors.Join(err, b.Run.Event(ctx, runlog.Event{Type: runlog.Refusal, Tool: name, Text: refused.Reason}))
	}
	return text, err
}

// takes returns a tool's call that decodes the arguments for a function.
func takes[T any](call func(context.Context, *Set, T) (string, error)) func(context.Context, *Set, json.RawMessage) (string, error) {
	return func(ctx context.Context, b *Set, input json.RawMessage) (string, error) {
		var in T
		if err := decode(input, &in); err != nil {
			return "", err
		}
		return call(ctx, b, in)
	}
}

// decode reads a tool's input strictly, so that a misspelt argument is an error and not ignored.
func decode(input json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("bad arguments: %w", store.Misfit(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bad arguments: more than one JSON value")
	}
	return nil
}

// Sends reports whether a tool sends the owner something.
func Sends(name string) bool {
	return slices.ContainsFunc(tools(), func(t tool) bool { return t.name == name && t.effect == engine.Sends })
}
