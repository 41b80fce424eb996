package api

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// maxText is the most characters of a message. As it is not documented what a character is, it is held in UTF-16 units.
const maxText = 2000

// Able returns what can be done on Discord.
func (*Client) Able() messenger.Able { return able() }

func able() messenger.Able {
	return messenger.Able{
		Text: maxText, File: 8 << 20, Reactions: true, Buttons: true, History: true,
		// Five edits of the messages of a channel in five seconds, and a little more for requests that arrive at different speeds.
		Edits: 5, Span: 5500 * time.Millisecond, Pause: 1200 * time.Millisecond,
		Order: &messenger.Order{First: "1", Compare: Compare, Before: Before},
		Style: messenger.Style{Small: "-# ", Escape: Escape, Code: span},
	}
}

// Snowflake returns the number of an id of Discord's; 0 if it is none.
func Snowflake(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || strings.HasPrefix(id, "0") {
		return 0
	}
	return n
}

// Compare compares two ids. That of a later message is greater.
func Compare(a, b string) int { return cmp.Compare(Snowflake(a), Snowflake(b)) }

// Before returns the id of a message that would have been sent so much earlier.
func Before(id string, d time.Duration) string {
	back := uint64(d.Milliseconds()) << 22 //nolint:gosec // it is positive
	return strconv.FormatUint(max(Snowflake(id), back)-back, 10)
}

// Escape makes Discord show a line as it is: without format, mention or link.
func Escape(line string) string {
	var b strings.Builder
	for i, r := range line {
		if strings.ContainsRune("\\*_~`|<>[]@", r) || r == ':' && strings.HasPrefix(line[i:], "://") {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		if r == '@' {
			b.WriteRune('\u200b') // @everyone is a mention even after a backslash
		}
	}
	return b.String()
}

// span shows a line as it is, as code.
func span(line string) string { return "`` " + InCode(line) + " ``" }

// InCode replaces what would end a code span.
func InCode(text string) string { return strings.ReplaceAll(text, "`", "ˋ") }
