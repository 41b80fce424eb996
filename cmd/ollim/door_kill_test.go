package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit/doorapi"
)

// served is a door that is served, with its messenger.
type served struct {
	*command
	*doorapi.Server

	name   string
	proc   *exec.Cmd
	errOut bytes.Buffer
}

// withDoor returns a data directory with a door.
func withDoor(t *testing.T, o doorapi.Options) *served {
	t.Helper()
	d := &served{command: newCommand(t), Server: doorapi.New(t, o), name: "radio"}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.ok("config", "set", "doors.radio.command", self)
	d.ok("config", "set", "doors.radio.env", d.Env())
	t.Cleanup(func() {
		if t.Failed() && d.proc != nil {
			_ = d.proc.Process.Signal(syscall.SIGQUIT) // shows what it waits for
			_ = d.proc.Wait()
			t.Logf("the log is %s, handled is %s", d.errOut.String(), d.read("state/door_radio.json"))
		}
		d.kill()
	})
	return d
}

// serve starts `ollim door serve`, and waits until the door is connected.
func (d *served) serve() {
	d.t.Helper()
	before := d.Doors()
	d.proc = d.cmd("door", "serve", d.name)
	d.proc.Stderr = &d.errOut
	if err := d.proc.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.Wait("the door", func() bool { return d.Doors() > before })
}

// kill kills `ollim door serve` with -9. The door dies with it.
func (d *served) kill() {
	if d.proc == nil {
		return
	}
	_ = d.proc.Process.Kill()
	_ = d.proc.Wait()
	if strings.Contains(d.errOut.String(), "panic") {
		d.t.Error(d.errOut.String())
	}
	d.proc = nil
}

// killDoor kills the door alone.
func (d *served) killDoor() {
	for _, p := range process.Carrying(d.Env()) {
		_ = p.Signal(syscall.SIGKILL)
	}
}

// settled reports whether nothing is left to answer or to show.
func (d *served) settled() bool {
	for _, m := range d.Messages() {
		if !m.Taken || len(m.Reactions) > 0 {
			return false
		}
	}
	return !strings.Contains(d.read("state/door_radio.json"), `"open"`)
}

// TestDoorIsKilled kills the door, the server and both with -9 at random moments, while requests fail, answers are lost, and messages come
// again, are edited or deleted. Where messages have ids, each that was not deleted is asked once, in order, and has at most one answer if the
// messenger has a history. Where they have none, each is asked at least once, and each further time the prompt says so.
func TestDoorIsKilled(t *testing.T) {
	t.Parallel()
	for i := range rounds(t, 2) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			throughDoorFaults(t, rand.New(rand.NewPCG(seed, 0)), i%2 == 1)
		})
	}
}

func throughDoorFaults(t *testing.T, random *rand.Rand, noIDs bool) {
	able := map[string]any{"reactions": random.IntN(2) == 0, "history": !noIDs && random.IntN(2) == 0}
	d := withDoor(t, doorapi.Options{NoIDs: noIDs, Disorder: random.IntN(2) == 0, Able: able})
	d.write("play.yaml", "turns:\n"+strings.Repeat("  - - text: well\n    - delay: 30ms\n    - text: done\n", 100))
	d.ok("config", "set", "engine", "script:play.yaml")
	d.serve()
	const messages = 8
	deleted, ids := map[int]bool{}, []string{}
	for i := range messages {
		ids = append(ids, d.Say(fmt.Sprintf("message-%02d", i), nil))
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond) // any moment
		d.meet(random)
		changed := max(0, i-random.IntN(3))
		switch last := changed == messages-1; {
		case noIDs || last:
		case random.IntN(3) == 0:
			d.Edit(ids[changed], fmt.Sprintf("message-%02d, edited after %d", changed, i))
		case random.IntN(4) == 0:
			d.Delete(ids[changed])
			deleted[changed] = true
		}
	}
	d.finish(fmt.Sprintf("message-%02d", messages-1))
	d.finish("the end") // reports what was cut off
	d.kill()
	d.check(messages, noIDs, deleted)
}

// finish waits until the last message is asked and nothing is left.
func (d *served) finish(last string) {
	d.t.Helper()
	if last == "the end" {
		d.Say(last, nil)
	}
	d.Wait(last, func() bool { return d.askedOnce(last) && d.settled() })
}

// meet lets the door, the server or the messenger have a fault.
func (d *served) meet(random *rand.Rand) {
	times := 1 + random.IntN(3)
	switch random.IntN(9) {
	case 0:
		d.killDoor()
	case 1, 2:
		d.kill()
		d.serve()
	case 3:
		d.killDoor()
		d.kill()
		d.serve()
	case 4:
		d.Fail(doorapi.Fault{Times: times})
	case 5:
		d.Fail(doorapi.Fault{Times: times, Applied: true}) // the answer is lost
	case 6:
		d.Fail(doorapi.Fault{Times: times, Retry: float64(random.IntN(300)) / 1000})
	case 7:
		if !d.noIDs() {
			d.Repeat(times)
		}
	default:
		d.Text(`{"type":"message","text":[`)
		d.Line(map[string]any{"type": "news", "ref": 12345})
		d.Line(map[string]any{"type": "done", "ref": 12345678})
	}
}

func (d *served) noIDs() bool { return d.Options().NoIDs }

// check checks what was asked and what the owner sees.
func (d *served) check(messages int, noIDs bool, deleted map[int]bool) {
	t, all := d.t, d.prompts()
	all = regexp.MustCompile(`(message-\d\d), edited after \d`).ReplaceAllString(all, "$1")
	const mark = "\n[This message was delivered again after a restart: you may have answered it already.]\n\n"
	before := ""
	for i := range messages {
		text := fmt.Sprintf("message-%02d", i)
		switch n := strings.Count("\n"+all, "\n"+text+"\n"); {
		case n == 0 && !deleted[i], n > 1 && !noIDs:
			t.Errorf("%s was asked %d times", text, n)
		case !deleted[i] && before != "" && strings.Index(all, "\n"+text+"\n") < strings.Index(all, "\n"+before+"\n"):
			t.Errorf("%s was asked too early", text)
		case strings.Count("\n"+all, mark+text+"\n") < n-1:
			t.Errorf("%s was asked %d times, and not marked each time", text, n)
		}
		if !deleted[i] { // one that was deleted while the door was away may be asked late
			before = text
		}
	}
	replies := map[string]string{}
	for _, m := range d.Messages() {
		if len(m.Reactions) > 0 {
			t.Errorf("%s keeps %q", m.Text, m.Reactions)
		}
		// Without a history what a killed server has sent, and not noted, stays.
		if !m.Own || m.ReplyTo == "" || d.Options().Able["history"] != true || strings.HasPrefix(m.Text, "queued:") {
			continue
		}
		if before := replies[m.ReplyTo]; before != "" {
			t.Errorf("two replies to one message: %q and %q", before, m.Text)
		}
		replies[m.ReplyTo] = m.Text
	}
	if t.Failed() {
		t.Logf("%s\n%+v\n%s\n%s", all, d.Messages(), d.errOut.String(), d.Trace())
	}
}
