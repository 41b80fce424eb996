package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/session"
)

// chatCommand is a command of the prompt loop. No command is a turn of the conversation.
type chatCommand struct {
	name  string // with its slash
	args  string
	about string
	run   func(l *chatLoop, ctx context.Context, args string) error
	alone bool // it runs like a turn: not during one, and Ctrl-C stops it
}

func chatCommands() []chatCommand {
	return []chatCommand{
		{name: "/fork", args: "[TOPIC]", about: "talk aside; /fork save, report or exit ends it", run: (*chatLoop).fork, alone: true},
		{name: "/compact", args: "[INSTRUCTIONS]", about: "replace the conversation by a summary", alone: true, run: func(l *chatLoop, ctx context.Context, instructions string) error {
			return runSessionCompact(ctx, l.d, "main", cmp.Or(instructions, prompt.StandardSummary), "")
		}},
		{name: "/clear", about: "begin a new conversation; this one is kept", run: func(l *chatLoop, ctx context.Context, _ string) error {
			err := l.h.Turns(true).Clear(ctx)
			if err == nil {
				l.d.note("your next message begins a new conversation")
			}
			return err
		}},
		{name: "/model", args: "[NAME]", about: "show the model, or use another from now on", run: func(l *chatLoop, _ context.Context, name string) error {
			return l.set(name, func(o *chatOptions) *string { return &o.model }, l.h.Config.Chat.Model, "the engine's default")
		}},
		{name: "/thinking", args: "[HOW]", about: "how much to think: off, adaptive or a number of tokens", run: func(l *chatLoop, _ context.Context, how string) error {
			return l.set(how, func(o *chatOptions) *string { return &o.thinking }, l.h.Config.Chat.Thinking)
		}},
		{name: "/permissions", args: "[MODE]", about: "when to ask you: dontAsk, default or acceptEdits", run: func(l *chatLoop, _ context.Context, mode string) error {
			return l.set(mode, func(o *chatOptions) *string { return &o.permissions }, l.h.Config.Chat.Permissions)
		}},
		{name: "/cost", about: "what runs have cost in the last 30 days", run: func(l *chatLoop, _ context.Context, _ string) error { return runCost(l.d, "job", "30d") }},
		{name: "/status", about: "what runs, failed, waits and fires next", run: func(l *chatLoop, ctx context.Context, _ string) error { return runStatus(ctx, l.d, false) }},
		{name: "/help", about: "this list", run: (*chatLoop).help},
		{name: "/exit", about: "leave; so do exit and Ctrl-D", run: func(l *chatLoop, _ context.Context, _ string) error {
			l.leaving = true
			return nil
		}},
	}
}

// parse splits a line into a command and its arguments. It returns no command for a message, whose text is then args.
func parse(line string) (c *chatCommand, args string, err error) {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "exit":
		word = "/exit"
	case strings.HasPrefix(line, "//"):
		return nil, line[1:], nil
	case !strings.HasPrefix(line, "/") || strings.Contains(word[1:], "/"): // a path begins a message
		return nil, line, nil
	}
	commands := chatCommands()
	i := slices.IndexFunc(commands, func(c chatCommand) bool { return c.name == word })
	if i < 0 {
		return nil, "", hint(usage("unknown command %s: /help lists them", word), "to send it as a message, begin it with //")
	}
	return &commands[i], strings.TrimSpace(rest), nil
}

// complete completes the name of a command.
func complete(line string, pos int) (string, int, bool) {
	if !strings.HasPrefix(line, "/") || strings.Contains(line[:pos], " ") {
		return "", 0, false
	}
	var fitting []string
	for _, c := range chatCommands() {
		if strings.HasPrefix(c.name, line[:pos]) {
			fitting = append(fitting, c.name)
		}
	}
	if len(fitting) == 0 {
		return line, pos, true
	}
	common := fitting[0]
	for _, name := range fitting {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	if len(fitting) == 1 {
		common += " "
	}
	return common + line[pos:], len(common), true
}

func (l *chatLoop) help(context.Context, string) error {
	t := l.d.table("")
	for _, c := range chatCommands() {
		t.row(strings.TrimSpace(c.name+" "+c.args), prose(c.about))
	}
	t.row("//TEXT", prose("a message that begins with a slash"))
	t.end()
	return nil
}

func (l *chatLoop) fork(ctx context.Context, args string) error {
	_, open, err := l.h.Sessions.Fork(ctx)
	switch {
	case err != nil:
		return err
	case args == "save":
		return runForkSave(ctx, l.d, l.h)
	case args == "report":
		return runForkReport(ctx, l.d, l.h)
	case args == "exit":
		return runForkExit(ctx, l.d, l.h)
	case open && args == "":
		return runForkStatus(ctx, l.d, l.h)
	case open:
		return hint(session.ErrForkOpen, "/fork save, /fork report or /fork exit ends it")
	}
	if _, err = l.h.Turns(l.d.atShell()).Forks.Open(ctx, args); err == nil {
		l.d.note("the fork is open: your next message is in it; /fork save, /fork report or /fork exit ends it")
	}
	return err
}

// set changes what the turns of this loop use, not the settings, and shows the value that is in force.
func (l *chatLoop) set(value string, field func(*chatOptions) *string, standard ...string) error {
	next := l.o
	*field(&next) = cmp.Or(value, *field(&next))
	if err := next.check("/"); err != nil {
		return err
	}
	l.o = next
	return l.d.answer(cmp.Or(slices.Insert(standard, 0, *field(&next))...), nil)
}
