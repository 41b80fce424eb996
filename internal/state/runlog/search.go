package runlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
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
	Line    int    // of events.jsonl, from 1; 0: it is in the prompt
}

// Search finds texts of runs that contain all of the words, in any order and case: prompts, answers, the inputs and results of tools,
// errors. A word may be a phrase. Runs come in the order of their latest activity, the latest first, so that a caller can stop early; the
// texts of a run come oldest first. The final text of a turn is omitted if the same text was found before. Unreadable files are skipped.
// An error that ends the whole search is yielded last, with the zero value. Runs that Only does not select are omitted.
func (b Book) Search(ctx context.Context, words []string, said func(prompt string) string) iter.Seq2[found, error] {
	return search{b, said, true, Event.visible, plaintext.NewQuery(words)}.all(ctx)
}

// SearchTold is Search in the texts that may have reached the owner: messages, questions, reports, and answers. An answer reached the owner
// only if the run is part of a conversation or the answer was sent as a message, see Saying.
func (b Book) SearchTold(ctx context.Context, words []string) iter.Seq2[found, error] {
	return search{b, nil, false, Event.told, plaintext.NewQuery(words)}.all(ctx)
}

func (s search) all(ctx context.Context) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		all, err := s.book.latest()
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, f := range all {
			if err := context.Cause(ctx); err != nil {
				yield(found{}, err)
				return
			}
			if len(s.words) == 0 || !s.book.selects(f.Run) {
				continue
			}
			if !s.in(f, func(f found) bool { return yield(f, nil) }) {
				return
			}
		}
	}
}

// selects reports whether Only selects a run.
func (b Book) selects(id string) bool {
	if b.Only == nil {
		return true
	}
	r, err := b.Load(id)
	return b.shows(r, err) && err == nil
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
	book    Book
	said    func(string) string // returns the words of a person in a prompt; nil returns the whole prompt
	prompts bool                // search prompts as well
	visible func(Event) string  // the text of an event that is searched
	words   plaintext.Query
}

// in searches one run. It reports whether yield wants more.
func (s search) in(f found, yield func(found) bool) bool {
	if text, err := s.prompt(f.Run); err == nil && s.words.Maybe(text) {
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
	said := ""
	for line, e := range s.book.numbered(f.Run, s.words.Maybe) {
		excerpt, found := s.words.Excerpt(s.visible(e))
		if !found || e.Type == Result && excerpt == said {
			continue
		}
		if e.Type == Text {
			said = excerpt
		}
		f.At, f.Type, f.Excerpt, f.Line = e.At, e.Type, excerpt, line
		if !yield(f) {
			return false
		}
	}
	return true
}

func (s search) prompt(run string) ([]byte, error) {
	if !s.prompts {
		return nil, fs.ErrNotExist
	}
	return store.Read(s.book.Home.Run(run, "prompt.txt"))
}

// Numbered yields the events of a run, oldest first, with the numbers of their lines in events.jsonl, from 1. It omits those that cannot be
// read.
func (b Book) Numbered(id string) iter.Seq2[int, Event] {
	return b.numbered(id, func([]byte) bool { return true })
}

// numbered is Numbered for the lines that fit. The line of a large event fits, because it has only the name of the file with the text.
func (b Book) numbered(id string, fits func(line []byte) bool) iter.Seq2[int, Event] {
	return func(yield func(int, Event) bool) {
		events, err := store.Open(b.Home.Run(id, "events.jsonl"), os.O_RDONLY)
		if err != nil {
			return
		}
		defer func() { _ = events.Close() }()
		in := bufio.NewReaderSize(events, 64<<10)
		n := 0
		// a read error ends the loop like the end of the file
		for line, _ := store.ReadLine(in, nil); len(line) > 0; line, _ = store.ReadLine(in, line[:0]) {
			n++
			if !fits(line) && !bytes.Contains(line, []byte(`"file":"`)) {
				continue
			}
			var e Event
			if json.Unmarshal(line, &e) != nil {
				continue
			}
			if e, err = b.unfold(id, e); err == nil && !yield(n, e) {
				return
			}
		}
	}
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

// told returns the text of an event that may have reached the owner.
func (e Event) told() string {
	switch e.Type {
	case Ping, Message, Report, Text, Result:
		return e.Text
	}
	return ""
}
