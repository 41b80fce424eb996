package timeparse

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// What is understood and refused all the same.
var (
	ErrPast = errors.New("in the past")
	ErrFar  = errors.New("more than ten years ahead")
)

// Unreadable is a text that is no time or delay, or could be two.
type Unreadable struct {
	Text   string
	Reason string // what is wrong with it; may be empty
	Forms  string // what can be written, in one line
}

// Error is one line.
func (e *Unreadable) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "not understood"
	}
	return fmt.Sprintf("%s: %s (write %s)", quote(e.Text), reason, e.Forms)
}

const (
	timeForms   = "17:30, 9am, tomorrow 9am, monday 9:00, 7 march 9am, 2026-03-07 or 2026-03-07T09:00"
	delayForms  = "45m, 2h, 1h30m, 3d, 1w or 45 minutes"
	eitherForms = "45m, 1h30m, 3d, 17:30, tomorrow 9am, monday 9:00, 7 march 9am or 2026-03-07T09:00"
)

// explain completes an Unreadable; other errors stay as they are.
func explain(err error, text, forms string) error {
	var e *Unreadable
	if errors.As(err, &e) {
		return &Unreadable{text, e.Reason, forms}
	}
	return err
}

// cannot names the words that made no sense.
func cannot(w string) *Unreadable {
	return &Unreadable{Reason: "cannot read " + quote(w)}
}

func past(text string, at time.Time) error {
	return fmt.Errorf("%s is %s, %w", quote(text), at.Format("2006-01-02 15:04:05 MST"), ErrPast)
}

func far(text string) error { return fmt.Errorf("%s is %w", quote(text), ErrFar) }

// quote shows a text in a message: without control characters, and not all of a long one.
func quote(text string) string {
	return strconv.Quote(plaintext.Short(text, 40))
}
