package ledger

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Lines yields the facts of some kinds since an instant, the oldest first; no kind stands for all. It reads the files of that time only.
func (l *Ledger) Lines(since time.Time, kinds ...string) iter.Seq2[Line, error] {
	return l.lines(slices.Values[[]string], slices.Values[[]Line], since, kinds)
}

// Newest is Lines with the newest fact first. It reads a day only when the caller gets there.
func (l *Ledger) Newest(since time.Time, kinds ...string) iter.Seq2[Line, error] {
	return l.lines(backward[string], backward[Line], since, kinds)
}

func backward[T any](list []T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, v := range slices.Backward(list) {
			if !yield(v) {
				return
			}
		}
	}
}

// lines yields the facts of the files, both in the order that is given.
func (l *Ledger) lines(
	ofDays func([]string) iter.Seq[string], ofLines func([]Line) iter.Seq[Line], since time.Time, kinds []string,
) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		imported, err := l.begin()
		var days []string
		if err == nil {
			days, err = l.since(since)
		}
		if imported != nil { // the import cannot be written
			days = append(days, "")
		}
		for day := range ofDays(days) {
			var lines []Line
			if day == "" {
				lines = slices.DeleteFunc(imported.facts, func(line Line) bool { return !isChosen(line, since, kinds) })
			} else if lines, err = l.day(day, since, kinds); err != nil {
				break
			}
			for line := range ofLines(lines) {
				if !yield(line, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Line{}, err)
		}
	}
}

// since lists the days whose files can hold facts since an instant: no fact is later than the day of its file.
func (l *Ledger) since(since time.Time) ([]string, error) {
	days, err := l.days()
	return slices.DeleteFunc(days, func(day string) bool { return day < since.UTC().Format(time.DateOnly) }), err
}

// day returns the facts of one file.
func (l *Ledger) day(day string, since time.Time, kinds []string) (lines []Line, err error) {
	v := &view{l: l, at: position{Day: day, Hash: first}}
	err = v.readDay(-1, func(line Line) {
		if isChosen(line, since, kinds) {
			lines = append(lines, line)
		}
	})
	return lines, err
}

func isChosen(l Line, since time.Time, kinds []string) bool {
	return !l.At.Before(since) && (len(kinds) == 0 || slices.Contains(kinds, l.Kind))
}

// Fault is a place where the ledger is not as it was written.
type Fault struct {
	File string // absolute
	Line int    // from 1; 0: the file as a whole
	Text string
}

// Verify compares each line with its hash, and the end of the files with that of the last change that was synced. It returns what was
// changed or removed, what earlier changes have found missing, and the number of facts. An incomplete change at the end of a file is not a
// fault, because it was never acknowledged.
func (l *Ledger) Verify() (faults []Fault, facts int, err error) {
	days, err := l.days()
	if err != nil {
		return nil, 0, err
	}
	base, err := l.loadBase()
	if err != nil {
		return nil, 0, err
	}
	before := base.At.Hash
	days = slices.DeleteFunc(days, func(day string) bool { return day <= base.At.Day })
	for _, day := range days {
		text, err := store.Read(l.path(day))
		if err != nil {
			return nil, facts, err
		}
		for n, line := range slices.Collect(bytes.Lines(acknowledged(text))) {
			parsed, why := check(line, before)
			if why != "" {
				faults = append(faults, Fault{l.path(day), n + 1, why})
			}
			if parsed.hash != "" {
				before = parsed.hash
				facts++
			}
			var gap lost
			if parsed.Kind == gap.Fact() && why == "" && parsed.Into(&gap) == nil {
				faults = append(faults, Fault{l.path(day), n + 1, gap.String()})
			}
		}
	}
	end, err := l.verifyEnd(facts == 0 && base.At.Day == "")
	return append(faults, end...), facts, err
}

// verifyEnd returns a fault if the last facts are missing. No line shows that.
func (l *Ledger) verifyEnd(empty bool) ([]Fault, error) {
	at, _, err := store.PeekJSON[position](l.headPath())
	if err != nil {
		return nil, err
	}
	gap, err := l.lacks(at, empty)
	switch {
	case gap == nil || err != nil:
		return nil, err
	case gap.Day == "":
		return []Fault{{File: l.headPath(), Text: "missing or not valid: it cannot be told whether the last facts were removed"}}, nil
	}
	return []Fault{{File: l.path(gap.Day), Text: fmt.Sprintf("there were facts up to byte %d", gap.Offset)}}, nil
}

// acknowledged returns the text of a file without the incomplete change at its end.
func acknowledged(text []byte) []byte {
	end := bytes.LastIndexByte(text, '\n') + 1
	for end > 0 {
		begin := bytes.LastIndexByte(text[:end-1], '\n') + 1
		if l, err := parse(text[begin : end-1]); err != nil || l.more == 0 {
			break
		}
		end = begin
	}
	return text[:end]
}

// check returns the line, and why it is not the line that was written after hash before; "" if it is.
func check(text []byte, before string) (l Line, why string) {
	text = bytes.TrimSuffix(text, []byte{'\n'})
	l, err := parse(text)
	switch {
	case err != nil:
		return l, err.Error()
	case chain(before, text[:len(text)-tailLen]) == l.hash:
		return l, ""
	}
	return l, "this line or what stood before it was changed or removed"
}

// Size returns the length of the files in bytes, for people.
func (l *Ledger) Size() (size int64) {
	days, _ := l.days()
	for _, day := range days {
		if info, err := os.Stat(l.path(day)); err == nil {
			size += info.Size()
		}
	}
	return size
}
