package transcript

import (
	"context"
	"io"
	"iter"
	"os"
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
// the last message, so that a caller can stop early; at most one line is held in memory. Files that are not transcripts
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
			for m, err := range s.in(ctx, t) {
				if !yield(m, err) || err != nil {
					return
				}
			}
		}
	}
}

type search struct {
	words plaintext.Query
	own   Words
}

func (s *search) in(ctx context.Context, t Transcript) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		f, err := openFile(t.Path)
		if err != nil {
			return // it has just been removed
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			yield(Match{}, err)
			return
		}
		end, behind, total := info.Size(), 0, -1
		for line, lineErr := range upward(f, end, end) {
			if err == nil {
				err = lineErr
			}
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				break
			}
			if s.words.Maybe(line) {
				if m, found := s.match(line); found {
					if total < 0 {
						total, err = s.count(f, end)
					}
					m.Transcript, m.Index = t, total-1-behind
					if err == nil && !yield(m, nil) {
						return
					}
				}
			}
			if isMessage(line) {
				behind++
			}
		}
		if err != nil {
			yield(Match{}, err)
		}
	}
}

// count returns the number of messages in the first end bytes of a file. It is called only for a match.
func (s *search) count(f *os.File, end int64) (n int, err error) {
	for line, err := range forward(io.NewSectionReader(f, 0, end)) {
		if err != nil {
			return n, err
		}
		if isMessage(line) {
			n++
		}
	}
	return n, nil
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
