package timeparse

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Reasons to reject a text that was understood.
var (
	errPast = errors.New("in the past")
	errFar  = errors.New("more than ten years ahead")
)

// unreadable is the error of a text that is not a time or delay, or has two meanings.
type unreadable struct {
	text   string
	reason string
	forms  string // examples of what can be written, on one line
}

func (e *unreadable) Error() string {
	return fmt.Sprintf("%s: %s (write %s)", quote(e.text), e.reason, e.forms)
}

const (
	timeForms   = "17:30, 9am, tomorrow 9am, monday 9:00, 7 march 9am, 2026-03-07 or 2026-03-07T09:00"
	delayForms  = "45m, 2h, 1h30m, 3d, 1w or 45 minutes"
	eitherForms = "45m, 1h30m, 3d, 17:30, tomorrow 9am, monday 9:00, 7 march 9am or 2026-03-07T09:00"
)

// wrong returns an error that explain completes.
func wrong(reason string) error { return &unreadable{reason: reason} }

// cannot returns the error of words that make no sense.
func cannot(words string) error { return wrong("cannot read " + quote(words)) }

// explain adds the text to an error that wrong returned. Other errors are returned unchanged.
func explain(err error, text, forms string) error {
	if e := (*unreadable)(nil); errors.As(err, &e) {
		return &unreadable{text, e.reason, forms}
	}
	return err
}

func far(text string) error { return fmt.Errorf("%s is %w", quote(text), errFar) }

// quote returns a text for a message: without control characters, and shortened if it is long.
func quote(text string) string { return strconv.Quote(plaintext.Short(text, 40)) }
