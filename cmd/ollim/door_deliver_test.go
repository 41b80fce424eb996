package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/doorapi"
)

// texts are what the owner sees of the bot's messages, in order.
func (d *served) texts() string {
	var list []string
	for _, m := range d.Messages() {
		if m.Own {
			list = append(list, m.Text)
		}
	}
	return strings.Join(list, "|")
}

func (d *served) sees(want string) {
	d.t.Helper()
	if got := d.texts(); got != want {
		d.t.Errorf("the owner sees %q, want %q", got, want)
	}
}

// send runs `ollim door send` with a standard input, and returns what it prints and its exit status.
func (d *served) send(input string, args ...string) (out string, code int) {
	cmd := d.cmd(append([]string{"door", "send", d.name}, args...)...)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	_ = cmd.Run()
	return strings.TrimSpace(stdout.String() + stderr.String()), cmd.ProcessState.ExitCode()
}

// TestPingByDoor: a short command starts the door, or leaves the message to the server, which has it already.
func TestPingByDoor(t *testing.T) {
	t.Parallel()
	d := withDoor(t, doorapi.Options{})
	d.ok("ping", "one") // the only way there is
	d.sees("one")
	if d.Doors() != 1 {
		t.Errorf("%d doors", d.Doors())
	}
	d.serve()
	d.ok("ping", "two")
	d.sees("one|two")
	if d.Doors() != 2 { // none besides that of the server
		t.Errorf("%d doors", d.Doors())
	}
	d.kill()
	d.ok("ping", "three")
	d.sees("one|two|three")
	if left := d.outbox(); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestPingByPreference: the next way takes what the first cannot send, and refusals are told.
func TestPingByPreference(t *testing.T) {
	t.Parallel()
	d := withDoor(t, doorapi.Options{})
	d.ok("config", "set", "delivery.command", "sh", "-c", "sed 's/^/command: /' >> received")
	d.ok("ping", "one") // as before there were doors
	d.sees("")
	d.ok("config", "set", "delivery.to", "radio", "command")
	d.ok("ping", "two")
	d.Fail(doorapi.Fault{Times: 1})
	d.ok("ping", "three")
	d.Fail(doorapi.Fault{Times: 1, Refused: true})
	d.ok("ping", "four")
	d.ok("config", "set", "delivery.to", "radio")
	d.Fail(doorapi.Fault{Times: 1, Refused: true})
	if said := d.fails(1, "ping", "five"); !strings.Contains(said, "it was refused by radio") {
		t.Errorf("%s", said)
	}
	if out, _ := d.cmd("doctor").CombinedOutput(); !strings.Contains(string(out), "by radio") { // it finds faults
		t.Errorf("%s", out)
	}
	d.ok("config", "set", "doors.radio.command", "/gone")
	d.ok("config", "set", "delivery.critical", "discord")
	out, _ := d.cmd("doctor").CombinedOutput()
	for _, fault := range []string{"door radio: ", "delivery.to names discord, and there is no token"} {
		if !strings.Contains(string(out), fault) {
			t.Errorf("doctor does not say %q:\n%s", fault, out)
		}
	}
	d.sees("two")
	if got, want := d.read("received"), "command: one\ncommand: three\ncommand: four\n"; got != want {
		t.Errorf("the command got %q, want %q", got, want)
	}
}

// TestDoorSend sends by a door that is started for it.
func TestDoorSend(t *testing.T) {
	t.Parallel()
	d := withDoor(t, doorapi.Options{})
	if out, code := d.send("hello\nyou\n"); out != "1" || code != 0 {
		t.Errorf("%d: %s", code, out)
	}
	out, code := d.send(`{"type":"send","text":"which?","reply_to":"1","buttons":[{"id":"mine:1","label":"This"}],"news":1}`, "--json")
	if out != `{"id":"2","ids":["2"]}` || code != 0 {
		t.Errorf("%d: %s", code, out)
	}
	if m := d.Latest(); m.Text != "which?" || m.ReplyTo != "1" || len(m.Buttons) != 1 || m.Buttons[0].Label != "This" {
		t.Errorf("%+v", m)
	}
	d.sees("hello\nyou|which?")
	for _, input := range []string{" \n", `{"text":1}`, `{"text":"x"`, `{"type":"edit","text":"x"}`, `{"text":""}`, `{"text":"x","files":[{"path":"/gone"}]}`} {
		if out, code := d.send(input); code != 65 || !strings.Contains(out, "standard input: ") {
			t.Errorf("%q: %d: %s", input, code, out)
		}
	}
	for _, tc := range []struct {
		doorapi.Fault

		code int
	}{{doorapi.Fault{Times: 1}, 69}, {doorapi.Fault{Times: 1, Refused: true}, 77}, {doorapi.Fault{Times: 1, Retry: 3000}, 75}} {
		d.Fail(tc.Fault)
		if out, code := d.send("x"); code != tc.code || !strings.Contains(out, "a fault") {
			t.Errorf("want %d: %d: %s", tc.code, code, out)
		}
	}
	d.serve()
	if out, code := d.send("x"); code != 75 || !strings.Contains(out, "ollim ping") {
		t.Errorf("%d: %s", code, out)
	}
	d.kill()
	d.ok("config", "set", "doors.radio.command", "/gone")
	if out, code := d.send("x"); code != 78 || !strings.Contains(out, "doors.radio.command") {
		t.Errorf("%d: %s", code, out)
	}
	d.sees("hello\nyou|which?")
}

// TestDeliveryByDoorIsKilled kills the server, the door, and the senders at random moments: the owner sees each message that is in the
// outbox once, and in order.
func TestDeliveryByDoorIsKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	d := withDoor(t, doorapi.Options{})
	d.serve()
	var want []string
	for i := range 4 * rounds(t, 3) {
		text := fmt.Sprintf("ping-%02d", i)
		cmd := d.cmd("ping", text)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		d.Wait(text, func() bool { return strings.Contains(d.outbox()+d.texts(), text) })
		want = append(want, text)
		time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond) // any moment
		switch random.IntN(4) {
		case 0:
			d.kill()
			d.serve()
		case 1:
			d.killDoor()
		case 2:
			_ = cmd.Process.Kill()
		default:
		}
		_ = cmd.Wait()
	}
	d.Wait("the last message", func() bool { return strings.Contains(d.texts(), want[len(want)-1]) && d.outbox() == "" })
	d.sees(strings.Join(want, "|"))
}

// outbox returns the contents of the files in the outbox.
func (d *served) outbox() (text string) {
	list, _ := os.ReadDir(filepath.Join(d.data, "state/outbox")) // it may not be there yet
	for _, e := range list {
		data, _ := os.ReadFile(filepath.Join(d.data, "state/outbox", e.Name())) // it may be gone
		text += string(data)
	}
	return text
}
