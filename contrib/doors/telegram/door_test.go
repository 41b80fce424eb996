package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/contrib/doors/doortest"
	"github.com/ollim/ollim/internal/testkit/doorpeer"
	"github.com/ollim/ollim/internal/testkit/telegramapi"
)

type line = doorpeer.Line

const ann = 42

// TestMain lets the test program be the door.
func TestMain(m *testing.M) {
	if os.Getenv("OLLIM_TEST_DOOR") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func command(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-api", url)
	cmd.Env = []string{"OLLIM_TEST_DOOR=1", "TOKEN=" + telegramapi.Token}
	return cmd
}

func start(t *testing.T, s *telegramapi.Server) *doorpeer.Peer {
	t.Helper()
	return doorpeer.Start(t, command(t, s.URL), "telegram")
}

// TestMessages: what is said in private, in a group and in a topic; an update stays with Telegram until ollim has kept it.
func TestMessages(t *testing.T) {
	s := telegramapi.Start(t)
	p := start(t, s)
	doortest.Equal(t, "mentions", p.Hello["mentions"], []string{"@ollimbot"})
	id := s.Say(ann, line{"text": "Hello"})
	m := p.Next("message")
	own := fmt.Sprintf("%d.%d", ann, id)
	doortest.Equal(t, "message", m, line{
		"type": "message", "id": own, "channel": "42", "user": "42", "name": "Ann", "direct": true, "addressed": true, "text": "Hello",
	})
	s.Say(ann, line{"text": "And more"})
	doortest.Equal(t, "second text", p.Next("message")["text"], "And more")
	s.Do(func() { doortest.Equal(t, "updates that stay", s.Open(), 2) })
	p.Kill()

	p = start(t, s)
	first, second := p.Next("message"), p.Next("message")
	doortest.Equal(t, "again", []any{first["id"], second["text"]}, []any{own, "And more"})
	p.Tell(line{"type": "taken", "line": 3, "id": second["id"]}) // the first one is still open
	s.Say(ann, line{"text": "Third"})
	third := p.Message()
	doortest.Equal(t, "third text", third["text"], "Third")
	s.Do(func() { doortest.Equal(t, "updates that stay", s.Open(), 3) })
	p.Tell(line{"type": "taken", "line": 2, "id": own})
	s.Wait(t, "all are confirmed", func() bool { return s.Open() == 0 })
	p.Nothing()

	s.Edit(ann, id, line{"text": "Hello, you"})
	doortest.Equal(t, "an edit", p.Next("edited"), line{
		"type": "edited", "id": own, "channel": "42", "user": "42", "name": "Ann", "direct": true, "addressed": true, "text": "Hello, you",
	})
	room := line{"id": -100500, "type": "supergroup"}
	s.Say(ann, line{"chat": room, "text": "not for you"})
	m = p.Message()
	doortest.Equal(t, "not addressed", []any{m["channel"], m["addressed"], m["direct"], m["parent"]}, []any{"-100500", false, false, nil})
	s.Say(ann, line{
		"chat": room, "text": "🙂 @OllimBot hi", "entities": []line{{"type": "mention", "offset": 3, "length": 9}},
		"message_thread_id": 7, "is_topic_message": true, "reply_to_message": line{"message_id": 7, "chat": room},
	})
	m = p.Message()
	doortest.Equal(t, "in a topic", []any{m["channel"], m["addressed"], m["parent"], m["reply_to"]}, []any{"-100500.7", true, "-100500", nil})
	s.Say(ann, line{
		"chat": room, "text": "yes", "reply_to_message": line{"message_id": 9, "chat": room, "from": line{"id": telegramapi.Bot}, "text": "Shall I?"},
	})
	m = p.Message()
	doortest.Equal(t, "a reply", []any{m["addressed"], m["reply_to"], m["quoted"]}, []any{true, "-100500.9", line{"text": "Shall I?", "own": true}})
	s.Say(ann, line{"chat": room, "sender_chat": room, "text": "as the group"})
	doortest.Equal(t, "user of an anonymous message", p.Message()["user"], nil)
	s.Say(ann, line{"chat": room, "new_chat_title": "Plans"})
	s.Wait(t, "all are confirmed", func() bool { return s.Open() == 0 })
	p.Nothing()
	p.Close()
	if strings.Contains(p.Log(), telegramapi.Token) {
		t.Error("the token is in the log")
	}
}

// TestOutgoing: sends, edits, buttons, deletions, reactions; floods and what Telegram refuses.
func TestOutgoing(t *testing.T) {
	s := telegramapi.Start(t)
	p := start(t, s)
	buttons := []line{
		{"id": "ollim:answer:r1:1", "label": "Yes", "style": "success"}, {"id": "ollim:answer:r1:2", "label": "No"},
		{"id": "ollim:answer:r1:3", "label": "Something much longer", "disabled": true},
	}
	reply := s.Say(ann, line{"text": "Ask me"})
	p.Message()
	a := p.Do(line{
		"type": "send", "channel": "42", "text": "**Shall** I run `rm 🙂`?\n```sh\nls *.go\n```", "reply_to": fmt.Sprintf("42.%d", reply),
		"silent": true, "buttons": buttons,
	})
	id := a["id"].(string)
	var m *telegramapi.Message
	s.Do(func() { m = s.Messages[id] })
	doortest.Equal(t, "text", m.Text, "Shall I run rm 🙂?\nls *.go")
	doortest.Equal(t, "entities", m.Entities, []any{
		line{"type": "bold", "offset": 0, "length": 5}, line{"type": "code", "offset": 12, "length": 5},
		line{"type": "pre", "offset": 19, "length": 7, "language": "sh"},
	})
	doortest.Equal(t, "reply", []any{m.ReplyTo, m.Silent}, []any{reply, true})
	doortest.Equal(t, "rows", len(m.Keyboard), 2)

	p.Do(line{"type": "edit", "channel": "42", "id": id, "text": "Shall I?"})
	s.Do(func() {
		doortest.Equal(t, "after an edit of the text", []any{m.Text, len(m.Keyboard)}, []any{"Shall I?", 2})
	})
	p.Do(line{"type": "edit", "channel": "42", "id": id, "text": "Shall I?"}) // not modified
	s.Press(ann, id, "-ollim:answer:r1:3", "77")
	s.Wait(t, "the disabled button is answered", func() bool { return len(s.Answers) == 1 })
	s.Press(ann, id, "ollim:answer:r1:1", "78")
	press := p.Next("press")
	doortest.Equal(t, "press", []any{press["id"], press["channel"], press["message"], press["button"], press["user"]}, []any{"78", "42", id, "ollim:answer:r1:1", "42"})
	doortest.Equal(t, "buttons of the press", press["buttons"], buttons)
	s.Do(func() { doortest.Equal(t, "presses that stay", s.Open(), 1) })
	p.Tell(line{"type": "pressed", "id": "78"})
	s.Wait(t, "the press is answered", func() bool { return s.Open() == 0 && len(s.Answers) == 2 })
	p.Do(line{"type": "edit", "channel": "42", "id": id, "buttons": []line{}})
	s.Do(func() { doortest.Equal(t, "buttons after their removal", len(m.Keyboard), 0) })

	user := fmt.Sprintf("42.%d", reply)
	reaction := func() (emoji string) { s.Do(func() { emoji = s.Messages[user].Reaction }); return emoji }
	p.Do(line{"type": "react", "channel": "42", "id": user, "emoji": "👀"})
	p.Do(line{"type": "react", "channel": "42", "id": user, "emoji": "✅"})
	p.Do(line{"type": "react", "channel": "42", "id": user, "emoji": "👀", "remove": true})
	doortest.Equal(t, "reaction", reaction(), "👍")
	p.Do(line{"type": "react", "channel": "42", "id": user, "emoji": "✅", "remove": true})
	doortest.Equal(t, "reaction", reaction(), "")
	p.Do(line{"type": "typing", "channel": "42"})

	s.Do(func() { s.Floods["sendMessage"], s.Broken["sendMessage"] = 1, 1 })
	doortest.Equal(t, "a flood", p.Answer(p.Ask(line{"type": "send", "channel": "42", "text": "x"}))["retry_after"], 1)
	broken := p.Answer(p.Ask(line{"type": "send", "channel": "42", "text": "x"}))
	doortest.Equal(t, "a gateway", []any{broken["type"], broken["permanent"]}, []any{"failed", nil})
	for what, request := range map[string]line{
		"a long text":        {"type": "send", "channel": "42", "text": strings.Repeat("x", 4097)},
		"no channel":         {"type": "send", "channel": "ann", "text": "x"},
		"nothing to say":     {"type": "send", "channel": "42"},
		"a long button":      {"type": "send", "channel": "42", "text": "x", "buttons": []line{{"id": strings.Repeat("x", 65), "label": "X"}}},
		"an unknown message": {"type": "edit", "channel": "42", "id": "42.999", "text": "x"},
		"an unknown request": {"type": "dance"},
	} {
		a := p.Answer(p.Ask(request))
		doortest.Equal(t, what, []any{a["type"], a["permanent"], a["refused"]}, []any{"failed", true, true})
	}
	p.Do(line{"type": "delete", "channel": "42", "id": id})
	p.Do(line{"type": "delete", "channel": "42", "id": id})
	topic := p.Do(line{"type": "send", "channel": "-100500.7", "text": "x"})["id"].(string)
	s.Do(func() {
		doortest.Equal(t, "topic", []any{s.Messages[topic].Chat, s.Messages[topic].Thread}, []any{-100500, 7})
	})
	s.Do(func() { s.Revoked = true })
	a = p.Answer(p.Ask(line{"type": "send", "channel": "42", "text": "x"}))
	doortest.Equal(t, "a revoked token", []any{a["permanent"], a["refused"]}, []any{true, nil})
}

// TestFiles: files, albums and voice notes in, and files out.
func TestFiles(t *testing.T) {
	s := telegramapi.Start(t)
	p := start(t, s)
	s.Do(func() { s.Files["V1"], s.Files["P1"], s.Files["P2"] = "ogg", "picture one", "picture two" })
	s.Say(ann, line{"voice": line{"file_id": "V1", "file_unique_id": "uv", "file_size": 3, "duration": 1}})
	m := p.Message()
	doortest.Equal(t, "voice", m["files"], []line{{"id": "uv", "name": "voice.ogg", "size": 3, "address": "V1", "voice": true}})
	at := filepath.Join(p.Files, "x")
	p.Do(line{"type": "fetch", "address": "V1", "most": 3, "path": at})
	if got, err := os.ReadFile(at); err != nil || string(got) != "ogg" {
		t.Errorf("got %q, %v", got, err)
	}
	doortest.Equal(t, "too large", p.Answer(p.Ask(line{"type": "fetch", "address": "V1", "most": 2, "path": at}))["refused"], true)
	doortest.Equal(t, "unknown", p.Answer(p.Ask(line{"type": "fetch", "address": "V2", "most": 2, "path": at}))["refused"], true)

	photo := func(id string) []line {
		return []line{{"file_id": "small", "file_unique_id": "s"}, {"file_id": id, "file_unique_id": "u" + id, "file_size": 11}}
	}
	s.Say(ann, line{"media_group_id": "g", "caption": "Two pictures", "photo": photo("P1")})
	s.Say(ann, line{"media_group_id": "g", "photo": photo("P2")})
	m = p.Message()
	doortest.Equal(t, "album", []any{m["text"], len(m["files"].([]any))}, []any{"Two pictures", 2})
	s.Wait(t, "all are confirmed", func() bool { return s.Open() == 0 })
	p.Nothing()

	file := func(name, kind, content string) line {
		path := filepath.Join(p.Files, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return line{"name": name, "type": kind, "path": path}
	}
	s.Do(func() { s.Floods["sendDocument"] = 1 })
	id := p.Do(line{"type": "send", "channel": "42", "text": "Here", "files": []line{
		file("a.png", "image/png", "\x89PNG"), file("b.png", "image/png", "not a picture"), file("n.txt", "text/plain; charset=utf-8", "note"),
	}})["id"].(string)
	var sent []string
	s.Do(func() {
		doortest.Equal(t, "text", s.Messages[id].Text, "Here")
		for _, m := range s.Messages {
			if m.Kind != "" {
				sent = append(sent, m.Kind+" "+m.Name+" "+m.File)
			}
		}
	})
	slices.Sort(sent)
	doortest.Equal(t, "files", sent, []string{"document b.png not a picture", "document n.txt note", "photo a.png \x89PNG"})
	id = p.Do(line{"type": "send", "channel": "42", "files": []line{file("v.ogg", "audio/ogg", "Ogg")}})["id"].(string)
	s.Do(func() { doortest.Equal(t, "voice", s.Messages[id].Kind, "voice") })
}

// TestConforms: the door passes ollim's test of the protocol.
func TestConforms(t *testing.T) {
	s := telegramapi.Start(t)
	if done := doortest.Conform(t, command(t, s.URL), "42"); done < 40 {
		t.Errorf("it does %d cases", done)
	}
}

// TestNoToken: a token that is missing or unknown ends the door, and it says what to do.
func TestNoToken(t *testing.T) {
	s := telegramapi.Start(t)
	for _, env := range []string{"TOKEN=", "TOKEN=123:other"} {
		cmd := command(t, s.URL)
		cmd.Env = append(cmd.Env, env)
		cmd.Stdin = strings.NewReader(`{"type":"start","version":1,"name":"telegram","files":"/"}` + "\n")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitConfig || !strings.Contains(string(out), "ollim secret set door.telegram.TOKEN") {
			t.Errorf("%s: status %d, %s", env, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// TestUnreachable: without a server the door waits, and its log does not have the token.
func TestUnreachable(t *testing.T) {
	s := telegramapi.Start(t)
	a := newAPI("http://127.0.0.1:1", telegramapi.Token)
	if err := a.call(t.Context(), "getMe", nil, nil); err == nil || strings.Contains(err.Error(), telegramapi.Token) {
		t.Errorf("got %v", err)
	}
	if err := newAPI(s.URL+"\x7f", telegramapi.Token).call(t.Context(), "getMe", nil, nil); err == nil || strings.Contains(err.Error(), telegramapi.Token) {
		t.Errorf("got %v", err)
	}
}

func TestFormat(t *testing.T) {
	for _, tc := range []struct{ markdown, plain, entities string }{
		{"plain_text_here and 2 * 3 * 4", "plain_text_here and 2 * 3 * 4", "[]"},
		{`\*as it is\*`, "*as it is*", "[]"},
		{"# Title\n*it* _it_ ~~old~~", "Title\nit it old", "[bold 0 5 italic 6 2 italic 9 2 strikethrough 12 3]"},
		{"see [the **page**](https://example.org/a_b)", "see the page", "[text_link 4 8 https://example.org/a_b bold 8 4]"},
		{"```\nopen", "open", "[pre 0 4]"},
		{"> said", "said", "[blockquote 0 4]"},
		{"🙂 `a*b*c`", "🙂 a*b*c", "[code 3 5]"},
	} {
		plain, list := format(tc.markdown)
		var got []string
		for _, e := range list {
			got = append(got, strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Offset, " ", e.Length, " ", e.URL)))
		}
		if plain != tc.plain || fmt.Sprint(got) != tc.entities {
			t.Errorf("%q: got %q %v", tc.markdown, plain, got)
		}
	}
}
