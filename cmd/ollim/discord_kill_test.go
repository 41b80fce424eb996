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
	start := func() (kill func()) {
		var errOut bytes.Buffer
		before := s.Visits()
		cmd := c.cmd("discord", "listen")
		cmd.Env = append(cmd.Env, "OLLIM_DISCORD_TOKEN="+discordapi.Token)
		cmd.Stderr = &errOut
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.Wait("the listener", func() bool { v := s.Visits(); return v.Identified+v.Resumed > before.Identified+before.Resumed })
		return func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if strings.Contains(errOut.String(), "panic") {
				t.Error(errOut.String())
			}
		}
	}
	kill := start()
	for i := range messages {
		s.Say(discordapi.Post{Text: fmt.Sprintf("message-%02d", i)})
		if i%(messages/kills) == 1 {
			time.Sleep(time.Duration(rand.Intn(120)) * time.Millisecond) //nolint:gosec,forbidigo // any moment
			kill()
			kill = start()
		}
	}
	last := fmt.Sprintf("message-%02d", messages-1)
	s.Wait("the last answer", func() bool { return c.askedOnce(last) && !strings.Contains(c.read("state/discord.json"), `"open"`) })
	s.Say(discordapi.Post{Text: "the end"}) // reports what was cut off
	s.Wait("the end", func() bool { return c.askedOnce("the end") && !strings.Contains(c.read("state/discord.json"), `"open"`) })
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
	for _, m := range s.Messages(discordapi.DM) {
		if len(m.Reactions["👀"]) > 0 {
			t.Errorf("%s keeps its reaction", m.Content)
		}
	}
}

func (c *command) askedOnce(text string) bool { return strings.Contains(c.prompts(), "\n"+text+"\n") }

// prompts returns the prompts of all runs, oldest first.
func (c *command) prompts() string {
	files, _ := filepath.Glob(filepath.Join(c.data, "state/runs/*/prompt.txt"))
	var all strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f)
		all.Write(append(text, '\n'))
	}
	return all.String()
}
