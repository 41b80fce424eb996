package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestMoneyOnClaude: what is booked for fourteen fires of a persistent routine, for a conversation and three branches of it, and for a
// compaction is what the service counted. Versions from 2.1.277 on report the cost of a session, not of a process.
func TestMoneyOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	const name = "claude-opus-4-8" // whose price all tested versions know
	c, api := withClaude(t)
	c.ok("config", "set", "chat.model", name)
	c.write("routines/daily-market.md", strings.Replace(daily, "---\n", "---\nmodel: "+name+"\n", 1))
	c.write("routines/look.md", strings.Replace(lookFork, "---\n", "---\nmodel: "+name+"\n", 1))
	counted := anthropicapi.Usage{In: 2000, Out: 700, CacheRead: 9000, CacheWrite: 300}
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "ok", Usage: counted} })
	api.CompactReply(anthropicapi.Reply{Text: "<summary>all of it</summary>", Usage: counted})
	for range 14 {
		c.ok("fire", "daily")
	}
	c.ok("chat", "hello")
	for range 3 {
		c.ok("fire", "look")
	}
	c.ok("session", "compact", "routine:daily", "keep all")
	c.ok("fire", "daily")

	price, _ := model.Known().Resolve(name).Cost(model.Tokens{In: counted.In, Out: counted.Out, CacheRead: counted.CacheRead, CacheWrite: counted.CacheWrite})
	want := float64(len(api.Requests())) * price
	booked, doubted := 0.0, 0
	for line := range strings.Lines(c.ok("run", "list", "--json", "-n", "0")) {
		var r struct {
			Cost    float64 `json:"cost"`
			ByTable float64 `json:"cost_by_table"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if booked += r.Cost; r.ByTable != 0 {
			doubted++
		}
	}
	c.requestsAreKept(api, booked)
	if len(api.Requests()) != 20 || math.Abs(booked-want) > want/100 || doubted > 0 {
		t.Errorf("booked %.4f USD for %d requests, which cost %.4f; %d runs disagree with the table of models", booked, len(api.Requests()), want, doubted)
	}
}

// price is what a command says of a run's cost.
type price struct {
	Cost, Assumed float64
}

func (c *command) price(args ...string) (p price) {
	c.t.Helper()
	text := strings.Replace(c.ok(args...), "cost_assumed", "assumed", 1)
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		c.t.Fatalf("%q: %v: %s", args, err, text)
	}
	return p
}
