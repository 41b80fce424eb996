package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// newDiscordWorld is a world with a bot whose token is in the secrets file.
func newDiscordWorld(t *testing.T, o discordapi.Options) (*world, *discordapi.Server) {
	t.Helper()
	s := discordapi.New(t, o)
	w := newWorld(t)
	w.must("config", "set", "discord.api", s.URL())
	w.secrets("discord.TOKEN=" + discordapi.Token + "\n")
	return w, s
}

// The owner gets what the agent sends, plain reminders and failures; a reply to any part of a message finds its session.
func TestDiscordDelivery(t *testing.T) {
	t.Parallel()
	w, s := newDiscordWorld(t, discordapi.Options{})
	w.must("ping", "from the shell")
	w.must("ping", "--embed", `{"title":"Backup","fields":[{"name":"size","value":"3 GB"}]}`)
	w.write("note.txt", "data")
	w.must("ping", "--file", filepath.Join(w.dir, "note.txt"))
	w.script("turns:\n  - - tool: ping_user\n      input: {message: \"" + strings.Repeat("A sentence. ", 300) + "\"}\n    - text: done\n  - - text: the answer\n")
	w.write("routines/daily.md", "---\nid: a1b2c3d4\ndescription: Daily\ncron: \"0 6 * * *\"\nbackground: true\nupdate-main-session: freely\n---\nDo it.\n")
	w.must("fire", "daily")
	texts := s.Said(discordapi.DM)
	if len(texts) != 5 || texts[0] != "from the shell" || strings.Join(texts[3:], "") != strings.Repeat("A sentence. ", 300)[:3599] {
		t.Fatalf("%d messages: %.200q", len(texts), texts)
	}
	for _, m := range s.Messages(discordapi.DM)[3:] {
		if !strings.Contains(w.read("state/fork_messages.json"), m.ID) {
			t.Errorf("message %s is not recorded: %s", m.ID, w.read("state/fork_messages.json"))
		}
	}
	last := s.Messages(discordapi.DM)[4].ID
	if out := w.must("fork", "reply", last, "and now?"); !strings.Contains(out, "the answer") {
		t.Errorf("%q", out)
	}
	if files := w.holding(".", discordapi.Token); len(files) > 0 {
		t.Errorf("the token is in %q", files)
	}
}

// A ping outside a run says what keeps it from the owner.
func TestDiscordPingFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options discordapi.Options
		fault   discordapi.Fault
		status  int
		says    string
	}{
		"closed":    {discordapi.Options{Closed: 50007}, discordapi.Fault{Path: "/none"}, 69, "ollim: ping: no direct message may be sent: the owner does not accept them"},
		"bad token": {discordapi.Options{}, discordapi.Fault{Status: 401}, 0, "ollim: warning: the bot's token is not accepted by Discord: ollim discord check"},
		"outage":    {discordapi.Options{}, discordapi.Fault{Times: 9}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newDiscordWorld(t, tc.options)
			s.Fail(tc.fault)
			r := w.run("ping", "hello")
			if r.status != tc.status || !strings.Contains(r.errOut, tc.says) || strings.Contains(r.errOut, discordapi.Token) {
				t.Errorf("exit status %d, %s", r.status, r.errOut)
			}
			if tc.status != 0 {
				return
			}
			w.pass(2 * 60e9)
			w.cron = true
			w.must("tick")
			if got := s.Said(discordapi.DM); len(got) != 1 || got[0] != "hello" {
				t.Errorf("after the tick: %q", got)
			}
		})
	}
}

// The token may be in three places. It is in no environment of a program, no record and no output.
func TestDiscordToken(t *testing.T) {
	t.Parallel()
	const script = "turns:\n  - - tool: ping_user\n      input: {message: \"the token is " + discordapi.Token + "\"}\n  - - text: \"I know " + discordapi.Token + "\"\n"
	for name, give := range map[string]func(*world){
		"file":        func(w *world) { w.secrets("discord.TOKEN=" + discordapi.Token + "\n") },
		"environment": func(w *world) { w.env["OLLIM_DISCORD_TOKEN"] = discordapi.Token },
		"credential": func(w *world) {
			w.env["CREDENTIALS_DIRECTORY"] = w.home
			if err := os.WriteFile(filepath.Join(w.home, "discord-token"), []byte("Bot "+discordapi.Token+"\n"), 0o640); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := discordapi.New(t, discordapi.Options{})
			w := newWorld(t)
			w.must("config", "set", "discord.api", s.URL())
			give(w)
			w.script(script)
			w.write("gates/ask", "#!/bin/sh\nenv > gate.env\nexit 0\n")
			if err := os.Chmod(filepath.Join(w.dir, "gates/ask"), 0o700); err != nil {
				t.Fatal(err)
			}
			w.must("routine", "add", "daily", "--cron", "0 6 * * *", "--gate", "ask", "--unsealed", "gate", "Do it.")
			r := w.run("fire", "daily")
			if got := s.Said(discordapi.DM); r.status != 0 || len(got) != 1 {
				t.Fatalf("exit status %d, %s, sent %q", r.status, r.errOut, got)
			}
			if files := w.holding("state", discordapi.Token); len(files) > 0 {
				t.Errorf("the token is in %q", files)
			}
			if out := w.run("run", "show").out + w.run("config", "list").out + w.run("discord", "check").out; strings.Contains(out, discordapi.Token) {
				t.Errorf("the token is in %s", out)
			}
			if env := w.read("gate.env"); strings.Contains(env, "TOKEN") || name == "environment" && !strings.Contains(env, "OLLIM_OUTBOX=queue") {
				t.Errorf("the gate got %s", env)
			}
		})
	}
}

// What a program sends that has no token waits for the process that has it.
func TestDiscordQueueOfPrograms(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	w := newWorld(t)
	w.must("config", "set", "discord.api", s.URL())
	w.env["OLLIM_OUTBOX"] = "queue"
	w.must("ping", "from a gate")
	delete(w.env, "OLLIM_OUTBOX")
	w.env["OLLIM_DISCORD_TOKEN"] = discordapi.Token
	w.must("ping", "from its parent")
	if got := strings.Join(s.Said(discordapi.DM), "|"); got != "from a gate|from its parent" {
		t.Errorf("%q", got)
	}
}

// A secrets file that others can read is not used.
func TestDiscordTokenOfOpenFile(t *testing.T) {
	t.Parallel()
	w, s := newDiscordWorld(t, discordapi.Options{})
	if err := os.Chmod(filepath.Join(w.home, ".config", "ollim", "secrets.env"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := w.run("ping", "hello")
	if len(s.Calls("", "")) != 0 || !strings.Contains(r.errOut, "others can read it") {
		t.Errorf("exit status %d, %s", r.status, r.errOut)
	}
	if r := w.run("discord", "check"); r.status != 78 || !strings.Contains(r.out, "FAIL\ttoken\t") {
		t.Errorf("exit status %d, %s", r.status, r.out)
	}
}

func TestDiscordCheck(t *testing.T) {
	t.Parallel()
	const stranger = "1200000000000000001"
	for name, tc := range map[string]struct {
		options discordapi.Options
		set     []string
		fault   discordapi.Fault
		status  int
		want    []string
	}{
		"good": {discordapi.Options{}, nil, discordapi.Fault{Path: "/none"}, 0, []string{
			"PASS\tAPI\treached", "PASS\ttoken\taccepted, application ollim (" + discordapi.Application + ")",
			"PASS\towner\t" + discordapi.Owner + ", who owns the application",
			"PASS\tmessages\tdirect messages are open", "PASS\tgateway\t1000 of 1000 sessions left today", "WARN\tclock\t",
			"WARN\tlistener\tnot running: ", "PASS\toutbox\tempty",
		}},
		"other owner": {discordapi.Options{}, []string{"discord.owner", stranger}, discordapi.Fault{Path: "/none"}, 0, []string{
			"WARN\towner\t" + stranger + ", of discord.owner, who does not own the application: check that this is you",
		}},
		"bad token": {discordapi.Options{}, nil, discordapi.Fault{Status: 401, Times: 9}, 78, []string{
			"FAIL\ttoken\tthe bot's token is not accepted by Discord: copy it from", "PASS\toutbox\tempty",
		}},
		"closed":    {discordapi.Options{Closed: 50007}, nil, discordapi.Fault{Path: "/none"}, 69, []string{"FAIL\tmessages\tno direct message may be sent: the owner"}},
		"no server": {discordapi.Options{Closed: 50278}, nil, discordapi.Fault{Path: "/none"}, 69, []string{"FAIL\tmessages\tno direct message may be sent: the bot and the owner share no server: invite"}},
		"outage":    {discordapi.Options{}, nil, discordapi.Fault{Status: 503, Times: 99}, 69, []string{"FAIL\tAPI\tDiscord has a problem: status 503"}},
		"cut":       {discordapi.Options{}, nil, discordapi.Fault{Times: 99}, 69, []string{"FAIL\tAPI\tno connection to Discord: EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newDiscordWorld(t, tc.options)
			if len(tc.set) > 0 {
				w.must(append([]string{"config", "set"}, tc.set...)...)
			}
			s.Fail(tc.fault)
			r := w.run("discord", "check")
			for _, want := range tc.want {
				if !strings.Contains("\n"+r.out, "\n"+want) {
					t.Errorf("%q is missing in\n%s", want, r.out)
				}
			}
			if r.status != tc.status || len(s.Said(discordapi.DM)) != 0 {
				t.Errorf("exit status %d, %s", r.status, r.errOut)
			}
		})
	}
	w := newWorld(t)
	if r := w.run("discord", "check", "--json"); r.status != 78 || !strings.Contains(r.out, `{"result":"FAIL","what":"token","text":"no Discord token: ollim secret set discord.TOKEN`) {
		t.Errorf("without a token: exit status %d, %s", r.status, r.out)
	}
	w, s := newDiscordWorld(t, discordapi.Options{})
	s.Cut()
	w.run("ping", "hello")
	s.Restore()
	if r := w.run("discord", "check"); r.status != 0 || !strings.Contains(r.out, "WARN\toutbox\t1 waiting: no connection to Discord") {
		t.Errorf("with a message that waits: exit status %d, %s", r.status, r.out)
	}
}

// Neither what an agent runs nor the delivery command gets the token, wherever it is.
func TestDiscordTokenIsNotHandedOn(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	w, model := newNativeWorld(t)
	w.must("config", "set", "discord.api", s.URL())
	w.must("config", "set", "delivery.command", "sh", "-c", "env > command.env")
	w.secrets("discord.TOKEN=" + discordapi.Token + "\ndelivery.PASSWORD=passw0rd\n")
	w.env["OLLIM_DISCORD_TOKEN"] = discordapi.Token
	w.writeProgram("env.sh", "#!/bin/sh\nenv > out/agent.env\n")
	w.write("out/agent.env", "")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Bash(./env.sh *)", "--allowed-tools", "Write(./out/**)", "Work.")
	model.Reply(bash("./env.sh x"), anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "ping_user", Input: map[string]string{"message": "hello"}}}}, anthropicapi.Reply{Text: "done"})
	w.run("fire", "daily")
	for file, want := range map[string]string{"out/agent.env": "OLLIM_OUTBOX=queue", "command.env": "PASSWORD=passw0rd"} {
		if env := w.read(file); !strings.Contains(env, want) || strings.Contains(env, discordapi.Token) {
			t.Errorf("%s: %q", file, env)
		}
	}
	if got := s.Said(discordapi.DM); len(got) != 1 || got[0] != "hello" {
		t.Errorf("sent %q", got)
	}
}
