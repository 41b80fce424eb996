package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// sender is one `ollim chat` process.
type sender struct {
	text   string
	cmd    *exec.Cmd
	out    bytes.Buffer
	errOut bytes.Buffer
	killed bool
}

// echo makes a server answer "re: TEXT" to a message.
func echo(api *anthropicapi.Server) {
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		said := strings.Split(strings.TrimSpace(r.LastUserText()), "\n")
		return anthropicapi.Reply{Text: "re: " + said[len(said)-1]}
	})
}

// TestChatsAreAnsweredInOrder starts many chats while main is busy and kills a third of them with -9, before and while they are
// answered. Every message is answered once, in the order of arrival, or reported by the next turn if its turn was cut off; every
// pending update is delivered once.
func TestChatsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(testing.TB) *command{
		"script": func(t testing.TB) *command {
			c := newCommand(t)
			c.write("play.yaml", "turns:\n"+strings.Repeat("  - - text: well\n", 200))
			c.ok("config", "set", "engine", "script:play.yaml")
			return c
		},
		"native": func(t testing.TB) *command {
			c, api := withNative(t)
			echo(api)
			return c
		},
	} {
		for _, kills := range []bool{true, false}[:testkit.Full(2, 1)] {
			t.Run(fmt.Sprintf("%s kills=%v", name, kills), func(t *testing.T) {
				t.Parallel()
				for range rounds(t, 1) {
					manyChats(t, with(t), testkit.Full(50, 12), kills, name == "native")
				}
			})
		}
	}
}

// TestChatsAreAnsweredInOrderOnClaude is the same with the claude command.
func TestChatsAreAnsweredInOrderOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	echo(api)
	manyChats(t, c, testkit.Full(10, 3), false, false)
}

func manyChats(t *testing.T, c *command, n int, kills, echoes bool) {
	t.Helper()
	c.ok("config", "set", "delivery.command", "sh", "-c", `cat >> "delivered.txt"`)
	for i := range 5 {
		c.ok("update", "add", fmt.Sprintf("news-%d", i))
	}
	var killing sync.WaitGroup
	release := c.holdMain()
	senders := make([]*sender, n)
	for i := range senders {
		s := &sender{text: fmt.Sprintf("message-%02d.", i)}
		s.cmd, senders[i] = c.cmd("chat", s.text), s
		s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errOut
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, s.text+" is in the queue", func() bool {
			names, _ := filepath.Glob(filepath.Join(c.data, "state/queue/*.json"))
			return len(names) == i+1
		})
		if s.killed = kills && i%3 == 1; s.killed {
			after := time.Duration(rand.Int63n(int64(3 * time.Second)))
			killing.Go(func() {
				time.Sleep(after) // a random moment, before or while it is answered
				_ = s.cmd.Process.Kill()
			})
		}
	}
	release()
	killing.Wait()
	for _, s := range senders {
		err := s.cmd.Wait()
		if s.killed {
			continue
		}
		if err != nil || echoes && s.out.String() != "re: "+s.text+"\n" {
			t.Errorf("%s: %v, %q, %s", s.text, err, s.out.String(), s.errOut.String())
		}
	}
	c.ok("chat", "the last one")
	c.ok("chat", "one more")
	c.checkChats(senders)
}

// holdMain keeps the turns of main waiting until the function is called.
func (c *command) holdMain() (release func()) {
	c.t.Helper()
	held, err := lock.Try(filepath.Join(c.data, "state/locks/session-main.lock"))
	if err != nil {
		c.t.Fatal(err)
	}
	return held.Release
}

// checkChats compares the messages with the prompts of all runs.
func (c *command) checkChats(senders []*sender) {
	c.t.Helper()
	asked, reported := []string{}, map[string]int{}
	prompts, err := filepath.Glob(filepath.Join(c.data, "state/runs/*/*/*/*/prompt.txt"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range prompts {
		text := c.read(strings.TrimPrefix(path, c.data+"/"))
		for _, part := range strings.Split(strings.TrimSpace(text), "\n\n")[1:] {
			found := regexp.MustCompile(`message-\d\d\.`).FindAllString(part, -1)
			if strings.HasPrefix(part, "NOTE: A turn was cut off") {
				for _, m := range found {
					reported[m]++
				}
			} else {
				asked = append(asked, found...)
			}
		}
	}
	if !slices.IsSorted(asked) || len(slices.Compact(slices.Clone(asked))) != len(asked) {
		c.t.Errorf("messages were not answered once each, in their order: %q", asked)
	}
	for _, s := range senders {
		if !slices.Contains(asked, s.text) {
			c.t.Errorf("%s was lost", s.text)
		}
		if reported[s.text] > 0 && !s.killed {
			c.t.Errorf("%s was reported as cut off, and answered", s.text)
		}
	}
	// a killed sender may leave its temporary file, which the daily tick deletes
	if left, _ := filepath.Glob(filepath.Join(c.data, "state/queue/[^.]*")); len(left) > 0 {
		c.t.Errorf("left in the queue: %q", left)
	}
	for i := range 5 {
		popped := 0
		for _, row := range decodeLines(c.t, c.ok("updates", "list", "--all", "--json")) {
			if row.Message == fmt.Sprint("news-", i) && row.Became == "popped" {
				popped++
			}
		}
		if popped != 1 {
			c.t.Errorf("news-%d was popped %d times", i, popped)
		}
	}
}
