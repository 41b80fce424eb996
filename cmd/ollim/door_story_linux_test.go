package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/doorapi"
)

// shows waits until the newest message has this text, and nothing says that the agent works.
func (d *served) shows(text string) (m doorapi.Message) {
	d.t.Helper()
	d.Wait(text, func() bool {
		m = d.Latest()
		return m.Text == text && d.settled()
	})
	return m
}

// TestDoorDay is a conversation by a door: an answer that is streamed, a file, a button that is pressed twice with a restart
// between, and a reply. The door has its own secrets only, what it says on standard error is in the log without them, and the end is in order.
func TestDoorDay(t *testing.T) {
	t.Parallel()
	d := withDoor(t, doorapi.Options{})
	secrets := filepath.Join(d.data, ".config/ollim/secrets.env")
	if err := os.MkdirAll(filepath.Dir(secrets), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteFile(secrets, []byte("door.radio.TOKEN=radio-secret\ndoor.mail.TOKEN=mail-secret\nengine.KEY=engine-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hold := filepath.Join(d.data, "hold")
	if err := syscall.Mkfifo(hold, 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("play.yaml", "turns:\n  - - text: It begins\n    - touch: "+hold+"\n    - text: and ends.\n  - - text: A note, I see.\n  - - text: A branch.\n")
	d.ok("config", "set", "engine", "script:play.yaml")
	d.serve()

	own := process.Carrying(d.Env())
	if len(own) != 1 {
		t.Fatalf("%d doors", len(own))
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", own[0].PID))
	var names []string
	for entry := range strings.SplitSeq(strings.TrimRight(string(environ), "\x00"), "\x00") {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"HOME", "OLLIM_DOOR", doorapi.Variable, "PATH", "TMPDIR", "TOKEN"}
	if err != nil || !slices.Equal(names, want) || strings.Contains(string(environ), "mail-secret") {
		t.Errorf("the door has %q, want %q (%v)", names, want, err)
	}

	asked := d.Say("How was the day?", nil)
	d.Wait("the beginning", func() bool { return strings.HasPrefix(d.Latest().Text, "It begins") })
	if _, err := os.ReadFile(hold); err != nil { // the turn goes on
		t.Fatal(err)
	}
	if m := d.shows("It begins\n\nand ends."); m.ReplyTo != asked || m.Edits == 0 {
		t.Errorf("answer %+v", m)
	}
	d.Say("", map[string]any{"files": []map[string]any{{"id": "F7", "name": "../no\nte.txt", "size": 5, "address": "a/b?c=1"}}})
	d.shows("A note, I see.")
	if got := d.read("downloads/radio.F7-no-te.txt"); got != "content of a/b?c=1" {
		t.Errorf("the file has %q", got)
	}
	d.presses()
	d.Say("Once more.", map[string]any{"reply_to": "77", "quoted": map[string]any{"text": "an old text"}})
	d.shows("A branch.") // a fork that was dropped had that turn
	if !strings.Contains(d.prompts(), "an old text") {
		t.Error("the prompt has no quote")
	}
	d.stops()
}

// presses ends a fork by its button, which must be pressed twice. The server and the door are killed between.
func (d *served) presses() {
	t := d.t
	t.Helper()
	d.ok("fork", "start")
	d.Say("Let us see.", nil)
	d.Wait("the buttons", func() bool { return len(d.Latest().Buttons) == 3 && d.settled() })
	answer := d.Latest()
	press := func(id, user string) {
		d.Wait("the message", func() bool { return d.message(answer.ID).ID != "" })
		now := d.message(answer.ID).Buttons
		d.Line(map[string]any{
			"type": "press", "id": id, "channel": doorapi.Channel, "message": answer.ID, "button": now[2].ID, "user": user, "buttons": now,
		})
	}
	press("P-1", "eve")
	press("P-2", doorapi.Owner)
	d.Wait("the second press", func() bool {
		return d.message(answer.ID).Buttons[2].Label == "Press again: Exit" && d.Count("pressed P-2") == 1
	})
	d.kill()
	d.serve()
	press("P-3", doorapi.Owner)
	if m := d.shows("The fork has ended and was dropped."); m.ReplyTo != answer.ID {
		t.Errorf("said %+v", m)
	}
	if m := d.message(answer.ID); !m.Buttons[0].Disabled || d.Count("pressed P-1") != 0 || d.Count("pressed P-3") != 1 {
		t.Errorf("the buttons are %+v", m.Buttons)
	}
}

// message returns a message as it is.
func (d *served) message(id string) (m doorapi.Message) {
	for _, m := range d.Messages() {
		if m.ID == id {
			return m
		}
	}
	return m
}

// stops ends the server by SIGTERM.
func (d *served) stops() {
	d.t.Helper()
	_ = d.proc.Process.Signal(syscall.SIGTERM)
	if err := d.proc.Wait(); err != nil {
		d.t.Errorf("%v: %s", err, d.errOut.String())
	}
	d.proc = nil
	if left := process.Carrying(d.Env()); len(left) > 0 {
		d.t.Errorf("%d doors are left", len(left))
	}
}

// TestDoorStrangers: of 1,000 messages and presses of strangers there is no request, no file, and no line in the log.
func TestDoorStrangers(t *testing.T) {
	t.Parallel()
	d := withDoor(t, doorapi.Options{Able: map[string]any{"nonces": false}})
	d.write("play.yaml", "turns:\n  - - text: Hello, Ann.\n")
	d.ok("config", "set", "engine", "script:play.yaml")
	d.serve()
	before := d.files()
	for i := range 1000 {
		user, channel := fmt.Sprint("eve-", i), fmt.Sprint("c-", i%7)
		switch i % 5 {
		case 0:
			d.Line(map[string]any{"type": "press", "id": fmt.Sprint("x", i), "channel": doorapi.Channel, "message": "1", "button": "ollim:task_del:1", "user": user})
		case 1:
			d.Say("let me in", map[string]any{"user": user, "channel": channel, "direct": false, "addressed": true})
		case 2:
			d.Say("let me in", map[string]any{"user": "", "channel": channel})
		case 3:
			d.Say("hello", map[string]any{"user": user, "channel": channel, "files": []map[string]any{{"id": "f", "name": "x", "address": "y"}}})
		default:
			d.Say("hello", map[string]any{"user": user, "channel": channel, "direct": false, "parent": "p", "reply_to": "1"})
		}
	}
	d.Wait("the strangers", func() bool {
		return !slices.ContainsFunc(d.Messages(), func(m doorapi.Message) bool { return !m.Taken })
	})
	for _, kind := range []string{"send", "edit", "delete", "react", "typing", "fetch", "history", "quote"} {
		if n := d.Count(kind); n != 0 {
			t.Errorf("%d requests to %s", n, kind)
		}
	}
	if after := d.files(); !slices.Equal(after, before) {
		t.Errorf("files %q, before %q", after, before)
	}
	d.Say("Are you there?", nil)
	d.shows("Hello, Ann.")
	d.stops()
	if text := d.errOut.String(); text != "" {
		t.Errorf("the log has %q", text)
	}
	if got := d.ok("run", "list", "--json"); strings.Count(got, "\n") != 1 {
		t.Errorf("runs: %s", got)
	}
}

// files returns the files of the data directory.
func (d *served) files() (list []string) {
	_ = filepath.WalkDir(d.data, func(path string, _ fs.DirEntry, _ error) error {
		list = append(list, strings.TrimPrefix(path, d.data))
		return nil
	})
	return list
}

// TestDoorFaults: a faulty line is named with its number and key, and costs that line only; a door that ends is started again.
func TestDoorFaults(t *testing.T) {
	t.Parallel()
	d := withDoor(t, doorapi.Options{})
	d.write("play.yaml", "turns:\n  - - text: One.\n  - - text: Two.\n")
	d.ok("config", "set", "engine", "script:play.yaml")
	d.serve()
	d.Wait("the answer to a ping, line 2", func() bool { return d.Count("ping") == 1 })
	d.Text("no JSON")
	d.Text(`{"type":"message","text":7}`)
	d.Text(`{"type":"message","id":"a/b","channel":"c","text":"secret words"}`)
	d.Text(`{"type":"message","id":"ab","channel":"","text":"secret words"}`)
	d.Text(`{"id":"ab"}`)
	d.Text(`{"type":"press","id":"","channel":"c","message":"m"}`)
	d.Text(strings.Repeat("x", 1<<20))
	d.Text(`{"type":"unheard-of","ref":"x"}`)
	d.Say("hello", nil)
	d.shows("One.")
	d.killDoor()
	d.Say("hello again", nil)
	d.shows("Two.")
	d.stops()
	log := d.errOut.String()
	for _, want := range []string{
		"radio: line 3: no JSON after byte", "line 4: text: a number is no string", "line 5: id: no id", "line 6: channel: no id",
		"line 7: type: it is missing", "line 8: id: no id", "line 9: it has more than 1048576 bytes", "radio: the door ended (signal: killed)",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q: %s", want, log)
		}
	}
	if strings.Contains(log, "secret words") || strings.Contains(log, "unheard-of") {
		t.Errorf("the log has %s", log)
	}
}
