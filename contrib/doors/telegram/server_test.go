package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/contrib/doors/doortest"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/doorpeer"
	"github.com/ollim/ollim/internal/testkit/telegramapi"
)

// TestServerOfOthers: the server of the npm package telegram-test-api, which others have written. It confirms updates as it returns them,
// returns at once if there are none, and has no methods for files and reactions.
func TestServerOfOthers(t *testing.T) {
	url := others(t)
	p := doorpeer.Start(t, command(t, url), "telegram")
	doortest.Equal(t, "mentions", p.Hello["mentions"], []string{"@TestNameBot"})
	user := func(path string, body line) (answer line) {
		t.Helper()
		text, _ := json.Marshal(body)
		r, err := http.Post(url+path, "application/json", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer["ok"] != true {
			t.Fatalf("%s: %v, %v", path, answer, err)
		}
		return answer
	}
	from := line{"id": ann, "first_name": "Ann", "is_bot": false}
	chat := line{"id": ann, "type": "private"}
	user("/sendMessage", line{"botToken": telegramapi.Token, "from": from, "chat": chat, "date": 1, "text": "Hello"})
	m := p.Message()
	doortest.Equal(t, "message", []any{m["channel"], m["user"], m["text"], m["direct"]}, []any{"42", "42", "Hello", true})

	buttons := []line{{"id": "ollim:answer:r1:1", "label": "Yes"}, {"id": "ollim:answer:r1:2", "label": "No"}}
	id := p.Do(line{"type": "send", "channel": "42", "text": "Shall I?", "buttons": buttons, "reply_to": m["id"]})["id"].(string)
	last := func() line {
		var out line
		for _, u := range user("/getUpdatesHistory", line{"token": telegramapi.Token})["result"].([]any) {
			if m, said := u.(line)["message"].(line); said && m["chat_id"] != nil {
				out = m
			}
		}
		return out
	}
	doortest.Equal(t, "text", last()["text"], "Shall I?")
	keyboard := last()["reply_markup"].(line)
	doortest.Equal(t, "keyboard", keyboard, line{"inline_keyboard": []any{[]line{
		{"text": "Yes", "callback_data": "ollim:answer:r1:1"}, {"text": "No", "callback_data": "ollim:answer:r1:2"},
	}}})
	_, number, _ := split(id)
	user("/sendCallback", line{
		"botToken": telegramapi.Token, "from": from, "data": "ollim:answer:r1:2",
		"message": line{"message_id": number, "chat": chat, "date": 1, "text": "Shall I?", "reply_markup": keyboard},
	})
	press := p.Next("press")
	doortest.Equal(t, "press", []any{press["message"], press["button"], press["user"]}, []any{id, "ollim:answer:r1:2", "42"})
	p.Tell(line{"type": "pressed", "id": press["id"]})
	p.Do(line{"type": "edit", "channel": "42", "id": id, "text": "It is done."})
	doortest.Equal(t, "after an edit", []any{last()["text"], last()["reply_markup"]}, []any{"It is done.", keyboard})
	p.Do(line{"type": "edit", "channel": "42", "id": id, "buttons": []line{}})
	doortest.Equal(t, "after the removal of the buttons", last()["reply_markup"], line{"inline_keyboard": []any{}})
	p.Do(line{"type": "delete", "channel": "42", "id": id})
	doortest.Equal(t, "after the deletion", last() == nil, true)
	a := p.Answer(p.Ask(line{"type": "typing", "channel": "42"})) // it does not know the method
	doortest.Equal(t, "an unknown method", a["type"], "failed")
	p.Nothing()
	p.Close()
}

// others starts the server and returns its URL.
func others(t *testing.T) string {
	t.Helper()
	node := testkit.Program(t, "node", "nodejs")
	modules := testkit.Installed(t, "telegram-test-api", "OLLIM_TEST_TELEGRAM", "telegram/node_modules", "telegram-test-api")
	address, err := testkit.FreeAddress("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	script := filepath.Join("testdata", "server.cjs")
	if _, err := os.ReadFile(script); err != nil { // so that go test notices a change
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, script, modules, port)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if ready := bufio.NewScanner(out); !ready.Scan() {
		t.Fatal("the server of telegram-test-api did not start")
	}
	return "http://" + address
}
