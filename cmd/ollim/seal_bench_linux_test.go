package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// BenchmarkSeal measures what the seal adds to a fire of the native engine, and to each command of one: the same routine sealed and
// not, in turns in one run, against a model that answers at once. The metrics are medians, and the medians of the differences.
//
// go test ./cmd/ollim -run '^$' -bench Seal -benchtime 50x
func BenchmarkSeal(b *testing.B) {
	for _, commands := range []int{0, 1, 50} {
		b.Run(fmt.Sprintf("%d commands", commands), func(b *testing.B) { benchmarkSeal(b, commands) })
	}
}

func benchmarkSeal(b *testing.B, commands int) {
	free, sealed := benchmarkedRoutine(b, "off", commands), benchmarkedRoutine(b, "on", commands)
	var without, with, more []time.Duration
	for b.Loop() {
		one := timed(b, func() error { return free.cmd("fire", "bench").Run() })
		other := timed(b, func() error { return sealed.cmd("fire", "bench").Run() })
		without, with, more = append(without, one), append(with, other), append(more, other-one)
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2].Microseconds()) / 1000
	}
	b.ReportMetric(0, "ns/op") // it would count both
	b.ReportMetric(median(without), "ms-free")
	b.ReportMetric(median(with), "ms-sealed")
	b.ReportMetric(median(more)/float64(max(commands, 1)), "ms-more")
}

// benchmarkedRoutine is a routine that executes as many commands as that, one after the other.
func benchmarkedRoutine(b *testing.B, mode string, commands int) *command {
	c, api := withNative(b)
	c.write("nothing.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(c.data, "nothing.sh"), 0o700); err != nil {
		b.Fatal(err)
	}
	c.ok("config", "set", "seal", mode)
	for _, limit := range []string{"per-run", "per-day", "per-month", "runs-per-day"} {
		c.ok("config", "set", "spend."+limit, "none")
	}
	c.ok("routine", "add", "bench", "--id", "bench", "--cron", "@yearly", "--background", "--isolated", "--allowed-tools", "Bash(./nothing.sh)", "Work.")
	var uses []anthropicapi.ToolUse
	for i := range commands {
		uses = append(uses, anthropicapi.ToolUse{ID: fmt.Sprintf("use_%d", i), Name: "Bash", Input: map[string]string{"command": "./nothing.sh"}})
	}
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if len(uses) > 0 && len(q.ToolResults()) == 0 {
			return anthropicapi.Reply{ToolUses: uses}
		}
		return anthropicapi.Reply{Text: "done"}
	})
	return c
}
