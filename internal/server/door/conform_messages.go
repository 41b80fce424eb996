package door

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// What a door may say that it cannot do, with what takes its place.
func canEdit(a Able) string {
	return unless(a.Edits > 0, "edits: an answer is sent when the turn has ended")
}

func canNonce(a Able) string {
	return unless(a.Nonces, "nonces: a message may come twice when the door is killed")
}

func canPress(a Able) string {
	return unless(a.Buttons, "buttons: a reply with a number takes their place")
}

func canReact(a Able) string {
	return unless(a.Reactions, "reactions: a line of text takes their place")
}

func canCarry(a Able) string { return unless(a.File > 0, "files: they are not sent") }

func canRead(a Able) string {
	return unless(a.History, "history: the beginning of an answer that a kill has cut off stays")
}

func canType(a Able) string { return unless(a.Typing, "typing: nothing takes its place") }

func unless(able bool, lacks string) string {
	if able {
		return ""
	}
	return lacks
}

func sending() []proof {
	text := func(name, text string) proof {
		return proof{name, nil, func(t *trial) error { _, err := t.says(text); return err }}
	}
	return []proof{
		{"sends a message and answers with its id", nil, func(t *trial) (err error) {
			t.first, err = t.says("ollim door test: the first message")
			return err
		}},
		{"gives another message another id", nil, func(t *trial) (err error) {
			if t.second, err = t.says("ollim door test: the second message"); err == nil && t.second != "" && t.first == t.second {
				err = fmt.Errorf("both have %s", t.first)
			}
			return err
		}},
		text("sends a text in several scripts", "ollim door test: äöü €, Ελληνικά, 日本語, 🦊👩‍👩‍👧"),
		text("sends a text with characters of markup as they are", "ollim door test: *a _b_ `c` <d> & [e](f) ~g~ > h | i # j . !"),
		text("sends a text with several lines and a block of code", "ollim door test:\n\n```go\nfunc main() {}\n```\n- the end"),
		text("sends a text of one character", "x"),
		{"sends a text of able.text units", nil, func(t *trial) error {
			begin := "ollim door test: the longest text "
			_, err := t.says(begin + strings.Repeat("x", t.live.hello.Able.Text-len(begin)))
			return err
		}},
		{"sends a reply", nil, func(t *trial) error {
			text := "ollim door test: a reply to the first message"
			_, err := t.send(Request{Text: &text, ReplyTo: t.first})
			return err
		}},
		{"sends a reply to a message that is not there as a message", nil, func(t *trial) error {
			text := "ollim door test: a reply to nothing"
			_, err := t.send(Request{Text: &text, ReplyTo: "999999999"})
			return err
		}},
		{"sends a message without a notification, or with one", nil, func(t *trial) error {
			text := "ollim door test: silent"
			_, err := t.send(Request{Text: &text, Silent: true})
			return err
		}},
		{"refuses a channel that is not there, with permanent or refused", nil, func(t *trial) error {
			text := "ollim door test: nowhere"
			return t.refused(Request{Type: TypeSend, Channel: "no-such-channel-0", Text: &text, Nonce: "nowhere"})
		}},
	}
}

func sendingMore() []proof {
	return []proof{
		{"answers a nonce that it knows with the message and its text", canNonce, func(t *trial) error {
			one, other, nonce := "ollim door test: a nonce", "ollim door test: it should not be seen", "nonce-"+t.first
			before, err := t.send(Request{Text: &one, Nonce: nonce})
			if err != nil {
				return err
			}
			done, err := t.ask(Request{Type: TypeSend, Channel: t.channel, Text: &other, Nonce: nonce})
			if err == nil && (done.ID != before || done.Text == nil || *done.Text != one) {
				err = fmt.Errorf("the answer has id %q, want %q, and the text %v", done.ID, before, done.Text)
			}
			return err
		}},
		{"sends buttons", canPress, func(t *trial) (err error) {
			text := "ollim door test: three buttons, one of which cannot be used"
			t.second, err = t.send(Request{Text: &text, Buttons: &[]Button{
				{ID: "ollim:answer:20260101-000000-abcdef:0", Label: "Yes", Style: "primary"},
				{ID: "ollim:answer:20260101-000000-abcdef:1", Label: strings.Repeat("A long label ", 6), Style: "danger"},
				{ID: "ollim:close:-", Label: "Off", Disabled: true},
			}})
			return err
		}},
		{"sends a file with a text", canCarry, func(t *trial) error { return t.carries("ollim door test: a file") }},
		{"sends a file without a text", canCarry, func(t *trial) error { return t.carries("") }},
		{"shows that the bot types", canType, func(t *trial) error {
			_, err := t.ask(Request{Type: TypeTyping, Channel: t.channel})
			return err
		}},
	}
}

// carries sends a file.
func (t *trial) carries(text string) error {
	path, err := newBot("", t.program.Files).put([]byte("This is a file.\n"))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	_, err = t.send(Request{Text: &text, Files: []File{{Name: "a file.txt", Type: "text/plain", Path: path}}})
	return err
}

func changing() []proof {
	edit := func(t *trial, id string, r Request) error {
		r.Type, r.Channel, r.ID = TypeEdit, t.channel, id
		_, err := t.ask(r)
		return err
	}
	text := "ollim door test: an edited message"
	react := func(name string, remove bool) proof {
		return proof{name, canReact, func(t *trial) error {
			_, err := t.ask(Request{Type: TypeReact, Channel: t.channel, ID: t.first, Emoji: "👀", Remove: remove})
			return err
		}}
	}
	return []proof{
		{"edits a message", canEdit, func(t *trial) error { return edit(t, t.first, Request{Text: &text}) }},
		{"answers an edit that changes nothing with done", canEdit, func(t *trial) error { return edit(t, t.first, Request{Text: &text}) }},
		{"makes able.edits edits in able.span, or says retry_after", canEdit, func(t *trial) (err error) {
			for i := range min(t.live.hello.Able.Edits+1, 20) {
				text := fmt.Sprint("ollim door test: edit ", i)
				err = errors.Join(err, edit(t, t.first, Request{Text: &text}))
			}
			return err
		}},
		{"refuses to edit a message that is not there, with permanent or refused", canEdit, func(t *trial) error {
			return t.refused(Request{Type: TypeEdit, Channel: t.channel, ID: "999999999", Text: &text})
		}},
		{"changes the buttons of a message alone", canPress, func(t *trial) error {
			return edit(t, t.second, Request{Buttons: &[]Button{{ID: "ollim:close:-", Label: "Other"}}})
		}},
		{"removes the buttons of a message", canPress, func(t *trial) error { return edit(t, t.second, Request{Buttons: &[]Button{}}) }},
		react("adds a reaction", false),
		react("answers a reaction that is there with done", false),
		react("removes a reaction", true),
		react("answers the removal of a reaction that is gone with done", true),
		{"deletes a message", canEdit, func(t *trial) error {
			id, err := t.says("ollim door test: this message is deleted")
			if err == nil {
				_, err = t.ask(Request{Type: TypeDelete, Channel: t.channel, ID: id})
			}
			if err == nil {
				t.second = id
			}
			return err
		}},
		{"answers the deletion of a message that is gone with done", canEdit, func(t *trial) error {
			_, err := t.ask(Request{Type: TypeDelete, Channel: t.channel, ID: t.second})
			return err
		}},
	}
}

func reading() []proof {
	return []proof{
		{"refuses to fetch an address that is not there", nil, func(t *trial) error {
			return t.refused(Request{Type: TypeFetch, Address: "no-such-file", Most: 1000, Path: t.program.Files + "/none"})
		}},
		{"returns the history after a message, oldest first, its own with own", canRead, func(t *trial) error {
			done, err := t.ask(Request{Type: TypeHistory, Channel: t.channel, After: t.first, Limit: 100})
			if err != nil {
				return err
			}
			if len(done.Messages) == 0 || slices.ContainsFunc(done.Messages, func(m Message) bool { return m.ID == t.first }) {
				return fmt.Errorf("%d messages after %s", len(done.Messages), t.first)
			}
			if first := done.Messages[0]; !first.Own || !strings.HasPrefix(first.Text, "ollim door test") {
				return fmt.Errorf("the oldest is %q, own: %t", first.Text, first.Own)
			}
			return nil
		}},
		{"returns at most limit messages", canRead, func(t *trial) error {
			done, err := t.ask(Request{Type: TypeHistory, Channel: t.channel, After: t.first, Limit: 2})
			if err == nil && len(done.Messages) != 2 {
				err = fmt.Errorf("%d messages, want 2", len(done.Messages))
			}
			return err
		}},
		{"returns what a message says", canRead, func(t *trial) error {
			done, err := t.ask(Request{Type: TypeQuote, Channel: t.channel, ID: t.first})
			if err == nil && (done.Text == nil || !strings.HasPrefix(*done.Text, "ollim door test")) {
				err = errors.New("the answer has no text of it")
			}
			return err
		}},
	}
}
