package claudecode

import (
	"fmt"
	"os"
)

// Limits of the command's output, in bytes.
const (
	maxLine = 32 << 20 // longest line of events: the largest request that a model's API accepts, so that no message is longer
	maxLog  = 1 << 20  // part of standard error that is kept from its beginning
)

// tailBytes is how many bytes of the end of standard error are kept.
const tailBytes = 2 << 10

// stderrLog writes the command's standard error to a file. It keeps the beginning, up to most bytes, and the end.
type stderrLog struct {
	file *os.File
	most int64 // bytes, including what the file holds already

	size    int64 // bytes in the file
	begun   bool
	tail    []byte
	dropped int64
}

// Write writes up to the limit. It never fails, because a broken pipe would kill the engine. Bytes that the file does not accept are
// dropped.
func (l *stderrLog) Write(p []byte) (int, error) {
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

// last returns the end of what was written.
func (l *stderrLog) last() string { return string(l.tail) }

// close closes the file. If bytes were dropped, it first appends a note and the end of the output. It returns how many bytes are not in
// the file.
func (l *stderrLog) close() (leftOut int64, err error) {
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
