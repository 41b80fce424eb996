package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// BenchmarkListener measures the listener with 100 channel sessions of 50 messages of 500 characters. An iteration is a turn of the
// owner's, from the message to the end of its answer. Run it with -benchtime 10000x to see whether the memory grows.
func BenchmarkListener(b *testing.B) {
	d := discordapi.New(b, discordapi.Options{})
	c, api := withNative(b)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Text: strings.Repeat("The answer is long enough. ", 4)}
	})
	c.ok("config", "set", "discord.api", d.URL())
	for _, limit := range []string{"spend.per-run", "spend.per-day", "spend.per-month", "spend.runs-per-day"} {
		c.ok("config", "set", limit, "none")
	}
	if err := os.MkdirAll(c.data+"/state/channels", 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		c.write(fmt.Sprintf("state/channels/discord_%d.json", i), fullChannel(b, i))
	}
	cmd := c.cmd("discord", "listen")
	cmd.Stderr, cmd.Env = os.Stderr, append(cmd.Env, "OLLIM_DISCORD_TOKEN="+discordapi.Token)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	d.Wait("the listener", d.Connected)
	before, busy := processTime(b, cmd.Process.Pid), time.Now()
	time.Sleep(3 * time.Second) // idle
	idle := float64((processTime(b, cmd.Process.Pid) - before).Milliseconds()) / time.Since(busy).Seconds()
	small := resident(b, cmd.Process.Pid)

	var placeholder, first []time.Duration
	for b.Loop() {
		n := len(d.Said(discordapi.DM))
		said := time.Now()
		id := d.Say(discordapi.Post{Text: "hello"})
		d.Wait("a placeholder", func() bool { return len(d.Said(discordapi.DM)) > n })
		placeholder = append(placeholder, time.Since(said))
		answered := func() bool { return strings.Contains(d.Said(discordapi.DM)[n], "The answer") }
		d.Wait("the first text", answered)
		first = append(first, time.Since(said))
		d.Wait("the end", func() bool { return len(d.Message(id).Reactions) == 0 })
	}
	b.ReportMetric(idle, "idle-ms/s")
	b.ReportMetric(small, "idle-MiB")
	b.ReportMetric(resident(b, cmd.Process.Pid), "MiB")
	b.ReportMetric(float64(middle(placeholder).Milliseconds()), "placeholder-ms")
	b.ReportMetric(float64(middle(first).Milliseconds()), "first-text-ms")
}

// fullChannel is the file of a channel session that has no more room.
func fullChannel(b *testing.B, i int) string {
	b.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	var messages []map[string]any
	for n := range 50 {
		messages = append(messages, map[string]any{
			"role": []string{"user", "assistant"}[n%2], "content": strings.Repeat("some words", 50), "timestamp": at, "tool_calls": nil,
		})
	}
	text, err := json.Marshal(map[string]any{
		"session_id": fmt.Sprintf("discord_%d", i), "channel": "discord", "chat_id": strconv.Itoa(i), "created_at": at, "last_accessed": at,
		"messages": messages,
	})
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// resident is the memory that a process has now, in MiB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := strings.Cut(string(status), "VmRSS:")
	if err != nil || !found {
		b.Fatal(err)
	}
	n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n / 1024
}

// processTime is the processor time of a process so far.
func processTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	var ticks int64
	for _, text := range fields[12:14] { // after the name: user and system time, in hundredths of a second
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func middle(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
