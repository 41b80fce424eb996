package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	objects "github.com/ollim/ollim/internal/state/object"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// BenchmarkAsk measures one question to a server that answers at once, and the memory that it takes.
func BenchmarkAsk(b *testing.B) {
	c, api := withNative(b)
	var pid, memory atomic.Int64
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		memory.Store(max(memory.Load(), peak(pid.Load())))
		return anthropicapi.Reply{Text: "ok"}
	})
	for b.Loop() {
		cmd := c.cmd("-p", "-n", "hello")
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		pid.Store(int64(cmd.Process.Pid))
		if err := cmd.Wait(); err != nil || out.String() != "ok\n" {
			b.Fatalf("%v, %q", err, out.String())
		}
	}
	b.ReportMetric(float64(memory.Load()>>20), "MiB")
}

// peak is the most memory that a process has had, in bytes; what is counted for a child when it has ended holds its parent's too.
func peak(pid int64) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64)
	return n << 10
}

// BenchmarkResume measures the time from the start of the program to its question, with a conversation of 10,000 messages.
func BenchmarkResume(b *testing.B) {
	asked := make(chan time.Time, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- time.Now()
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n < 3_000_000 {
			b.Errorf("a question of %d bytes, %v", n, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, shortAnswer)
	}))
	b.Cleanup(api.Close)
	c := newCommand(b)
	c.ok("config", "set", "env", "ANTHROPIC_API_KEY=k")
	c.ok("config", "set", "native.base-url", api.URL)
	c.ok("config", "set", "engine", "native")
	c.ok("config", "set", "models", "long alias=sonnet window=10000000 output=1000 in=1 out=1")
	c.ok("config", "set", "spend.per-run", "0") // no limit: the session alone costs more than the usual one
	c.ok("config", "set", "spend.per-day", "0")
	c.ok("config", "set", "spend.per-month", "0")
	here := b.TempDir()
	file, err := transcript.Dir(c.data + "/sessions").Create(transcript.Header{ID: "n-000000000001", Cwd: here, Provider: "anthropic", Model: "long", Timestamp: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	var entries []transcript.Entry
	for i := range 10_000 {
		role := transcript.User
		if i%2 == 1 {
			role = transcript.Assistant
		}
		entries = append(entries, transcript.Entry{Message: transcript.Said(role, fmt.Sprintf("message %d %s", i, strings.Repeat("some words ", 30))), At: time.Now()})
	}
	if err := file.Append(store.Buffered, entries...); err != nil {
		b.Fatal(err)
	}
	var waited time.Duration
	for b.Loop() {
		cmd := c.cmd("-c", "-n", "and now?")
		cmd.Dir = here
		begin := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v, %s", err, out)
		}
		waited += (<-asked).Sub(begin)
	}
	b.ReportMetric(float64(waited.Milliseconds())/float64(b.N), "ms-to-question")
}

const shortAnswer = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"long","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`

// BenchmarkOverhead measures what a fire costs beyond claude itself: the same prompt by `claude -p` alone and by
// `ollim fire`, in turns in one run, against a model that answers at once.
//
// go test ./cmd/ollim -run '^$' -bench Overhead -benchtime 15x
func BenchmarkOverhead(b *testing.B) {
	claude := anthropicapi.Claude(b)
	api := anthropicapi.New(b)
	env := anthropicapi.ClaudeEnv(b, api)
	c := newCommand(b)
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

func timed(b *testing.B, do func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// BenchmarkRequestsKept measures which share of a fire's time it takes to store its four requests: a routine of the native engine
// fires against a model that answers within half a second, and then the same bodies are stored again, beside them on the same disk,
// where nothing else is done meanwhile. In the fire the service works on each of them at that time.
//
// go test ./cmd/ollim -run '^$' -bench RequestsKept -benchtime 30x
func BenchmarkRequestsKept(b *testing.B) {
	c, api := withNative(b)
	c.write("notes.md", strings.Repeat("A line of the notes.\n", 200))
	c.write("routines/bench.md", "---\nid: bench\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\n---\nRead the notes three times.\n")
	read := anthropicapi.Reply{Delay: time.Second / 2, ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": "notes.md"}}}}
	home := func(dir string) request.Book {
		disk := store.Disk{Now: time.Now, Warn: func(text string) { b.Error(text) }}
		return request.Book{Home: paths.Dir(dir), Disk: disk, Objects: objects.Box{Home: paths.Dir(dir), Disk: disk}}
	}
	kept, again := home(c.data), home(filepath.Join(c.data, "again"))
	var fired, stored time.Duration
	for b.Loop() {
		api.Reply(read, read, read, anthropicapi.Reply{Delay: time.Second / 2, Text: "ok"})
		fired += timed(b, func() error { return c.cmd("fire", "bench").Run() })
		run := filepath.Base(c.last())
		var bodies [][]byte
		for n := range 4 {
			body, _, err := kept.Read(run, n+1)
			if err != nil {
				b.Fatal(err)
			}
			bodies = append(bodies, body)
		}
		if err := os.MkdirAll(again.Home.Run(run), 0o700); err != nil {
			b.Fatal(err)
		}
		log := again.Log(run)
		stored += timed(b, func() (err error) {
			for _, body := range bodies {
				_, addErr := log.Add(b.Context(), body)
				err = errors.Join(err, addErr)
			}
			return err
		})
	}
	b.ReportMetric(float64(fired.Microseconds())/1000/float64(b.N), "fire-ms")
	b.ReportMetric(float64(stored.Microseconds())/1000/float64(b.N), "stored-ms")
	b.ReportMetric(100*float64(stored)/float64(fired), "%-of-fire")
}
