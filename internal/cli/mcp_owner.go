package cli

// This file is the toolkit of ollim mcp serve for the owner's own MCP client. Each tool is a command: its flags and arguments are the
// tool's properties, and what it prints is the result.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
)

// ownerTool is a tool that executes a command. A tool that agents have too has its name and its properties.
type ownerTool struct {
	name    string
	command string        // with the flags that the tool always gives
	about   string        // "": the command's own help
	effect  engine.Effect // given if it is Deletes or Sends: the hints for all others are the same
	needs   []param
	takes   []param
}

// param is a property of a tool, and how the command gets it.
type param struct {
	name string
	how  passing
	flag string // of the command, for byFlag
}

type passing int

const (
	byFlag  passing = iota
	byWord          // an argument
	byWords         // several arguments
	byDash          // standard input, which an argument - asks for
	byInput         // standard input
	byAll           // all properties, as JSON on standard input
)

func flagged(names ...string) (list []param) {
	for _, name := range names {
		list = append(list, param{name: strings.ReplaceAll(name, "-", "_"), flag: name})
	}
	return list
}

func params(how passing, names ...string) (list []param) {
	for _, name := range names {
		list = append(list, param{name: name, how: how})
	}
	return list
}

// ownerTools returns the owner's toolkit. It has no tools about the conversation that calls them (forks, chains, compaction, questions that
// a run asks), because the conversation of the owner's client is not one of ollim's.
func ownerTools() []ownerTool {
	return []ownerTool{
		{name: "status", command: "status --json"},
		{name: "list_updates", command: "update list --json", takes: flagged("all")},
		{name: "report_updates", command: "update add", about: "Leave a message for the agent's next turn in the main conversation", needs: params(byDash, "message")},
		{name: "list_reminders", command: "reminder list --json"},
		{name: "add_reminder", command: "reminder add", needs: params(byDash, "message"), takes: flagged("in", "at")},
		{name: "remind", command: "remind", needs: slices.Concat(params(byWord, "when"), params(byDash, "message"))},
		{name: "cancel_reminder", command: "reminder cancel", needs: params(byWord, "id")},
		{name: "list_tasks", command: "task list --json", takes: slices.Concat(params(byWords, "words"), flagged("all", "due"))},
		{name: "add_task", command: "task add", needs: params(byDash, "text"), takes: flagged("priority", "due")},
		{name: "edit_task", command: "task edit", needs: slices.Concat(params(byWord, "task"), params(byDash, "text")), takes: flagged("priority")},
		{name: "complete_task", command: "task done", needs: params(byWord, "task")},
		{name: "delete_task", command: "task rm", effect: engine.Deletes, needs: params(byWord, "task")},
		{name: "budget", command: "budget --json"},
		{name: "list_routines", command: "routine list --json"},
		{name: "fire", command: "fire --json", effect: engine.Sends, about: "Run a job now, wait for its end, and return its record", needs: params(byWord, "job"), takes: params(byDash, "input")},
		{name: "list_runs", command: "run list", takes: slices.Concat(params(byWord, "job"), flagged("number"))},
		{name: "show_run", command: "run show", needs: params(byWord, "run")},
		{name: "run_log", command: "run log", needs: params(byWord, "run")},
		{name: "stop_run", command: "stop", effect: engine.Deletes, needs: params(byWord, "run")},
		{name: "ask", command: "ask", effect: engine.Sends, about: "Ask the agent a question outside the main conversation, and return its answer", needs: params(byInput, "question"), takes: flagged("continue", "model")},
		{name: "answer", command: "answer", effect: engine.Sends, needs: slices.Concat(params(byWord, "run"), params(byDash, "text"))},
		{name: "ping_user", command: "ping", effect: engine.Sends, about: "Send the owner a short plain message", needs: params(byDash, "message")},
		{name: "discord_embed", command: "ping --embed -", effect: engine.Sends, about: "Send the owner structured data: a title and, as needed, a description, a link, fields, a footer and buttons", needs: params(byAll, "title")},
		{name: "send_file", command: "ping", effect: engine.Sends, about: "Send the owner a file, with a line of text", needs: []param{{name: "path", flag: "file"}}, takes: params(byWord, "message")},
		{name: "update_names", command: "names", takes: []param{{name: "user_name", flag: "user"}, {name: "bot_name", flag: "bot"}}},
		{name: "search_docs", command: "help search", about: "Search ollim's manuals: commands, fields of job files, settings", needs: params(byWord, "query")},
	}
}

// ownerToolkit holds the owner's tools. It may be used from several goroutines at once: each call is a command of its own.
type ownerToolkit struct {
	d    *deps
	list []engine.Tool
}

func newOwnerTools(d *deps) *ownerToolkit {
	k, root := &ownerToolkit{d: d}, newRoot(&deps{App: &app.App{}})
	root.InitDefaultHelpCmd()
	for _, t := range ownerTools() {
		k.list = append(k.list, t.described(root))
	}
	return k
}

// List returns the tools that the owner has.
func (k *ownerToolkit) List() []engine.Tool { return k.list }

// Call executes the command of a tool. The result is what the command prints, or an error if the command fails.
func (k *ownerToolkit) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	list := ownerTools()
	at := slices.IndexFunc(list, func(t ownerTool) bool { return t.name == name })
	if at < 0 {
		return engine.ToolResult{Text: fmt.Sprintf("no tool %q", name), IsError: true}
	}
	args, stdin, err := list[at].line(input)
	if err != nil {
		return engine.ToolResult{Text: "bad arguments: " + err.Error(), IsError: true}
	}
	out, errOut, end := k.d.beside(ctx, stdin, byStream, args)
	return engine.ToolResult{Text: cmp.Or(strings.TrimSpace(out+errOut), "done"), IsError: end != int(statusOK)}
}

// described returns the tool as clients see it, by the help of its command.
func (t ownerTool) described(root *cobra.Command) engine.Tool {
	words, _, _ := strings.Cut(t.command, " -")
	cmd, _, err := root.Find(strings.Fields(words))
	if err != nil {
		cmd = root // impossible: TestOwnerTools finds each
	}
	description := fmt.Sprintf("%s. It is the command ollim %s.", cmp.Or(t.about, cmd.Short), words)
	var fields []string
	for _, p := range slices.Concat(t.needs, t.takes) {
		fields = append(fields, p.name, p.schema(cmd))
	}
	schema := engine.Schema(len(t.needs), fields...)
	if t.whole() { // the parts of an embed are known to the tool of agents
		schema = tools.EmbedSchema()
	}
	return engine.Tool{Name: t.name, Description: description, Schema: json.RawMessage(schema), Effect: t.effect}
}

// whole reports whether the command reads all properties, those of an embed, from its standard input.
func (t ownerTool) whole() bool { return len(t.needs) == 1 && t.needs[0].how == byAll }

// propertyHelp describes the properties that are no flags, or whose flag has another meaning.
func propertyHelp() map[string]string {
	return map[string]string{
		"job":   "name or id of a routine, reminder or webhook",
		"run":   "a run's id, last, a job for its latest run, or JOB~N for its N-th latest one",
		"task":  "the number of a task",
		"id":    "the id of a reminder",
		"when":  "a delay such as 45m, or a time such as tomorrow 9am",
		"words": "words that the task contains; +PROJECT and @CONTEXT",
		"input": "data that is added to the prompt",
		"path":  "the file, at most 10 MiB",
		"query": "a few words",
	}
}

func (p param) schema(cmd *cobra.Command) string {
	s := struct {
		Type        string          `json:"type"`
		Items       json.RawMessage `json:"items,omitempty"`
		Description string          `json:"description,omitempty"`
	}{Type: "string"}
	s.Description = propertyHelp()[p.name]
	switch f := cmd.Flags().Lookup(p.flag); {
	case p.how == byWords:
		s.Type, s.Items = "array", json.RawMessage(`{"type":"string"}`)
	case p.how == byFlag && f != nil:
		s.Type, s.Description = typeOf(f), cmp.Or(s.Description, f.Usage)
	}
	text, _ := json.Marshal(s) // texts: it cannot fail
	return string(text)
}

func typeOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "boolean"
	case "int":
		return "integer"
	}
	return "string"
}

// line returns the command line of a call and its standard input.
func (t ownerTool) line(input json.RawMessage) (args []string, stdin string, err error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(input, &given); err != nil {
		return nil, "", store.Misfit(err)
	}
	args = strings.Fields(t.command)
	if t.whole() {
		return args, string(input), nil
	}
	var words []string
	for i, p := range slices.Concat(t.needs, t.takes) {
		value, found := given[p.name]
		delete(given, p.name)
		switch {
		case found:
		case i < len(t.needs):
			return nil, "", fmt.Errorf("%s is missing", p.name)
		default:
			continue
		}
		texts, err := p.texts(value)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", p.name, err)
		}
		switch p.how {
		case byFlag:
			args = append(args, "--"+p.flag+"="+texts[0])
		case byDash:
			words, stdin = append(words, "-"), texts[0]
		case byInput:
			stdin = texts[0]
		default:
			words = append(words, texts...)
		}
	}
	for name := range given {
		return nil, "", fmt.Errorf("unknown property %q", name)
	}
	return append(append(args, "--"), words...), stdin, nil
}

// texts returns a value as words of a command line.
func (p param) texts(value json.RawMessage) ([]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	list, many := v.([]any)
	if many != (p.how == byWords) {
		return nil, fmt.Errorf("want a list only where the schema has one")
	}
	if !many {
		list = []any{v}
	}
	var texts []string
	for _, item := range list {
		switch item.(type) {
		case string, bool, json.Number:
			texts = append(texts, fmt.Sprint(item))
		default:
			return nil, errors.New("want a text, a number, true or false")
		}
	}
	return texts, nil
}
