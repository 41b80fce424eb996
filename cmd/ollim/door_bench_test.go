package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/doorapi"
)

// BenchmarkDoorListener measures the listener of a door with the same sessions as BenchmarkListener. The memory is that of `ollim door serve`
// without the door. An iteration is a turn of the owner's, from the message to the end of its answer.
func BenchmarkDoorListener(b *testing.B) {
	d := doorapi.New(b, doorapi.Options{})
	c, api := withNative(b)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Text: strings.Repeat("The answer is long enough. ", 4)}
	})
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c.ok("config", "set", "doors.radio.command", self)
	c.ok("config", "set", "doors.radio.env", d.Env())
	for _, limit := range []string{"spend.per-run", "spend.per-day", "spend.per-month", "spend.runs-per-day"} {
		c.ok("config", "set", limit, "none")
	}
	if err := os.MkdirAll(c.data+"/state/channels", 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		c.write(fmt.Sprintf("state/channels/discord_%d.json", i), fullChannel(b, i))
	}
	cmd := c.cmd("door", "serve", "radio")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	d.Wait("the answer to a ping", func() bool { return d.Count("ping") > 0 })
	before, busy := processTime(b, cmd.Process.Pid), time.Now()
	time.Sleep(3 * time.Second) // idle
	idle := float64((processTime(b, cmd.Process.Pid) - before).Milliseconds()) / time.Since(busy).Seconds()
	small := resident(b, cmd.Process.Pid)
	for b.Loop() {
		id := d.Say("hello", nil)
		d.Wait("the answer", func() bool {
			answered := false
			for _, m := range d.Messages() {
				if m.ID == id && len(m.Reactions) > 0 {
					return false
				}
				answered = answered || m.ReplyTo == id && strings.Contains(m.Text, "The answer")
			}
			return answered
		})
	}
	b.ReportMetric(idle, "idle-ms/s")
	b.ReportMetric(small, "idle-MiB")
	b.ReportMetric(resident(b, cmd.Process.Pid), "MiB")
}
