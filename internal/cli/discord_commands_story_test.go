package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/server/discord"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// phone is an owner who uses commands and buttons in Discord.
type phone struct {
	*world

	server *discordapi.Server
	x      *discord.Interactions

	mu       sync.Mutex
	launched []string // command lines
	said     []string // with their tags
	warned   []string
}

func newPhone(t *testing.T) *phone {
	t.Helper()
	p := &phone{world: newWorld(t), server: discordapi.New(t, discordapi.Options{SlashTime: time.Minute})} // a busy machine is slower than Discord allows
	p.restart()
	return p
}

// restart makes what answers anew, as another process of the listener does.
func (p *phone) restart() {
	p.t.Helper()
	d := p.deps(nil, io.Discard, io.Discard)
	d.Warn = func(message string) { p.note(&p.warned, message) }
	d.Commands = commandAccess()
	p.x = &discord.Interactions{API: p.client(), Look: time.Minute, Actions: &listener.Actions{
		Name: "discord", API: p.client(), Owns: func(user string) bool { return user == discordapi.Owner }, Now: d.Now, Warn: d.Warn,
		Runner: func() (*run.Runner, error) {
			h, err := d.Home()
			return h.Runner(false), err
		},
		Ollim:  func(ctx context.Context, words ...string) (string, error) { return d.typed(ctx, words) },
		Launch: func(words ...string) error { p.note(&p.launched, strings.Join(words, " ")); return nil },
		Say: func(_ context.Context, channel string, m turn.Message) error {
			p.note(&p.said, channel+" ["+m.Tag+"] "+m.Text)
			return nil
		},
	}}
}

func (p *phone) client() *api.Client {
	return api.New(api.Options{
		Base: p.server.URL(), Token: discordapi.Token, Now: time.Now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
}

func (p *phone) note(list *[]string, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, line)
}

// begin hands an interaction to what answers it.
func (p *phone) begin(i *discordapi.Interaction) {
	p.t.Helper()
	var event discordgo.Interaction
	if err := json.Unmarshal(i.Event, &event); err != nil {
		p.t.Fatal(err)
	}
	p.x.Interact(p.t.Context(), &event)
}

// use hands over an interaction and waits for the whole answer.
func (p *phone) use(i *discordapi.Interaction) discordapi.Interaction {
	p.t.Helper()
	p.begin(i)
	p.x.Wait()
	return p.server.Interaction(i.ID)
}

// slash uses a command, and returns the text of the answer, which was announced first.
func (p *phone) slash(name string, options ...discordapi.Option) string {
	p.t.Helper()
	i := p.use(p.server.Slash(discordapi.Owner, name, options...))
	if i.Answer != 5 || i.Message == "" {
		p.t.Errorf("/%s: first answer %d", name, i.Answer)
	}
	return p.server.Message(i.Message).Content
}

// button is a button of a message.
type button struct {
	Label    string `json:"label"`
	ID       string `json:"custom_id"`
	Style    int    `json:"style"`
	Disabled bool   `json:"disabled"`
}

// buttons are those of a message.
func (p *phone) buttons(message string) (list []button) {
	p.t.Helper()
	var rows []struct {
		Components []button `json:"components"`
	}
	if raw := p.server.Message(message).Components; len(raw) > 0 {
		if err := json.Unmarshal(raw, &rows); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, row := range rows {
		list = append(list, row.Components...)
	}
	return list
}

// click presses the button of a label.
func (p *phone) click(message, label string) discordapi.Interaction {
	p.t.Helper()
	list := p.buttons(message)
	i := slices.IndexFunc(list, func(b button) bool { return b.Label == label })
	if i < 0 {
		p.t.Fatalf("no button %q among %+v", label, list)
	}
	return p.use(p.server.Click(discordapi.Owner, message, list[i].ID))
}

// latest is the latest message in the DM.
func (p *phone) latest() discordapi.Message {
	p.t.Helper()
	all := p.server.Messages(discordapi.DM)
	if len(all) == 0 {
		p.t.Fatal("there is no message")
	}
	return all[len(all)-1]
}

// send sends a message with buttons to the owner.
func (p *phone) send(text string, buttons ...outbox.Button) (id string) {
	p.t.Helper()
	m, err := p.client().Send(p.t.Context(), discordapi.DM, messenger.Outgoing{Text: text, Buttons: buttons})
	if err != nil {
		p.t.Fatal(err)
	}
	return m.ID
}

func option(name string, value any) discordapi.Option {
	return discordapi.Option{Name: name, Value: value}
}

// TestDiscordCommands: every command of the table answers, and does what the command line does.
func TestDiscordCommands(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.script("turns:\n  - - text: hello\n")
	p.must("routine", "add", "market", "--cron", "0 9 * * *", "--background", "--description", "Watch stocks", "Look.")
	for _, tc := range []struct {
		name    string
		options []discordapi.Option
		want    []string
	}{
		{"version", nil, []string{"ollim "}},
		{"status", nil, []string{"```"}},
		{"cost", nil, []string{"nothing to show"}},
		{"cost", []discordapi.Option{option("by", "hour")}, []string{"⚠️", "hour"}},
		{"routines", nil, []string{"market", "Watch stocks"}},
		{"fire", []discordapi.Option{option("job", "market")}, []string{"Started `market`"}},
		{"fire", []discordapi.Option{option("job", "nosuch")}, []string{"⚠️", "nosuch"}},
		{"fire", []discordapi.Option{option("job", "no_such_job")}, []string{`no\_such\_job`}},
		{"model", nil, []string{"chat.model: default"}},
		{"model", []discordapi.Option{option("value", "opus")}, []string{"chat.model: opus"}},
		{"model", []discordapi.Option{option("value", "default")}, []string{"chat.model: default"}},
		{"model", []discordapi.Option{option("value", "a b")}, []string{"⚠️", "not the name of a model"}},
		{"thinking", []discordapi.Option{option("value", "adaptive")}, []string{"chat.thinking: adaptive"}},
		{"thinking", []discordapi.Option{option("value", "hard")}, []string{"⚠️", "hard"}},
		{"permissions", []discordapi.Option{option("value", "acceptEdits")}, []string{"chat.permissions: acceptEdits"}},
		{"permissions", nil, []string{"chat.permissions: acceptEdits"}},
		{"ping-budget", nil, []string{"/5"}},
		{"ping-budget", []discordapi.Option{{Name: "capacity", Type: 4, Value: 3}, {Name: "rate", Type: 4, Value: 120}}, []string{"/3"}},
		{"config", nil, []string{"chat.thinking", "adaptive", "names.user"}},
		{"config", []discordapi.Option{option("key", "names.user"), option("value", "Ada")}, []string{"names.user: Ada"}},
		{"config", []discordapi.Option{option("key", "names.user"), option("value", "--json")}, []string{"names.user: --json"}},
		{"config", []discordapi.Option{option("key", "delivery.command")}, []string{"⚠️", "cannot be shown"}},
		{"interrupt", nil, []string{"No turn is in progress."}},
		{"clear", nil, []string{"no conversation to clear"}},
		{"compact", nil, []string{"⚠️", "no session to compact"}},
		{"fork", []discordapi.Option{option("end", "report")}, []string{"⚠️", "no fork is open"}},
		{"gone", nil, []string{"does not know this command", "ollim discord sync"}},
	} {
		got := p.slash(tc.name, tc.options...)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("/%s %v: %q, want %q", tc.name, tc.options, got, want)
			}
		}
	}
	if len(p.launched) != 1 || !strings.HasPrefix(p.launched[0], "fire -- ") {
		t.Errorf("launched %q", p.launched)
	}
	if len(p.warned) > 0 {
		t.Errorf("warned %q", p.warned)
	}
	if shown := p.slash("config"); strings.Contains(shown, "engine") || strings.Contains(shown, "delivery.command") || strings.Contains(shown, "env ") {
		t.Errorf("shows %s", shown)
	}
}

// TestDiscordFork: a fork is opened, shown and ended by commands and buttons; a button of a fork that has ended says so.
func TestDiscordFork(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.script("turns:\n  - - text: hello\n  - - text: in the fork\n  - - tool: report_updates\n      input: {message: \"we chose the train\"}\n    - text: reported\n")
	p.must("chat", "hi")
	if got := p.slash("fork", option("topic", "the trip")); !strings.Contains(got, "your next message is its first turn") {
		t.Error(got)
	}
	opened := p.latest().ID
	p.must("chat", "by train?")
	if got := p.slash("fork"); !strings.Contains(got, "the trip") {
		t.Error(got)
	}
	if got := p.slash("fork", option("topic", "another")); !strings.Contains(got, "already open") {
		t.Error(got)
	}
	p.restart()
	p.click(opened, "Report")
	if got := p.latest().Content; got != "The fork has ended; the main conversation gets a summary." {
		t.Error(got)
	}
	for _, b := range p.buttons(opened) {
		if !b.Disabled {
			t.Errorf("%+v can be used", b)
		}
	}
	if got := p.must("update", "list"); !strings.Contains(got, "we chose the train") {
		t.Error(got)
	}
	p.use(p.server.Click(discordapi.Owner, opened, p.buttons(opened)[0].ID))
	if got := p.latest().Content; !strings.Contains(got, "this fork has ended") {
		t.Error(got)
	}
}

// TestDiscordForkWithoutReport: Report says so if the agent left no summary.
func TestDiscordForkWithoutReport(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.script("turns:\n  - - text: hello\n  - - text: in the fork\n  - - text: no\n  - - text: no\n  - - text: no\n")
	p.must("chat", "hi")
	p.slash("fork", option("topic", "the trip"))
	opened := p.latest().ID
	p.must("chat", "by train?")
	p.click(opened, "Report")
	if got := p.latest().Content; got != "The fork has ended; its agent left no summary, which the main conversation is told." {
		t.Error(got)
	}
	if got := p.must("update", "list"); !strings.Contains(got, "its agent left no summary") {
		t.Error(got)
	}
}

// TestDiscordConfirm: what takes something away must be pressed twice within a minute; the button itself says so.
func TestDiscordConfirm(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.script("turns:\n  - - text: hello\n")
	p.must("chat", "hi")
	p.slash("fork")
	message := p.latest().ID
	p.click(message, "Exit")
	if r := p.run("fork", "status"); r.status != 0 {
		t.Fatalf("one press has ended the fork: %s", r.errOut)
	}
	p.pass(2 * time.Minute)
	p.click(message, "Press again: Exit") // too late
	if r := p.run("fork", "status"); r.status != 0 {
		t.Fatalf("a late press has ended the fork: %s", r.errOut)
	}
	p.restart()
	p.pass(30 * time.Second)
	p.click(message, "Press again: Exit")
	if r := p.run("fork", "status"); r.status == 0 {
		t.Error("the fork is open")
	}
	p.slash("clear")
	asked := p.latest().ID
	p.click(asked, "Keep it")
	if left := p.buttons(asked); len(left) > 0 {
		t.Errorf("buttons %+v", left)
	}
	p.slash("clear")
	p.click(p.latest().ID, "Begin a new one")
	if got := p.latest().Content; got != "Your next message begins a new conversation." {
		t.Error(got)
	}
	if r := p.run("session", "id", "main"); r.status == 0 {
		t.Errorf("the conversation goes on: %s", r.out)
	}
}

// TestDiscordQuestion: a choice answers the question of a run after a restart of the listener, once.
func TestDiscordQuestion(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.secrets("discord.TOKEN=" + discordapi.Token + "\n")
	p.must("config", "set", "discord.api", p.server.URL())
	run := p.question(asks)
	message := p.latest().ID
	if text := p.latest().Content; strings.Contains(text, "ollim answer") || !strings.Contains(text, "answer until ") || !strings.Contains(text, "by a button or a reply") {
		t.Errorf("asked %q", text)
	}
	p.restart()
	p.click(message, "green blue")
	if !slices.Equal(p.launched, []string{"answer --continue -- " + run}) {
		t.Errorf("launched %q", p.launched)
	}
	for _, b := range p.buttons(message) {
		if !b.Disabled || (b.Style == 3) != (b.Label == "green blue") {
			t.Errorf("button %+v", b)
		}
	}
	p.use(p.server.Click(discordapi.Owner, message, outbox.ButtonID(outbox.ButtonAnswer, run, "1")))
	if got := p.latest().Content; !strings.Contains(got, "was answered") {
		t.Error(got)
	}
	p.must("answer", "--continue", "--", run)
	if got := p.record(run)["text"]; got != "painted" {
		t.Errorf("text %v", got)
	}
}

// TestDiscordButtonsOfAnEmbed: the buttons that the agent gives an embed act on tasks and say prompts, one use each, also of two
// presses at once.
func TestDiscordButtonsOfAnEmbed(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.must("task", "add", "Water the plants")
	p.must("task", "add", "Old thing")
	d := p.deps(nil, io.Discard, io.Discard)
	h := homeOf(t, d)
	id, err := h.Runner(false).Questions.KeepPrompt(t.Context(), "Prepare the meeting")
	if err != nil {
		t.Fatal(err)
	}
	message := p.send("Tasks", outbox.Button{Label: "Done", ID: outbox.ButtonID(outbox.ButtonTaskDone, "1")},
		outbox.Button{Label: "Delete", ID: outbox.ButtonID(outbox.ButtonTaskDel, "2"), Style: "danger"},
		outbox.Button{Label: "Prepare", ID: outbox.ButtonID(outbox.ButtonAgent, id)})
	p.restart()
	p.click(message, "Done")
	p.click(message, "Delete")
	if got := p.must("task", "list"); !strings.Contains(got, "Old thing") {
		t.Errorf("one press has deleted it: %s", got)
	}
	p.click(message, "Press again: Delete")
	if got := p.read("tasks/todo.txt"); !strings.HasPrefix(got, "x ") || strings.Contains(got, "Old thing") {
		t.Errorf("tasks %q", got)
	}
	prepare := outbox.ButtonID(outbox.ButtonAgent, id)
	for range 2 {
		p.begin(p.server.Click(discordapi.Owner, message, prepare))
	}
	p.x.Wait()
	if want := []string{discordapi.DM + " [button] Prepare the meeting"}; !slices.Equal(p.said, want) {
		t.Errorf("said %q, want %q", p.said, want)
	}
	texts := strings.Join(p.server.Said(discordapi.DM), "\n")
	if !strings.Contains(texts, "pressed already") || !strings.Contains(texts, "The button says: `` Prepare the meeting ``") {
		t.Error(texts)
	}
	for _, b := range p.buttons(message) {
		if !b.Disabled {
			t.Errorf("%+v can be used", b)
		}
	}
}

// TestDiscordPromptIsKept: a prompt that cannot be said can be said later.
func TestDiscordPromptIsKept(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	h := homeOf(t, p.deps(nil, io.Discard, io.Discard))
	id, err := h.Runner(false).Questions.KeepPrompt(t.Context(), "Go")
	if err != nil {
		t.Fatal(err)
	}
	message := p.send("Tasks", outbox.Button{Label: "Go", ID: outbox.ButtonID(outbox.ButtonAgent, id)})
	p.x.Say = func(context.Context, string, turn.Message) error { return errors.New("the disk is full") }
	p.click(message, "Go")
	if got := p.latest().Content; !strings.Contains(got, "the disk is full") || p.buttons(message)[0].Disabled {
		t.Error(got)
	}
	p.restart()
	p.click(message, "Go")
	if len(p.said) != 1 || !p.buttons(message)[0].Disabled {
		t.Errorf("said %q, buttons %+v", p.said, p.buttons(message))
	}
}

// TestDiscordCompletion: options are completed, at most 25 of them, from what there is.
func TestDiscordCompletion(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.must("routine", "add", "market", "--cron", "0 9 * * *", "--background", "--description", "Watch stocks", "Look.")
	p.must("routine", "add", "review", "--cron", "0 9 * * *", "--background", "Look.")
	for _, tc := range []struct {
		command, option, typed string
		want                   []string // some of the names
		most                   int
	}{
		{"fire", "job", "STOCK", []string{"market – Watch stocks"}, 1},
		{"fire", "job", "", []string{"market – Watch stocks", "review"}, 2},
		{"model", "value", "", []string{"default", "opus"}, 25},
		{"thinking", "value", "ad", []string{"adaptive"}, 1},
		{"config", "key", "SPEND", []string{"spend.per-day"}, 4},
		{"config", "key", "delivery.com", nil, 0},
		{"version", "value", "x", nil, 0},
	} {
		i := p.use(p.server.Complete(discordapi.Owner, tc.command, discordapi.Option{Name: tc.option, Value: tc.typed, Focused: true}))
		var answer struct {
			Choices []struct{ Name, Value string } `json:"choices"`
		}
		if err := json.Unmarshal(i.Data, &answer); err != nil || i.Answer != 8 {
			t.Fatalf("/%s: answer %d after %v: %s", tc.command, i.Answer, i.Took, i.Data)
		}
		if n := len(answer.Choices); n > tc.most || tc.most < 25 && n != tc.most {
			t.Errorf("/%s %q: %d choices, want %d: %s", tc.command, tc.typed, n, tc.most, i.Data)
		}
		for _, want := range tc.want {
			if !slices.ContainsFunc(answer.Choices, func(c struct{ Name, Value string }) bool { return strings.Contains(c.Name, want) }) {
				t.Errorf("/%s %q: no %q in %s", tc.command, tc.typed, want, i.Data)
			}
		}
	}
}

// TestDiscordLateAnswer: the answer of a command that took more than a quarter of an hour is a message of its own.
func TestDiscordLateAnswer(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	ollim := p.x.Ollim
	p.x.Ollim = func(ctx context.Context, words ...string) (string, error) {
		p.pass(16 * time.Minute)
		return ollim(ctx, words...)
	}
	i := p.use(p.server.Slash(discordapi.Owner, "version"))
	if got := p.latest(); got.ID == i.Message || !strings.Contains(got.Content, "ollim ") {
		t.Errorf("answer %+v", got)
	}
}

// TestDiscordStrangers: nobody but the owner is answered, whatever they use.
func TestDiscordStrangers(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.must("task", "add", "Water the plants")
	message := p.send("Tasks", outbox.Button{Label: "Done", ID: outbox.ButtonID(outbox.ButtonTaskDone, "1")})
	before := len(p.server.Calls("", ""))
	const stranger = "1100000000000000099"
	for _, i := range []*discordapi.Interaction{
		p.server.Slash(stranger, "status"), p.server.Slash(discordapi.Bot, "clear"),
		p.server.Complete(stranger, "fire", discordapi.Option{Name: "job", Value: "", Focused: true}),
		p.server.Click(stranger, message, outbox.ButtonID(outbox.ButtonTaskDone, "1")),
	} {
		if got := p.use(i); got.Answer != 0 {
			t.Errorf("answered %+v", got)
		}
	}
	p.x.React(&discordgo.MessageReaction{UserID: stranger, MessageID: message, Emoji: discordgo.Emoji{Name: "✅"}})
	if after := len(p.server.Calls("", "")); after != before || len(p.warned) > 0 {
		t.Errorf("%d requests, warned %q", after-before, p.warned)
	}
	for _, id := range []string{"", "other", "ollim", "ollim:task_done", "x:task_done:1"} { // of no button of ours
		if got := p.use(p.server.Click(discordapi.Owner, message, id)); got.Answer != 0 {
			t.Errorf("%q: answered %+v", id, got)
		}
	}
	p.use(p.server.Click(discordapi.Owner, message, "ollim:nosuch:1"))
	if got := p.latest().Content; got != "This version of ollim does not know this button." {
		t.Error(got)
	}
	if got := p.read("tasks/todo.txt"); strings.HasPrefix(got, "x ") {
		t.Errorf("tasks %q", got)
	}
}

// TestDiscordSync: the commands are registered when they are not those that were registered last.
func TestDiscordSync(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	h := homeOf(t, p.deps(nil, io.Discard, io.Discard))
	p.secrets("discord.TOKEN=" + discordapi.Token + "\n")
	p.must("config", "set", "discord.api", p.server.URL())
	sync := func(app string, again bool) int {
		n, err := discord.SyncCommands(t.Context(), p.client(), paths.Dir(p.dir), h.Disk, app, again)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	p.server.Fail(discordapi.Fault{Method: http.MethodPut, Status: http.StatusBadRequest})
	if _, err := discord.SyncCommands(t.Context(), p.client(), paths.Dir(p.dir), h.Disk, discordapi.Application, false); err == nil {
		t.Error("a refusal is no error")
	}
	first, second, again := sync(discordapi.Application, false), sync(discordapi.Application, false), sync(discordapi.Application, true)
	if first != 14 || second != 0 || again != 14 {
		t.Errorf("registered %d, %d and %d", first, second, again)
	}
	before := len(p.server.Calls(http.MethodPut, "/commands"))
	p.must("discord", "sync")
	if n := len(p.server.Calls(http.MethodPut, "/commands")) - before; n != 1 {
		t.Errorf("registered %d times", n)
	}
	for _, tc := range []struct{ answer, times, status int }{{http.StatusUnauthorized, 1, 78}, {http.StatusBadGateway, 100, 69}} {
		p.server.Fail(discordapi.Fault{Status: tc.answer, Times: tc.times})
		if r := p.run("discord", "sync"); r.status != tc.status || strings.Contains(r.errOut, discordapi.Token) {
			t.Errorf("exit status %d: %s", r.status, r.errOut)
		}
	}
	var list []struct{ Name, Description string }
	if err := json.Unmarshal(p.server.Commands(), &list); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range list {
		names[c.Name] = true
		if n := len([]rune(c.Description)); n < 1 || n > 100 {
			t.Errorf("/%s: a description of %d characters", c.Name, n)
		}
	}
	want := strings.Fields("clear compact config cost fire fork interrupt model permissions ping-budget routines status thinking version")
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
		t.Errorf("commands %q", got)
	}
	if strings.Contains(string(p.server.Commands()), "null") {
		t.Errorf("%s", p.server.Commands())
	}
}
