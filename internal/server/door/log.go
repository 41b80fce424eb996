package door

import (
	"bytes"
	"sync/atomic"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Log passes what a door writes on standard error on, line by line.
type Log struct {
	Name string // of the door
	Hide func(text string) string
	Warn func(message string)

	Quiet *atomic.Bool // nothing is passed on; may be nil

	rest []byte // of a line
}

const maxLog = 1000 // bytes of a line

// Write takes a part of the output. A longer line is cut.
func (l *Log) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c != '\n' && len(l.rest) < maxLog:
			l.rest = append(l.rest, c)
		case c == '\n':
			if text := plaintext.Line(string(bytes.ToValidUTF8(l.rest, []byte("\ufffd")))); text != "" && (l.Quiet == nil || !l.Quiet.Load()) {
				l.Warn(l.Name + ": " + l.Hide(text))
			}
			l.rest = l.rest[:0]
		}
	}
	return len(p), nil
}
