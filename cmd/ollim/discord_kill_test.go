package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// TestListenerIsKilled kills the listener with -9 at random moments, between messages, turns and their answers. Each message is in
// exactly one prompt as one that is asked; one whose turn was cut off is reported by a later one.
func TestListenerIsKilled(t *testing.T) {
	t.Parallel()
	for range rounds(t, 1) {
		killListener(t, 12, 4)
	}
}

func killListener(t *testing.T, messages, kills int) {
	t.Helper()
	s := discordapi.New(t, discordapi.Options{})
	c := newCommand(t)
	c.write("play.yaml", "turns:\n"+strings.Repeat("  - - text: well\n    - delay: 30ms\n    - text: done\n", 100))
	c.ok("config", "set", "engine", "script:play.yaml")
	c.ok("config", "set", "discord.api", s.URL())
	start := func() func() { return c.listen(s) }
	kill := start()
	for i := range messages {
		s.Say(discordapi.Post{Text: fmt.Sprintf("message-%02d", i)})
		if i%(messages/kills) == 1 {
			time.Sleep(time.Duration(rand.Intn(120)) * time.Millisecond) //nolint:gosec // any moment
			kill()
			kill = start()
		}
	}
	last := fmt.Sprintf("message-%02d", messages-1)
	s.Wait("the last answer", func() bool { return c.askedOnce(last) && !strings.Contains(c.read("state/discord.json"), `"open"`) })
	s.Say(discordapi.Post{Text: "the end"}) // reports what was cut off
	s.Wait("the end", func() bool {
		return c.askedOnce("the end") && !strings.Contains(c.read("state/discord.json"), `"open"`)
	})
	kill()
	all := c.prompts()
	for i := range messages {
		text := fmt.Sprintf("message-%02d", i)
		switch n := strings.Count("\n"+all, "\n"+text+"\n"); {
		case n != 1:
			t.Errorf("%s was asked %d times", text, n)
		case i > 0 && strings.Index(all, "\n"+text+"\n") < strings.Index(all, fmt.Sprintf("\nmessage-%02d\n", i-1)):
			t.Errorf("%s was asked too early", text)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
	replies := map[string]string{}
	for _, m := range s.Messages(discordapi.DM) {
		if len(m.Reactions["👀"]) > 0 {
			t.Errorf("%s keeps its reaction", m.Content)
		}
		if m.Reference == nil {
			continue
		}
		if before := replies[m.Reference.Message]; before != "" {
			t.Errorf("two replies to one message: %q and %q", before, m.Content)
		}
		replies[m.Reference.Message] = m.Content
	}
}

// TestKilledAnswer: of an answer that a killed listener had begun to show nothing is left beside the whole one; of a turn that was
// cut off the beginning stays, with a line that says so.
func TestKilledAnswer(t *testing.T) {
	t.Parallel()
	const cutOff = "-# ollim was restarted during this turn, and the answer was cut off. Your message is kept: the agent reads it again with your next one."
	for name, tc := range map[string]struct {
		delay string // in the turn
		want  string
	}{"shown": {"1s", "It begins\n\nand ends."}, "cut off": {"1h", "It begins\n\n" + cutOff}} {
		t.Run(name, func(t *testing.T) {
			s := discordapi.New(t, discordapi.Options{})
			c := newCommand(t)
			c.write("play.yaml", "turns:\n  - - text: It begins\n    - delay: "+tc.delay+"\n    - text: and ends.\n")
			c.ok("config", "set", "engine", "script:play.yaml")
			c.ok("config", "set", "discord.api", s.URL())
			kill := c.listen(s)
			s.Say(discordapi.Post{Text: "Hello!"})
			s.Wait("the beginning", func() bool { return strings.Contains(strings.Join(s.Said(discordapi.DM), ""), "It begins") })
			if s.Cut(); tc.delay != "1h" {
				s.Wait("the end of the turn", func() bool { return strings.Contains(c.ok("run", "list", "--json"), `"outcome":"ok"`) })
			}
			kill()
			s.Restore()
			kill = c.listen(s)
			s.Wait("the answer", func() bool { return !strings.Contains(c.read("state/discord.json"), `"open"`) })
			kill()
			if got := s.Said(discordapi.DM); len(got) != 1 || got[0] != tc.want {
				t.Errorf("said %q, want %q", got, tc.want)
			}
		})
	}
}

// TestStopOfATurnAtDiscord: ollim stop ends the turn, and the listener that takes it goes on.
func TestStopOfATurnAtDiscord(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	c := newCommand(t)
	c.write("play.yaml", "turns:\n  - - text: It begins\n    - delay: 1h\n  - - text: Once more.\n")
	c.ok("config", "set", "engine", "script:play.yaml")
	c.ok("config", "set", "discord.api", s.URL())
	defer c.listen(s)()
	says := func(text string) {
		s.Wait(text, func() bool { return strings.Contains(strings.Join(s.Said(discordapi.DM), "\n"), text) })
	}
	s.Say(discordapi.Post{Text: "Hello!"})
	says("It begins")
	c.ok("stop", "--all")
	if got := c.ok("run", "show", "last"); !strings.Contains(got, "stopped by ollim stop") {
		t.Error(got)
	}
	s.Say(discordapi.Post{Text: "Are you there?"})
	says("Once more.")
}

// listen starts a listener, waits until it is connected, and returns what kills it.
func (c *command) listen(s *discordapi.Server) (kill func()) {
	c.t.Helper()
	var errOut bytes.Buffer
	before := s.Visits()
	cmd := c.cmd("discord", "listen")
	cmd.Env = append(cmd.Env, "OLLIM_DISCORD_TOKEN="+discordapi.Token)
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	s.Wait("the listener", func() bool { v := s.Visits(); return v.Identified+v.Resumed > before.Identified+before.Resumed })
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if strings.Contains(errOut.String(), "panic") {
			c.t.Error(errOut.String())
		}
	}
}

// TestAnswerToAQuestionAfterARestart: a reply to the question of a run that waits lets the run go on, whatever process asked it.
func TestAnswerToAQuestionAfterARestart(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	c := newCommand(t)
	c.write("play.yaml", "turns:\n  - - tool: ask_owner\n      input: {question: \"Which photos?\"}\n  - - text: copied\n")
	c.ok("config", "set", "engine", "script:play.yaml")
	c.ok("config", "set", "discord.api", s.URL())
	c.ok("routine", "add", "backup", "--id", "backup", "--cron", "0 3 * * *", "--background", "--isolated", "Back up.")
	c.listen(s)()
	fire := c.cmd("fire", "backup")
	fire.Env = append(fire.Env, "OLLIM_DISCORD_TOKEN="+discordapi.Token)
	if out, err := fire.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said := s.Messages(discordapi.DM)
	if len(said) != 1 || !strings.Contains(said[0].Content, "Which photos?") {
		t.Fatalf("said %v", said)
	}
	kill := c.listen(s)
	defer func() { kill() }()
	reply := s.Say(discordapi.Post{Text: "only the new ones", Reply: said[0].ID})
	s.Wait("the end of the run", func() bool { return strings.Contains(c.ok("run", "show", "backup"), "copied") })
	s.Wait("the mark", func() bool { return len(s.Message(reply).Reactions["✅"]) == 1 })
	if log := c.ok("run", "log", "backup"); !strings.Contains(log, "only the new ones") {
		t.Error(log)
	}
}

func (c *command) askedOnce(text string) bool { return strings.Contains(c.prompts(), "\n"+text+"\n") }

// prompts returns the prompts of all runs, oldest first.
func (c *command) prompts() string {
	files, _ := filepath.Glob(filepath.Join(c.data, "state/runs/*/*/*/*/prompt.txt"))
	var all strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f)
		all.Write(append(text, '\n'))
	}
	return all.String()
}
