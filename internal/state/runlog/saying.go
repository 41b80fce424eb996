package runlog

import (
	"strings"
	"time"
)

// Saying is something that a run told its owner, by its events.
type Saying struct {
	Kind   sayingKind
	At     time.Time
	Number int // number of the message in its run, from 1; 0 if it is no message, such as a report
	Text   string
	Line   int    // of events.jsonl, from 1; 0 if the caller of Say does not know it
	Fate   string // result of the delivery; "" if none is recorded
}

type sayingKind string

// The kinds of sayings.
const (
	SaidPing     sayingKind = "ping"
	SaidQuestion sayingKind = "question"
	SaidReport   sayingKind = "update" // a report is a pending update
	// the final text of a turn: without a number it reached the owner only if the run is part of a conversation
	SaidAnswer sayingKind = "answer"
)

// answerKind is the Tool of a Message event that sent the answer of a turn. The event has no text.
const answerKind = "text"

// Say adds what the next event of a run tells the owner to the sayings of the run so far.
func Say(said []Saying, line int, e Event) []Saying {
	s := Saying{At: e.At, Text: e.Text, Line: line}
	switch {
	case e.Type == Ping && e.Tool == AskOwner:
		s.Kind = SaidQuestion
	case e.Type == Ping:
		s.Kind = SaidPing
	case e.Type == Message && e.Tool == answerKind && e.Text == "":
		number := highest(said) + 1
		if last := len(said) - 1; last >= 0 && said[last].Kind == SaidAnswer && said[last].Number == 0 {
			said[last].Number = number
			return said
		}
		s.Kind = SaidAnswer
	case e.Type == Message:
		s.Kind = sayingKind(e.Tool)
	case e.Type == PingRefused:
		for i := len(said) - 1; i >= 0; i-- {
			if k := said[i].Kind; k == SaidPing || k == SaidQuestion {
				said[i].Kind = refusedPing
				break
			}
		}
		return said
	case e.Type == Delivered && len(said) > 0:
		said[len(said)-1].Fate = e.Text
		return said
	case e.Type == Report:
		s.Kind = SaidReport
		return append(said, s)
	case e.Type == Result && strings.TrimSpace(e.Text) != "":
		s.Kind = SaidAnswer
		return append(said, s)
	default:
		return said
	}
	s.Number = highest(said) + 1
	return append(said, s)
}

// refusedPing is the kind of a message that was not sent. It keeps its number, which is not used again.
const refusedPing sayingKind = "refused"

// Sent reports whether the saying left the run.
func (s Saying) Sent() bool { return s.Kind != refusedPing }

// highest returns the number of the latest message, or 0.
func highest(said []Saying) (n int) {
	for _, s := range said {
		n = max(n, s.Number)
	}
	return n
}
