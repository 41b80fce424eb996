package runlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Prompt is what Search calls the text that a run was given; it is no event.
const Prompt EventType = "prompt"

// Found is a text of a run in which all words were found.
type Found struct {
	Run     string
	Changed time.Time // when the run last did anything
	At      time.Time
	Type    EventType
	Excerpt string // one line around the first word
}

// Search looks for texts of runs that hold all of the words, in any order and case: prompts, what was said, what tools were
// given and answered, errors. A word may be a phrase. The run that did something last comes first, so that whoever has enough
// can stop early; of each the oldest text comes first. The final text of a turn is omitted where it was said before. What
// cannot be read is skipped. The sequence ends with the first error of the whole, which is yielded with the zero Found.
func (b Book) Search(ctx context.Context, words []string, said func(prompt string) string) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		s := search{b, said, plaintext.NewQuery(words)}
		all, err := b.latest()
		if err != nil {
			yield(Found{}, err)
			return
		}
		for _, f := range all {
			if err := context.Cause(ctx); err != nil {
				yield(Found{}, err)
				return
			}
			if len(s.words) > 0 && !s.in(f, func(f Found) bool { return yield(f, nil) }) {
				return
			}
		}
	}
}

// latest lists runs by when they last did anything, as Found values that hold no more than that.
func (b Book) latest() ([]Found, error) {
	entries, err := os.ReadDir(b.Home.Runs())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []Found
	for _, e := range entries {
		if !isID(e.Name()) {
			continue
		}
		begun, _ := time.Parse(idTime, e.Name()[:len(idTime)])
		f := Found{Run: e.Name(), Changed: begun, At: begun}
		if info, err := os.Stat(b.Home.Run(f.Run, "events.jsonl")); err == nil {
			f.Changed = info.ModTime()
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b Found) int { return b.Changed.Compare(a.Changed) })
	return all, nil
}

type search struct {
	book  Book
	said  func(string) string // leaves of a prompt what was said; nil: all
	words plaintext.Query
}

// in searches one run. It reports whether yield wants more.
func (s search) in(f Found, yield func(Found) bool) bool {
	if text, err := store.Read(s.book.Home.Run(f.Run, "prompt.txt")); err == nil && s.words.Maybe(text) {
		var found bool
		f.Type = Prompt
		prompt := string(text)
		if s.said != nil {
			prompt = s.said(prompt)
		}
		if f.Excerpt, found = s.words.Excerpt(prompt); found && !yield(f) {
			return false
		}
	}
	events, err := store.Open(s.book.Home.Run(f.Run, "events.jsonl"), os.O_RDONLY)
	if err != nil {
		return true
	}
	defer func() { _ = events.Close() }()
	said := ""
	for line := range lines(events) {
		if !s.words.Maybe(line) && !bytes.Contains(line, []byte(`"file":"`)) { // of what is large only the file's name stands here
			continue
		}
		e, ok := s.event(f.Run, line)
		if !ok {
			continue
		}
		excerpt, found := s.words.Excerpt(e.visible())
		if !found || e.Type == Result && excerpt == said {
			continue
		}
		if e.Type == Text {
			said = excerpt
		}
		f.At, f.Type, f.Excerpt = e.At, e.Type, excerpt
		if !yield(f) {
			return false
		}
	}
	return true
}

func (s search) event(run string, line []byte) (e Event, ok bool) {
	if json.Unmarshal(line, &e) != nil {
		return e, false
	}
	if e.File != "" && s.book.unfold(run, &e) != nil {
		return e, false
	}
	return e, true
}

// visible is what somebody who reads the log would look for.
func (e Event) visible() string {
	switch e.Type {
	case Text, ToolResult, Result, Compacted, ErrorEvent:
		return e.Text
	case ToolUse:
		return e.Tool + " " + string(e.Input)
	}
	return ""
}

// lines yields the lines of a file; each is valid until the next.
func lines(f io.Reader) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		r, long := bufio.NewReaderSize(f, 64<<10), []byte(nil)
		for {
			line, err := r.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = append(long, line...)
				continue
			}
			if len(long) > 0 {
				long = append(long, line...)
				line = long
			}
			if !yield(line) || err != nil {
				return
			}
			long = long[:0]
		}
	}
}
