// Package messenger describes a messenger as the listener uses it: what it carries, what it can do, and which of its errors stay.
//
// Ids of channels, messages and files are opaque words of letters, digits, '.', '_' and '-'; that of a user is any text. The id of a
// message is unique in the data directory, because a reply is found by it: a messenger whose ids are not makes them unique.
package messenger

import (
	"context"
	"errors"
	"time"

	"github.com/ollim/ollim/internal/state/outbox"
)

// Writer is the part of a messenger that shows answers. Its methods may be used by several goroutines at once.
type Writer interface {
	Able() Able

	// Send creates a message and returns it as it is: an earlier one if that had the same nonce and the messenger knows nonces.
	Send(ctx context.Context, channel string, o Outgoing) (Sent, error)

	// Edit changes a message.
	Edit(ctx context.Context, channel, id string, o Outgoing) error

	// Delete deletes a message of the bot. One that is gone already is no error.
	Delete(ctx context.Context, channel, id string) error

	// React adds a reaction of the bot, an emoji. Unreact removes it; one that is gone already is no error.
	React(ctx context.Context, channel, id, emoji string) error
	Unreact(ctx context.Context, channel, id, emoji string) error

	// Typing shows the bot as typing for about ten seconds.
	Typing(ctx context.Context, channel string) error
}

// Messenger is a messenger, reached as one bot.
type Messenger interface {
	Writer

	// Parent returns the channel that a channel of several users is a thread of; "" if it is none.
	Parent(ctx context.Context, channel string) (string, error)

	// Quote returns what a message says.
	Quote(ctx context.Context, channel, id string) (string, error)

	// History returns the oldest messages after one, at most limit of them, oldest first. After "" they are the newest of all.
	History(ctx context.Context, channel, after string, limit int) ([]*Message, error)

	// Download returns the content of a file of at most so many bytes.
	Download(ctx context.Context, address string, most int64) ([]byte, error)
}

// Able is what a messenger can do.
type Able struct {
	Text      int           // the most UTF-16 units of a message
	File      int           // the most bytes of a file; 0: it carries no files
	Edits     int           // the most edits in Span; 0: messages cannot be edited
	Span      time.Duration // of Edits
	Pause     time.Duration // the least time between two edits
	Reactions bool          // messages can have reactions
	Buttons   bool          // messages can have buttons; otherwise a reply with a number presses one
	History   bool          // earlier messages can be read
	Order     *Order        // what the ids of messages tell; nil: nothing
	Style     Style
	Mentions  []string // the texts that mention the bot
}

// Order is what ids tell that say when their messages were sent.
type Order struct {
	First   string                                  // an id before that of every message
	Compare func(a, b string) int                   // that of a later message is greater
	Before  func(id string, d time.Duration) string // the id of a message that would have been sent so much earlier
}

// Outgoing is a message to create, or what to change of one.
type Outgoing struct {
	Text    string        // at most Able.Text; "" leaves the text of an existing message
	Embed   *outbox.Embed // nil leaves it
	Files   []File
	ReplyTo string          // id of a message of the same channel, which may be deleted meanwhile
	Silent  bool            // without a notification
	Buttons []outbox.Button // nil leaves them, an empty list removes them
	Nonce   string          // at most 25 characters; the same one again creates no second message. "": a random one
	Once    bool            // the request waits for no rate limit and is not repeated
}

// File is a file to send along.
type File struct {
	Name string
	Type string // "" is application/octet-stream
	Data []byte
}

// Sent is a message of the bot as it is.
type Sent struct{ ID, Text string }

// Message is a message that was received.
type Message struct {
	ID      string
	Channel string
	User    string // the id of its author; "": nobody who is answered, such as a bot
	Name    string // of the author
	Own     bool   // the bot has written it

	Direct    bool   // it is in direct messages
	Placed    bool   // Parent is known
	Parent    string // of a thread its channel; "": it is not in a thread
	Addressed bool   // it mentions the bot, or replies to it

	Text    string
	ReplyTo string // id of the message that it replies to
	Quoted  *Quoted
	Files   []Received

	Again bool // it was delivered before, and nothing tells whether it was answered

	// Taken is called when the message need not be delivered again; nil: it is in a history.
	Taken func()
}

// Quoted is the message that another one replies to.
type Quoted struct {
	Text string
	Own  bool // the bot has written it
}

// Received is a file of a message.
type Received struct {
	ID      string // unique in the data directory; "": it is not known
	Name    string
	Size    int64 // in bytes
	Address string
	Voice   bool // it is a voice note
}

// Permanent is an error that stays until somebody changes something: the same request would fail again.
type Permanent struct {
	Text    string
	Refused bool // another request may succeed
}

// Error returns the text.
func (e *Permanent) Error() string { return e.Text }

// IsPermanent reports whether the same request would fail again.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*Permanent](err)
	return ok
}

// IsRefused reports whether the same request would fail again, and another one may succeed.
func IsRefused(err error) bool {
	e, ok := errors.AsType[*Permanent](err)
	return ok && e.Refused
}

// WithoutRefusal returns err, nil if IsRefused.
func WithoutRefusal(err error) error {
	if IsRefused(err) {
		return nil
	}
	return err
}

// After returns how long the messenger asks to wait before the next request, 0 if it does not ask. Its errors say that by a method
// RetryAfter.
func After(err error) time.Duration {
	var e interface{ RetryAfter() time.Duration }
	if errors.As(err, &e) {
		return e.RetryAfter()
	}
	return 0
}

// Style is how texts are formatted. The zero value formats nothing.
type Style struct {
	Small  string                   // begins a line in small letters
	Escape func(line string) string // makes the messenger show a line as it is
	Code   func(line string) string // formats a line as code
}

// Line returns a line as it is, in small letters.
func (s Style) Line(line string) string { return s.Small + s.Plain(line) }

// Plain returns a line that is shown as it is.
func (s Style) Plain(line string) string { return apply(s.Escape, line) }

// Span returns a line as code.
func (s Style) Span(line string) string { return apply(s.Code, line) }

func apply(format func(string) string, line string) string {
	if format == nil {
		return line
	}
	return format(line)
}
