package engine

import (
	"fmt"
	"os"

	"github.com/ollim/ollim/internal/state/runlog"
)

// Bounds of what an engine may print, in bytes.
const (
	MaxLine   = 32 << 20 // of a line of events: the largest request that a model's API accepts, so no message is longer
	MaxLog    = 1 << 20  // of standard error, kept from its beginning
	MaxRecord = 64 << 20 // of the events of one run: about fifteen windows of a million tokens
)

// tailBytes is how many bytes of the end of standard error are kept.
const tailBytes = 2 << 10

// Meter counts the events of one run.
type Meter struct {
	Most int // bytes

	taken int
}

// perEvent is the size of an event besides its text, in bytes.
const perEvent = 200

// Take counts an event, and fails if the record would be too large. An event of usage never fails.
func (m *Meter) Take(e runlog.Event) error {
	m.taken += perEvent + len(e.Text) + len(e.Input)
	if m.taken > m.Most && e.Type != runlog.UsageEvent {
		return fmt.Errorf("the engine printed more than %d bytes, the limit of a run record", m.Most)
	}
	return nil
}

// Log writes an engine's standard error to a file. It keeps the beginning, up to Most bytes, and the end.
type Log struct {
	File *os.File
	Most int64 // bytes, including what the file holds already

	size    int64 // bytes in the file
	begun   bool
	tail    []byte
	dropped int64
}

// Write writes up to the bound. It never fails, because a broken pipe would kill the engine: what the file does not accept is left
// out.
func (l *Log) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		if info, err := l.File.Stat(); err == nil {
			l.size = info.Size()
		}
	}
	l.tail = append(l.tail, p[max(0, len(p)-tailBytes):]...)
	l.tail = l.tail[max(0, len(l.tail)-tailBytes):]
	written := 0
	if kept := p[:min(int64(len(p)), max(0, l.Most-l.size))]; len(kept) > 0 {
		var err error
		if written, err = l.File.Write(kept); err != nil {
			l.Most = 0 // a full disk, say
		}
	}
	l.size += int64(written)
	l.dropped += int64(len(p) - written)
	return len(p), nil
}

// Tail returns the end of what was written.
func (l *Log) Tail() string { return string(l.tail) }

// Close closes the file. If something was omitted, it first appends a note and the end of what was written. It returns how many
// bytes are not in the file.
func (l *Log) Close() (leftOut int64, err error) {
	if l.dropped > 0 {
		end := l.tail[max(0, int64(len(l.tail))-l.dropped):]
		note := ""
		if leftOut = l.dropped - int64(len(end)); leftOut > 0 {
			note = fmt.Sprintf("\n[%d bytes omitted]\n", leftOut)
		}
		if _, err := l.File.WriteString(note + string(end)); err != nil {
			leftOut = l.dropped
		}
	}
	return leftOut, l.File.Close()
}
