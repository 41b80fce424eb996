package runlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/ollim/ollim/internal/platform/store"
)

// known is what this process has read of the events of a run. Any process may append events, so each read looks whether the file has
// changed, and reads only what was appended.
type known struct {
	mu     sync.Mutex
	events []Event     // the lines up to end that are events, without what no total needs
	end    int64       // offset after the last whole line
	last   []byte      // the last of these events, and the lines after it: the file must still have them
	rest   []Event     // the event in a last line without a line break, if there is one
	info   fs.FileInfo // the file as it was when it was read; nil: it was not
}

// read returns the events of the file at path, oldest first, without what no total needs. With an error it returns those that could be read.
func (k *known) read(path string) ([]Event, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, err := os.Lstat(path)
	if err == nil && k.info != nil && os.SameFile(now, k.info) && now.Size() == k.info.Size() && now.ModTime().Equal(k.info.ModTime()) {
		return k.all(), nil
	}
	f, err := store.Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		k.forget()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if now, err = f.Stat(); err != nil {
		return nil, err
	}
	if !k.follows(f) {
		k.forget()
	}
	err = k.readOn(bufio.NewReader(io.NewSectionReader(f, k.end, now.Size()-k.end)))
	if k.info = now; err != nil {
		k.info = nil
	}
	return k.all(), err
}

// follows reports whether the file still has the last event that was read: a writer takes it back if it does not reach the disk.
func (k *known) follows(f io.ReaderAt) bool {
	text := make([]byte, len(k.last))
	n, _ := f.ReadAt(text, k.end-int64(len(text)))
	return n == len(text) && string(text) == string(k.last)
}

func (k *known) forget() { k.events, k.end, k.last, k.rest, k.info = nil, 0, nil, nil, nil }

func (k *known) all() []Event { return append(k.events[:len(k.events):len(k.events)], k.rest...) }

// readOn reads the lines after end. It skips lines that are not events.
func (k *known) readOn(r *bufio.Reader) error {
	k.rest = nil
	var line []byte
	for {
		var err error
		line, err = store.ReadLine(r, line[:0])
		var e Event
		isEvent := json.Unmarshal(line, &e) == nil
		switch {
		case err == nil:
			if isEvent {
				k.events, k.last = append(k.events, e.outline()), k.last[:0]
			}
			k.end, k.last = k.end+int64(len(line)), append(k.last, line...)
			continue
		case !errors.Is(err, io.EOF):
			return err
		case isEvent: // its writer was killed, or is about to write the line break
			k.rest = []Event{e.outline()}
		}
		return nil
	}
}

// outline returns the event without what no total needs: what the agent thought and said, and the inputs and results of tools.
func (e Event) outline() Event {
	switch e.Type {
	case Text, Thinking, ToolResult:
		e.Text = ""
	case ToolUse:
		e.Input = nil
	}
	return e
}

// each calls see with every event of the run, oldest first. It does not read texts that were moved to files.
func (r *Run) each(see func(Event)) error {
	events, err := r.known.read(r.book.Home.Run(r.ID, "events.jsonl"))
	for _, e := range events {
		see(e)
	}
	return err
}

// eachText is each with the texts that count, also those that were moved to files. An event whose file is missing counts without its text,
// so that the run can still end.
func (r *Run) eachText(see func(Event)) error {
	var failed error
	err := r.each(func(e Event) {
		if failed == nil && (e.Type == CompactWish || e.Type == Result) {
			if e, failed = r.book.unfold(r.ID, e); errors.Is(failed, fs.ErrNotExist) {
				failed = nil
			}
		}
		if failed == nil {
			see(e)
		}
	})
	return errors.Join(failed, err)
}
