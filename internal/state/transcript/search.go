package transcript

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Match is a message that contains all words.
type Match struct {
	Transcript Transcript `json:"transcript"`
	Index      int        `json:"index"` // of the message in Load's entries
	At         time.Time  `json:"at"`
	Role       string     `json:"role"`
	Excerpt    string     `json:"excerpt"` // one line around the first word
}

// Search finds messages that contain all of the words, in any order and case: in the texts, as own leaves them, and in
// the inputs and results of tools. A word may be a phrase. The last modified transcript comes first, and within each
// the last message, so that a caller can stop after some. Files that are not transcripts
// are skipped. The sequence ends with the first error, which is yielded with the zero Match.
func Search(ctx context.Context, sessions string, words []string, own Words) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		s := search{words: plaintext.NewQuery(words), own: own}
		all, err := newest(sessions, "")
		if err != nil {
			yield(Match{}, err)
			return
		}
		for _, f := range all {
			t, err := Open(f.path)
			if err != nil || len(s.words) == 0 {
				continue
			}
			if !s.in(ctx, t, yield) {
				return
			}
		}
	}
}

type search struct {
	words plaintext.Query
	own   Words
}

// in searches one transcript, and reports whether to search the next. The messages are counted forwards, and those that may
// match decoded backwards.
func (s *search) in(ctx context.Context, t Transcript, yield func(Match, error) bool) bool {
	f, err := openFile(t.Path)
	if err != nil {
		return true // it has just been removed
	}
	defer func() { _ = f.Close() }()
	type place struct {
		at            int64
		length, index int
	}
	var places []place
	next := place{index: -1}
	for line, err := range forward(f) {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			yield(Match{}, err)
			return false
		}
		if next.length = len(line); isMessage(line) {
			next.index++
		}
		if s.words.Maybe(line) {
			places = append(places, next)
		}
		next.at += int64(len(line)) + 1
	}
	for _, p := range slices.Backward(places) {
		line := make([]byte, p.length)
		_, err := f.ReadAt(line, p.at)
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			yield(Match{}, err)
			return false
		}
		if m, ok := s.match(line); ok {
			m.Transcript, m.Index = t, p.index
			if !yield(m, nil) {
				return false
			}
		}
	}
	return true
}

func (s *search) match(line []byte) (Match, bool) {
	e, ok, _ := decode(line)
	if !ok {
		return Match{}, false
	}
	return s.matchEntry(e)
}

// Matches searches messages of t that are already loaded; see Search.
func Matches(t Transcript, entries []Entry, words []string, own Words) (found []Match) {
	s := search{words: plaintext.NewQuery(words), own: own}
	for i, e := range entries {
		if m, ok := s.matchEntry(e); ok {
			m.Transcript, m.Index = t, i
			found = append(found, m)
		}
	}
	return found
}

func (s *search) matchEntry(e Entry) (Match, bool) {
	var seen []string
	for _, b := range e.Message.Content {
		text := b.visible()
		if s.own != nil && b.Type == TextBlock && e.Message.Role == User {
			text = s.own(text)
		}
		seen = append(seen, text)
	}
	line, found := s.words.Excerpt(strings.Join(seen, "\n"))
	return Match{At: e.At, Role: e.Message.Role, Excerpt: line}, found
}
