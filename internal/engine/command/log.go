package command

import (
	"fmt"
	"os"
	"syscall"
)

// Limits of a command's output, in bytes.
const (
	MaxLine = 32 << 20 // longest line of events: the largest request that a model's API accepts, so that no message is longer
	maxLog  = 1 << 20  // part of standard error that is kept from its beginning
)

// tailBytes is how many bytes of the end of standard error are kept.
const tailBytes = 2 << 10

// Log writes a command's standard error to a file. It keeps the beginning, up to most bytes, and the end.
type Log struct {
	file *os.File
	most int64 // bytes, including what the file holds already

	size    int64 // bytes in the file
	begun   bool
	tail    []byte
	dropped int64
}

// OpenLog opens the log at path, to which earlier commands of the run may have written.
func OpenLog(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &Log{file: file, most: maxLog}, nil
}

// Write writes up to the limit. It never fails, because a broken pipe would kill the engine. Bytes that the file does not accept are
// dropped.
func (l *Log) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		if info, err := l.file.Stat(); err == nil {
			l.size = info.Size()
		}
	}
	l.tail = append(l.tail, p[max(0, len(p)-tailBytes):]...)
	l.tail = l.tail[max(0, len(l.tail)-tailBytes):]
	written := 0
	if kept := p[:min(int64(len(p)), max(0, l.most-l.size))]; len(kept) > 0 {
		var err error
		if written, err = l.file.Write(kept); err != nil {
			l.most = 0 // the disk is full, for example
		}
	}
	l.size += int64(written)
	l.dropped += int64(len(p) - written)
	return len(p), nil
}

// Last returns the end of what was written.
func (l *Log) Last() string { return string(l.tail) }

// Close closes the file. If bytes were dropped, it first appends a note and the end of the output. It returns how many bytes are not in
// the file.
func (l *Log) Close() (leftOut int64, err error) {
	if l.dropped > 0 {
		end := l.tail[max(0, int64(len(l.tail))-l.dropped):]
		note := ""
		if leftOut = l.dropped - int64(len(end)); leftOut > 0 {
			note = fmt.Sprintf("\n[%d bytes omitted]\n", leftOut)
		}
		if _, err := l.file.WriteString(note + string(end)); err != nil {
			leftOut = l.dropped
		}
	}
	return leftOut, l.file.Close()
}
