package runlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// promptFile is the type with which Search returns a match in a prompt, which is not an event.
const promptFile eventType = "prompt"

// found is a text of a run that contains all words of a search.
type found struct {
	Run     string
	Changed time.Time // time of the run's last activity
	At      time.Time
	Type    eventType
	Excerpt string // one line around the first word
}

// Search finds texts of runs that contain all of the words, in any order and case: prompts, answers, the inputs and results of tools,
// errors. A word may be a phrase. Runs come in the order of their latest activity, the latest first, so that a caller can stop early; the
// texts of a run come oldest first. The final text of a turn is omitted if the same text was found before. Unreadable files are skipped.
// An error that ends the whole search is yielded last, with the zero value.
func (b Book) Search(ctx context.Context, words []string, said func(prompt string) string) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		s := search{b, said, plaintext.NewQuery(words)}
		all, err := b.latest()
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, f := range all {
			if err := context.Cause(ctx); err != nil {
				yield(found{}, err)
				return
			}
			if len(s.words) > 0 && !s.in(f, func(f found) bool { return yield(f, nil) }) {
				return
			}
		}
	}
}

// latest lists runs by their latest activity. It sets only the fields that this needs.
func (b Book) latest() ([]found, error) {
	var all []found
	for id, err := range b.newest() {
		if err != nil {
			return nil, err
		}
		begun := Began(id)
		f := found{Run: id, Changed: begun, At: begun}
		if info, err := os.Stat(b.Home.Run(f.Run, "events.jsonl")); err == nil {
			f.Changed = info.ModTime()
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.Changed.Compare(a.Changed) })
	return all, nil
}

type search struct {
	book  Book
	said  func(string) string // returns the words of a person in a prompt; nil returns the whole prompt
	words plaintext.Query
}

// in searches one run. It reports whether yield wants more.
func (s search) in(f found, yield func(found) bool) bool {
	if text, err := store.Read(s.book.Home.Run(f.Run, "prompt.txt")); err == nil && s.words.Maybe(text) {
		var found bool
		f.Type = promptFile
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
	in := bufio.NewReaderSize(events, 64<<10)
	// a read error ends the loop like the end of the file
	for line, _ := store.ReadLine(in, nil); len(line) > 0; line, _ = store.ReadLine(in, line[:0]) {
		if !s.words.Maybe(line) && !bytes.Contains(line, []byte(`"file":"`)) { // the line of a large event has only the name of its file
			continue
		}
		var e Event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		e, err := s.book.unfold(f.Run, e)
		if err != nil {
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

// visible returns the text of an event that a person can read.
func (e Event) visible() string {
	switch e.Type {
	case Text, ToolResult, Result, Compacted, ErrorEvent:
		return e.Text
	case ToolUse:
		return e.Tool + " " + string(e.Input)
	}
	return ""
}
