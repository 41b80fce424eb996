package door

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Version is the version of the protocol.
const Version = 1

// MaxLine is the most bytes of a line, with its newline.
const MaxLine = 1 << 20

// The types of lines from ollim to a door. Those of the second group are requests: they have a Ref, and are answered.
const (
	TypeStart   = "start"
	TypeTaken   = "taken"
	TypePressed = "pressed"

	TypeSend    = "send"
	TypeEdit    = "edit"
	TypeDelete  = "delete"
	TypeReact   = "react"
	TypeTyping  = "typing"
	TypeFetch   = "fetch"
	TypeHistory = "history"
	TypeQuote   = "quote"
	TypePing    = "ping"
)

// The types of lines from a door.
const (
	TypeHello   = "hello"
	TypeMessage = "message"
	TypeEdited  = "edited"
	TypeDeleted = "deleted"
	TypePress   = "press"
	TypeDone    = "done"
	TypeFailed  = "failed"
)

// Start is the first line to a door.
type Start struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
	Name    string `json:"name"`
	Files   string `json:"files"` // a private directory, in which both sides put the contents of files
}

// Taken says that the message of a line is kept, and need not be delivered again.
type Taken struct {
	Type string `json:"type"`
	Line int    `json:"line"`         // the number of the door's line, the first is 1
	ID   string `json:"id,omitempty"` // of the message, if it has one
}

// Pressed says that a press was received.
type Pressed struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Request is a line that the door answers with Done or Failed. The type says which fields it has.
type Request struct {
	Type    string `json:"type"`
	Ref     uint64 `json:"ref"`
	Channel string `json:"channel,omitempty"`
	ID      string `json:"id,omitempty"` // of the message that is edited, deleted, reacted to or quoted

	Text    *string   `json:"text,omitempty"` // an edit without it leaves the text
	ReplyTo string    `json:"reply_to,omitempty"`
	Silent  bool      `json:"silent,omitempty"`
	Buttons *[]Button `json:"buttons,omitempty"` // an edit without them leaves them, an empty list removes them
	Files   []File    `json:"files,omitempty"`
	Nonce   string    `json:"nonce,omitempty"`

	Emoji  string `json:"emoji,omitempty"`
	Remove bool   `json:"remove,omitempty"`

	Address string `json:"address,omitempty"`
	Most    int64  `json:"most,omitempty"` // bytes
	Path    string `json:"path,omitempty"` // where the content is put

	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// Button is a button of a message.
type Button struct {
	ID       string `json:"id"`
	Label    string `json:"label"`
	Style    string `json:"style,omitempty"` // primary, success or danger; "" is plain
	Disabled bool   `json:"disabled,omitempty"`
}

// File is a file to send along.
type File struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	Path string `json:"path"`
}

// Hello is the first line of a door.
type Hello struct {
	Version  int      `json:"version"`
	Able     Able     `json:"able"`
	Mentions []string `json:"mentions"` // the texts that mention the bot
	Owners   []string `json:"owners"`   // user ids of those who own the bot for the messenger
	Direct   string   `json:"direct"`   // the channel of the first owner's direct messages
}

// Able is what a door can do. Times are in seconds.
type Able struct {
	Text      int     `json:"text"`  // the most UTF-16 units of a message
	File      int     `json:"file"`  // the most bytes of a file; 0: it carries no files
	Edits     int     `json:"edits"` // the most edits in Span; 0: messages cannot be edited
	Span      float64 `json:"span"`
	Pause     float64 `json:"pause"` // the least time between two edits
	Typing    bool    `json:"typing"`
	Reactions bool    `json:"reactions"`
	Buttons   bool    `json:"buttons"`
	Nonces    bool    `json:"nonces"`
	History   bool    `json:"history"`
}

// Limits of Able.
const (
	leastText = 100
	mostText  = 100_000
	mostFile  = 1 << 30
	mostTime  = 3600 // seconds
)

// Messenger returns what the door can do as the listener takes it. The error names the key and what is wrong with it.
func (h Hello) Messenger() (messenger.Able, error) {
	a := h.Able
	switch {
	case h.Version != Version:
		return messenger.Able{}, fmt.Errorf("version: the door speaks version %d, and this ollim version %d", h.Version, Version)
	case a.Text < leastText || a.Text > mostText:
		return messenger.Able{}, fmt.Errorf("able.text: %d: want %d to %d", a.Text, leastText, mostText)
	case a.File < 0 || a.File > mostFile:
		return messenger.Able{}, fmt.Errorf("able.file: %d: want 0 to %d", a.File, mostFile)
	case a.Edits < 0 || a.Edits > 0 && !(a.Span > 0 && a.Span <= mostTime):
		return messenger.Able{}, fmt.Errorf("able.span: %g: want the seconds in which there may be %d edits", a.Span, a.Edits)
	case !(a.Pause >= 0 && a.Pause <= mostTime):
		return messenger.Able{}, fmt.Errorf("able.pause: %g: want 0 to %d", a.Pause, mostTime)
	}
	return messenger.Able{
		Text: a.Text, File: a.File, Edits: a.Edits, Span: seconds(a.Span), Pause: seconds(a.Pause),
		Reactions: a.Reactions, Buttons: a.Buttons, History: a.History, Mentions: h.Mentions,
	}, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Message is a message that was received or edited, or one of a history. Of one that was deleted, only the ids count.
type Message struct {
	ID        string     `json:"id"` // "": the messenger has no ids
	Channel   string     `json:"channel"`
	User      string     `json:"user"`
	Name      string     `json:"name"`
	Own       bool       `json:"own"` // the bot has written it; in a history only
	Direct    bool       `json:"direct"`
	Parent    string     `json:"parent"`
	Addressed bool       `json:"addressed"`
	Again     bool       `json:"again"` // it has no id, and was delivered before
	Text      string     `json:"text"`
	ReplyTo   string     `json:"reply_to"`
	Quoted    *Quoted    `json:"quoted"`
	Files     []Received `json:"files"`
}

// Quoted is the message that another one replies to.
type Quoted struct {
	Text string `json:"text"`
	Own  bool   `json:"own"` // the bot has written it
}

// Received is a file of a message.
type Received struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	Address string `json:"address"`
	Voice   bool   `json:"voice"`
}

// Press is a press of a button.
type Press struct {
	ID      string   `json:"id"`
	Channel string   `json:"channel"`
	Message string   `json:"message"`
	Button  string   `json:"button"`
	User    string   `json:"user"`
	Buttons []Button `json:"buttons"` // of the message, as it shows them; empty: not known
}

// Done is the answer to a request that was carried out.
type Done struct {
	Ref      uint64    `json:"ref"`
	ID       string    `json:"id"`       // of send: the message
	Text     *string   `json:"text"`     // of quote; of send if an earlier request with the nonce has created the message
	Messages []Message `json:"messages"` // of history, oldest first
}

// Failed is the answer to a request that was not carried out.
type Failed struct {
	Ref       uint64  `json:"ref"`
	Reason    string  `json:"error"`
	Retry     float64 `json:"retry_after"` // seconds
	Permanent bool    `json:"permanent"`   // the same request would fail again
	Refused   bool    `json:"refused"`     // it would, but others may succeed
}

// Err returns the failure as the listener takes it: a *messenger.Permanent, or an error that may have a method RetryAfter.
func (f Failed) Err() error {
	reason := plaintext.Short(plaintext.Line(cmp.Or(f.Reason, "the door gave no reason")), maxReason)
	switch {
	case f.Permanent || f.Refused:
		return &messenger.Permanent{Text: reason, Refused: f.Refused}
	case f.Retry > 0:
		return &later{reason, seconds(min(f.Retry, mostTime))}
	}
	return errors.New(reason)
}

const maxReason = 500 // characters of an error

// later is an error after which the messenger asks to wait.
type later struct {
	reason string
	wait   time.Duration
}

func (e *later) Error() string { return e.reason }

// RetryAfter returns how long to wait before the next request.
func (e *later) RetryAfter() time.Duration { return e.wait }

// decode reads the object of a line into a struct. The error names the key whose value has another type.
func decode[T any](line []byte) (value T, err error) {
	err = json.Unmarshal(line, &value)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("%s: a %s is no %s", cmp.Or(wrong.Field, "the line"), wrong.Value, kind(wrong))
	}
	return value, err
}

// kind returns the type of JSON that was wanted.
func kind(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "bool":
		return "boolean"
	case "string":
		return "string"
	case "slice":
		return "array"
	case "struct", "map", "ptr":
		return "object"
	}
	return "number in its range"
}

// checkID returns an error if a text is not the id of a channel, a message, a file or a press. The error does not quote it, because a
// stranger may have written it.
func checkID(key, id string) error {
	if id == "" || len(id) > maxID || !plaintext.IsWord(id, "._-") {
		return fmt.Errorf("%s: no id: want letters, digits, '.', '_' and '-', at most %d", key, maxID)
	}
	return nil
}

const maxID = 100 // bytes

// listed returns buttons as they are in lines; nil stays nil.
func listed(list []outbox.Button) *[]Button {
	if list == nil {
		return nil
	}
	out := []Button{}
	for _, b := range list {
		out = append(out, Button{b.ID, b.Label, b.Style, b.Disabled})
	}
	return &out
}

// unlisted returns the buttons of a line.
func unlisted(list []Button) (out []outbox.Button) {
	for _, b := range list {
		out = append(out, outbox.Button{ID: b.ID, Label: b.Label, Style: b.Style, Disabled: b.Disabled})
	}
	return out
}
