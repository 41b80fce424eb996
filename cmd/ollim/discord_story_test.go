package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// bot is a listener process with its Discord and its model.
type bot struct {
	*discordapi.Server
	*command

	model  *anthropicapi.Server
	proc   *exec.Cmd
	errOut bytes.Buffer
}

func newBot(t *testing.T) *bot {
	t.Helper()
	d := discordapi.New(t, discordapi.Options{Limits: true, SlashTime: time.Minute}) // a busy machine is slower than Discord allows
	c, model := withNative(t)
	c.ok("config", "set", "discord.api", d.URL())
	b := &bot{Server: d, command: c, model: model}
	b.begin()
	t.Cleanup(func() { _ = b.proc.Process.Kill(); _ = b.proc.Wait() })
	return b
}

// begin starts the listener and waits until it is connected.
func (b *bot) begin() {
	b.t.Helper()
	before := b.Visits()
	b.proc = b.cmd("discord", "listen")
	b.proc.Env, b.proc.Stderr = append(b.proc.Env, "OLLIM_DISCORD_TOKEN="+discordapi.Token), &b.errOut
	if err := b.proc.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.Wait("the listener", func() bool { v := b.Visits(); return v.Identified+v.Resumed > before.Identified+before.Resumed })
}

// terminate sends SIGTERM; end waits until the process has ended well.
func (b *bot) terminate() { _ = b.proc.Process.Signal(syscall.SIGTERM) }

func (b *bot) end() {
	b.t.Helper()
	if err := b.proc.Wait(); status(err) != 0 {
		b.t.Errorf("%v: %s", err, b.errOut.String())
	}
}

// fires runs a job in a process of its own, once no turn is in progress: an agent asks nothing meanwhile.
func (b *bot) fires(job string) {
	b.t.Helper()
	b.Wait("the end of the turn", func() bool { return !strings.Contains(b.ok("run", "list"), "\trunning\t") })
	cmd := b.cmd("fire", job)
	cmd.Env = append(cmd.Env, "OLLIM_DISCORD_TOKEN="+discordapi.Token)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
}

// shows waits until the newest message has this text, and nothing says that the agent works.
func (b *bot) shows(text string) (m discordapi.Message) {
	b.t.Helper()
	b.Wait(text, func() bool {
		m = b.Latest(discordapi.DM)
		busy := slices.ContainsFunc(b.Messages(discordapi.DM), func(m discordapi.Message) bool { return len(m.Reactions["👀"])+len(m.Reactions["⏳"]) > 0 })
		return !busy && m.Content == text
	})
	return m
}

// uses uses a command and returns the text of its answer.
func (b *bot) uses(name string, options ...discordapi.Option) (text string) {
	b.t.Helper()
	id := b.Slash(discordapi.Owner, name, options...).ID
	b.Wait("/"+name, func() bool {
		i := b.Interaction(id)
		if i.Answer != 5 || i.Message == "" {
			return false
		}
		text = b.Message(i.Message).Content
		return text != ""
	})
	return text
}

// TestDiscordDay is a day with the listener as a process: a conversation that is streamed, commands, a ping of a run in another
// process, a reply that goes on from that run's session, a restart in a turn, and a question answered by a button after it.
func TestDiscordDay(t *testing.T) {
	t.Parallel()
	b := newBot(t)
	b.write("notes.txt", "tea\n")
	b.ok("routine", "add", "oil", "--id", "oil", "--cron", "0 9 * * *", "--background", "--isolated", "--update-main-session", "freely", "Watch oil.")
	b.ok("routine", "add", "photos", "--id", "photos", "--cron", "0 3 * * *", "--background", "--isolated", "--update-main-session", "freely", "Back up.")

	held := make(chan struct{})
	b.model.Reply(anthropicapi.Reply{Text: "It begins with a walk.", ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": "notes.txt"}}}},
		anthropicapi.Reply{Text: "It ends with tea.", Hold: held})
	asked := b.Say(discordapi.Post{Text: "How was the day?"})
	b.Wait("the beginning", func() bool { return strings.HasPrefix(b.Latest(discordapi.DM).Content, "It begins with a walk.") })
	if m := b.Message(asked); len(m.Reactions["👀"]) != 1 || b.Typed(discordapi.DM) == 0 {
		t.Errorf("during the turn: reactions %v, typed %d times", m.Reactions, b.Typed(discordapi.DM))
	}
	close(held)
	if m := b.shows("It begins with a walk.\n\nIt ends with tea."); m.Reference == nil || m.Reference.Message != asked || m.Edits == 0 {
		t.Errorf("answer %+v", m)
	}

	b.commands()

	b.model.Reply(anthropicapi.Use("ping_user", map[string]string{"message": "Oil broke 75."}), anthropicapi.Reply{Text: "watched"})
	b.fires("oil")
	ping := b.shows("Oil broke 75.")
	b.model.Reply(anthropicapi.Reply{Text: "Half is sold."})
	b.Say(discordapi.Post{Text: "sell half of it", Reply: ping.ID})
	b.shows("Half is sold.")
	if sent := b.model.Requests(); !strings.Contains(string(sent[len(sent)-1].Raw), "Watch oil.") || !strings.Contains(string(sent[len(sent)-1].Raw), "sell half of it") {
		t.Errorf("the reply does not go on from the run: %s", sent[len(sent)-1].Raw)
	}
	b.uses("fork", discordapi.Option{Name: "end", Value: "exit"})
	confirm := b.Latest(discordapi.DM)
	b.Click(discordapi.Owner, confirm.ID, confirm.Button("Drop it"))
	b.Wait("the end of the fork", func() bool { return strings.HasPrefix(b.Latest(discordapi.DM).Content, "The fork has ended") })

	b.restarts()

	b.model.Reply(anthropicapi.Use("ask_owner", map[string]any{"question": "Which photos?", "choices": []string{"all", "only new ones"}}), anthropicapi.Reply{Text: "asked"})
	b.fires("photos")
	question := b.Latest(discordapi.DM)
	b.terminate()
	b.end()
	b.begin()
	b.model.Reply(anthropicapi.Reply{Text: "copied"})
	b.Click(discordapi.Owner, question.ID, question.Button("only new ones"))
	b.Wait("the end of the run", func() bool { return strings.Contains(b.ok("run", "show", "photos"), "copied") })
	if log := b.ok("run", "log", "photos"); !strings.Contains(log, "only new ones") {
		t.Error(log)
	}
	b.Wait("the button to look used", func() bool { return b.Message(question.ID).Button("only new ones") == "" })
	b.terminate()
	b.end()
	if b.errOut.Len() > 0 {
		t.Errorf("stderr %q", b.errOut.String())
	}
}

// commands uses commands and a completion.
func (b *bot) commands() {
	b.t.Helper()
	for name, want := range map[string]string{"version": "ollim ", "status": "```", "routines": "photos", "cost": "```", "config": "names.user"} {
		if text := b.uses(name); !strings.Contains(text, want) {
			b.t.Errorf("/%s: %s", name, text)
		}
	}
	id := b.Complete(discordapi.Owner, "fire", discordapi.Option{Name: "job", Value: "oi", Focused: true}).ID
	b.Wait("the completions", func() bool { return b.Interaction(id).Answer == 8 })
	if i := b.Interaction(id); !strings.Contains(string(i.Data), "oil") {
		b.t.Errorf("after %v: %s", i.Took, i.Data)
	}
	var list []any
	if err := json.Unmarshal(b.Commands(), &list); err != nil || len(list) != 14 {
		b.t.Errorf("%d commands, %v", len(list), err)
	}
}

// restarts stops the listener in a turn, which ends first; what is said meanwhile is answered by the next one.
func (b *bot) restarts() {
	b.t.Helper()
	held := make(chan struct{})
	b.model.Reply(anthropicapi.Reply{Text: "I look.", ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": "notes.txt"}}}},
		anthropicapi.Reply{Text: "I have looked.", Hold: held})
	b.Say(discordapi.Post{Text: "look"})
	b.Wait("the turn", func() bool { return strings.HasPrefix(b.Latest(discordapi.DM).Content, "I look.") })
	before := len(b.Visits().Closes)
	b.terminate()
	b.Wait("the end of the connection", func() bool { return len(b.Visits().Closes) > before })
	b.model.Reply(anthropicapi.Reply{Text: "Yes."})
	late := b.Say(discordapi.Post{Text: "Are you there?"})
	close(held)
	b.end()
	if said := b.Said(discordapi.DM); said[len(said)-1] != "I look.\n\nI have looked." {
		b.t.Errorf("said %q", said)
	}
	b.begin()
	if m := b.shows("Yes."); m.Reference == nil || m.Reference.Message != late {
		b.t.Errorf("answer %+v", m)
	}
	if v := b.Visits(); v.Identified != 1 || v.Resumed != 1 {
		b.t.Errorf("%+v", v)
	}
}
