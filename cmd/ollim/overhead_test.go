package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// BenchmarkOverhead measures what a fire costs beyond claude itself: the same prompt by `claude -p` alone and by
// `ollim fire`, in turns in one run, against a model that answers at once.
//
//	go test ./cmd/ollim -run '^$' -bench Overhead -benchtime 15x
func BenchmarkOverhead(b *testing.B) {
	claude := anthropicapi.Claude(b)
	api := anthropicapi.New(b)
	env := anthropicapi.ClaudeEnv(b, api)
	c := benchCommand(b)
	c.ok(append([]string{"config", "set", "env"}, env...)...)
	c.ok("config", "set", "claude-code.command", claude)
	c.ok("config", "set", "engine", "claude-code")
	for _, limit := range []string{"per-run", "per-day", "per-month", "runs-per-day"} {
		c.ok("config", "set", "spend."+limit, "none")
	}
	c.write("routines/bench.md", "---\nid: bench\ncron: \"0 9 * * *\"\nbackground: true\nisolated: true\n---\nSay ok.\n")

	var alone, fired time.Duration
	for b.Loop() {
		alone += timed(b, func() error {
			cmd := exec.Command(claude, "-p", "--output-format", "stream-json", "--verbose", "--model", "opus",
				"--setting-sources", "", "--strict-mcp-config", "--tools", "Read,Glob,Grep,Bash", "--permission-mode", "dontAsk")
			cmd.Env, cmd.Dir, cmd.Stdin = env, c.data, strings.NewReader("Say ok.")
			return cmd.Run()
		})
		fired += timed(b, func() error { return c.cmd("fire", "bench").Run() })
	}
	each := func(d time.Duration) float64 { return float64(d.Milliseconds()) / float64(b.N) }
	b.ReportMetric(each(alone), "claude-ms")
	b.ReportMetric(each(fired), "fire-ms")
	b.ReportMetric(each(fired-alone), "overhead-ms")
}

func benchCommand(b *testing.B) *command {
	b.Helper()
	path, err := build()
	if err != nil {
		b.Fatal(err)
	}
	c := &command{t: b, path: path, data: b.TempDir()}
	c.ok("init", "--timezone", "UTC")
	return c
}

func timed(b *testing.B, do func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}
