package installer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/state/job"
)

// maxLine is the longest line of a crontab, in bytes: Debian's cron cuts a command at 998 and says nothing.
const maxLine = 900

// Crontab is the block for the user's crontab, markers included: a line for each routine and one for the tick; "" if it would have
// no line. It sets no variable and needs no quotes, since which shell runs a line depends on what stands above the block. The
// error, if any, is ErrUnfit.
func Crontab(h Host, jobs []job.Job) (block string, left []Left, err error) {
	var b strings.Builder
	b.WriteString(beginLine + "\n")
	left, err = h.write(jobs, unquoted, func(j job.Job) (why string) {
		fields, why := fiveFields(j)
		if zone := h.foreignZone(j); zone != "" {
			why = fmt.Sprintf("its zone %s differs from that of cron (%s)", zone, h.Zone)
		}
		line := fields + " " + strings.Join(h.fire(j.ID), " ")
		switch {
		case why != "":
			return why
		case len(line) > maxLine:
			return "its line would be too long for a crontab"
		}
		b.WriteString(line + "\n")
		return ""
	})
	for _, line := range h.Kept {
		b.WriteString(line + "\n")
	}
	tick := "* * * * * " + strings.Join(h.tick(), " ")
	switch {
	case err != nil:
		return "", nil, err
	case len(tick) > maxLine:
		return "", nil, fmt.Errorf("%s: %w: longer than a line of a crontab", h.DataDir, ErrUnfit)
	case !h.Ticked:
		b.WriteString(tick + "\n")
	case b.Len() == len(beginLine+"\n"):
		return "", left, nil
	}
	b.WriteString(endLine + "\n")
	return b.String(), left, nil
}

// The lines around the block. What follows the words may change in later versions: it is not looked at, except for the note.
const (
	beginMark = "# BEGIN ollim"
	endMark   = "# END ollim"
	beginLine = beginMark + " (managed; do not edit between the markers)"
	endLine   = endMark

	// endNoted ends a block before which a newline had to be added, so that Remove can take it away again.
	endNoted = endMark + " (the line before the block had no newline)"
)

// ErrMarkers is a crontab in which it is not clear what is the block: a marker alone, twice, or out of order.
var ErrMarkers = errors.New("the markers of the block are damaged")

// Unknown returns the lines of a block that fire none of these jobs.
func Unknown(block string, jobs []job.Job) (lines []string) {
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		_, id, found := strings.Cut(line, " fire --scheduled -- ")
		if found && !slices.ContainsFunc(jobs, func(j job.Job) bool { return j.ID == id }) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Merge gives a crontab the block of Crontab, as its last lines, instead of the one that it has, if any. Lines above the
// block would otherwise be within reach of those below: variables in a crontab hold from their line on. Every other byte
// stays as it was. Without a block it is Remove. The error, if any, is ErrMarkers.
func Merge(old []byte, block string) ([]byte, error) {
	rest, _, err := Remove(old)
	if err != nil || block == "" {
		return rest, err
	}
	if len(rest) > 0 && rest[len(rest)-1] != '\n' {
		block = "\n" + strings.TrimSuffix(block, endLine+"\n") + endNoted + "\n"
	}
	return append(bytes.Clone(rest), block...), nil
}

// Remove is the crontab without the block, byte for byte as it was before Merge; found reports whether there was one. The
// error, if any, is ErrMarkers.
func Remove(old []byte) (rest []byte, found bool, err error) {
	at, err := find(old)
	if err != nil {
		return nil, false, err
	}
	if !at.found {
		return bytes.Clone(old), false, nil
	}
	before := old[:at.from]
	if at.noted && at.to == len(old) { // else a line that came later would be glued to it
		before = bytes.TrimSuffix(before, []byte("\n"))
	}
	return append(bytes.Clone(before), old[at.to:]...), true, nil
}

// Extract is the block that a crontab has, in the form of Crontab. The error, if any, is ErrMarkers.
func Extract(old []byte) (block string, found bool, err error) {
	at, err := find(old)
	if err != nil || !at.found {
		return "", false, err
	}
	block = string(old[at.from:at.to])
	if at.noted {
		block = strings.TrimSuffix(block, endNoted+"\n") + endLine + "\n"
	}
	return block, true, nil
}

// span is where the block lies, with its markers and the newline after it.
type span struct {
	from, to int
	found    bool
	noted    bool // its last line is endNoted
}

func find(text []byte) (at span, err error) {
	number, offset, open := 0, 0, false
	for line := range bytes.Lines(text) {
		number++
		switch isBegin, isEnd := isMark(line, beginMark), isMark(line, endMark); {
		case isBegin && (open || at.found):
			return span{}, fmt.Errorf("%w: line %d begins a second block", ErrMarkers, number)
		case isBegin:
			at.from, open = offset, true
		case isEnd && !open:
			return span{}, fmt.Errorf("%w: line %d ends a block that has no beginning", ErrMarkers, number)
		case isEnd:
			at.to, at.found, open = offset+len(line), true, false
			at.noted = string(line) == endNoted+"\n"
		}
		offset += len(line)
	}
	if open {
		return span{}, fmt.Errorf("%w: the block has no end", ErrMarkers)
	}
	return at, nil
}

// isMark forgives what editors do to a line, so that a marker which was touched is still seen as one.
func isMark(line []byte, mark string) bool {
	rest, found := bytes.CutPrefix(bytes.TrimSpace(line), []byte(mark))
	return found && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '(')
}
