package channel

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// ErrName is the error of a channel or a chat id that cannot name a session.
var ErrName = errors.New("invalid name of a channel session")

// maxName is the greatest length of a session's name in bytes. It leaves space for what the names of lock files and temporary files
// add; a file name has at most 255 bytes.
const maxName = 200

// Name identifies a session. Two names are equal if their sessions are the same. Only NewName and Parse return valid ones.
type Name struct{ channel, chat string }

// NewName returns the name of the session of a chat in a channel. The channel consists of a-z, 0-9 and -. The chat id is any text
// whose encoded form, together with the channel, has at most 200 bytes. The error wraps ErrName.
func NewName(channel, chat string) (Name, error) {
	n := Name{channel, chat}
	switch {
	case channel == "" || strings.Trim(channel, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return Name{}, fmt.Errorf("%w: channel %q: want a-z, 0-9 and -", ErrName, channel)
	case chat == "":
		return Name{}, fmt.Errorf("%w: the chat id is empty", ErrName)
	case !utf8.ValidString(chat):
		return Name{}, fmt.Errorf("%w: chat id %q: want UTF-8", ErrName, chat)
	case len(n.String()) > maxName:
		return Name{}, fmt.Errorf("%w: it has %d bytes as a file name; the limit is %d", ErrName, len(n.String()), maxName)
	}
	return n, nil
}

// Parse returns the name whose String is text. The error wraps ErrName.
func Parse(text string) (Name, error) {
	channel, encoded, _ := strings.Cut(text, "_")
	chat, err := url.PathUnescape(encoded)
	if err != nil {
		return Name{}, fmt.Errorf("%w: %q", ErrName, text)
	}
	n, err := NewName(channel, chat)
	if err == nil && n.String() != text {
		return Name{}, fmt.Errorf("%w: %q is written %s", ErrName, text, n)
	}
	return n, err
}

// ID returns the session_id, {channel}_{chat_id}.
func (n Name) ID() string { return n.channel + "_" + n.chat }

// String returns the ID with each byte of the chat id outside A-Z, a-z, 0-9, '.', '_' and '-' as %XX. It is the name of the file,
// without its extension, and different for different sessions, as a channel has no underscore.
func (n Name) String() string {
	var b strings.Builder
	b.WriteString(n.channel + "_")
	for i := range len(n.chat) {
		if c := n.chat[i]; strings.IndexByte("-._", c) >= 0 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Key returns the key of the session's lock.
func (n Name) Key() string { return "channel-" + n.String() }
