package engine

import (
	"fmt"
	"os"

	"github.com/ollim/ollim/internal/state/runlog"
)

// Bounds of what an engine may print, in bytes.
const (
	MaxLine   = 32 << 20 // of a line of events: the largest request that a model's API takes, so that no message is longer
	MaxLog    = 1 << 20  // of standard error, kept from its beginning
	MaxRecord = 64 << 20 // of the events of one run: some fifteen windows of a million tokens
)

// lastWords is how many bytes are kept of the end of standard error.
const lastWords = 2 << 10

// Meter counts the events of one run.
type Meter struct {
	Most int // bytes

	taken int
}

// perEvent is what an event takes beside its text, in bytes.
const perEvent = 200

// Take counts an event, and fails once the record would be too large. Events of use and cost are always taken.
func (m *Meter) Take(e runlog.Event) error {
	m.taken += perEvent + len(e.Text) + len(e.Input)
	if m.taken > m.Most && e.Type != runlog.UsageEvent {
		return fmt.Errorf("the engine printed more than the %d bytes that a record takes", m.Most)
	}
	return nil
}

// Log is a file of an engine's standard error. It keeps the beginning, up to Most bytes, and the end.
type Log struct {
	File *os.File
	Most int64 // bytes of the file, whatever is in it already

	size    int64 // of all that was written, what was in the file at first included
	begun   bool
	tail    []byte
	dropped int64
}

// Write never writes more than the bound. It never fails, because the engine would be killed by a broken pipe: what the file did
// not take is left out.
func (l *Log) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		if info, err := l.File.Stat(); err == nil {
			l.size = info.Size()
		}
	}
	l.tail = append(l.tail, p[max(0, len(p)-lastWords):]...)
	l.tail = l.tail[max(0, len(l.tail)-lastWords):]
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

// Tail is the end of what was written.
func (l *Log) Tail() string { return string(l.tail) }

// Close ends the file. Where something was left out it says so there, followed by the end of what was written, and returns how
// many bytes are not in the file.
func (l *Log) Close() (leftOut int64, err error) {
	if l.dropped > 0 {
		end := l.tail[max(0, int64(len(l.tail))-l.dropped):]
		note := ""
		if leftOut = l.dropped - int64(len(end)); leftOut > 0 {
			note = fmt.Sprintf("\n[%d bytes left out]\n", leftOut)
		}
		if _, err := l.File.WriteString(note + string(end)); err != nil {
			leftOut = l.dropped
		}
	}
	return leftOut, l.File.Close()
}
