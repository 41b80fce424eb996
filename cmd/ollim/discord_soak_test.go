package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// BenchmarkListenerSoak is one listener process that takes a turn after another; an iteration is a turn. After each hundred the owner
// has the conversation compacted. It logs what the process and its files have grown to: run it with -benchtime 10000x -v.
func BenchmarkListenerSoak(b *testing.B) {
	const answer = "The answer is long enough to be shown early."
	b.Run("script", func(b *testing.B) {
		c := newCommand(b)
		c.write("play.yaml", "turns:\n  - - text: "+answer+"\n")
		c.ok("config", "set", "engine", "script:play.yaml")
		soak(b, c)
	})
	b.Run("native", func(b *testing.B) {
		c, api := withNative(b)
		api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: answer} })
		soak(b, c)
	})
}

func soak(b *testing.B, c *command) {
	b.Helper()
	d := discordapi.New(b, discordapi.Options{Unlimited: true})
	c.ok("config", "set", "discord.api", d.URL())
	for _, limit := range []string{"spend.per-run", "spend.per-day", "spend.per-month", "spend.runs-per-day"} {
		c.ok("config", "set", limit, "none")
	}
	cmd := c.cmd("discord", "listen")
	cmd.Stderr, cmd.Env = os.Stderr, append(cmd.Env, "OLLIM_DISCORD_TOKEN="+discordapi.Token)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	d.Wait("the listener", d.Connected)
	turns, since, began, busy := 0, 0, time.Now(), processTime(b, cmd.Process.Pid)
	for b.Loop() {
		id := d.Say(discordapi.Post{Text: "hello"})
		d.Wait("the end", func() bool {
			m := d.Latest(discordapi.DM)
			return m.Reference != nil && m.Reference.Message == id && strings.HasSuffix(m.Content, "early.") && len(d.Message(id).Reactions["👀"]) == 0
		})
		if turns++; turns%100 == 0 {
			i := d.Slash(discordapi.Owner, "compact")
			d.Wait("the summary", func() bool { i := d.Interaction(i.ID); return i.Message != "" && d.Message(i.Message).Edits > 0 })
		}
		if slices.Contains([]int{10, 250, 1000, 2500, 5000, 7500, 10000}, turns) {
			n, used := float64(turns-since), processTime(b, cmd.Process.Pid)
			b.Logf("%d turns: %.1f MiB, %.1f ms a turn, %.1f ms of processor time; %s", turns, resident(b, cmd.Process.Pid),
				time.Since(began).Seconds()*1000/n, (used-busy).Seconds()*1000/n, sizes(b, c.data))
			since, began, busy = turns, time.Now(), used
		}
	}
}

// sizes is how many files there are below a directory, and what they hold, by folder.
func sizes(b *testing.B, dir string) string {
	b.Helper()
	type total struct{ files, bytes int64 }
	list := map[string]total{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		parts := strings.Split(name, "/")
		name = strings.Join(parts[:min(2, len(parts))], "/")
		if info, err := e.Info(); err == nil {
			list[name] = total{list[name].files + 1, list[name].bytes + info.Size()}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		text = append(text, fmt.Sprintf("%s %d, %d kB", name, list[name].files, list[name].bytes/1000))
	}
	return strings.Join(text, "; ")
}
