package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Errors that stay until somebody changes something, and one that passes.
var (
	ErrToken   = &messenger.Permanent{Text: "the bot's token is not accepted by Discord"}
	ErrClosed  = &messenger.Permanent{Text: "no direct message may be sent"}
	ErrRefused = &messenger.Permanent{Text: "refused by Discord", Refused: true}

	errUnreachable = errors.New("no connection to Discord")
)

// Codes of Discord's errors.
const (
	unknownChannel = 10003
	unknownMessage = 10008
	unknownEmoji   = 10014
	noAccess       = 50001
	acknowledged   = 40060 // an interaction that was answered already
	closedDM       = 50007
	noGuild        = 50278 // no server in common
)

// Error is an answer of Discord that is not a success.
type Error struct {
	Status  int
	Code    int           // Discord's, such as 10008 for an unknown message; 0 where there is none
	Message string        // Discord's
	After   time.Duration // when to try again at the earliest; 0 is not said
	kind    error         // one of the above, or nil
	global  bool          // a limit of all requests
}

// Error returns one line.
func (e *Error) Error() string {
	said := plaintext.Line(e.Message)
	switch {
	case e.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("Discord asks to wait for %s", e.After.Round(100*time.Millisecond))
	case e.kind == nil:
		return fmt.Sprintf("Discord has a problem: status %d: %s", e.Status, said)
	case e.Code == closedDM:
		return ErrClosed.Error() + ": the owner does not accept them: in a server that both share, allow direct messages in its privacy settings"
	case e.Code == noGuild:
		return ErrClosed.Error() + ": the bot and the owner share no server: invite the bot to one of the owner's servers"
	case errors.Is(e.kind, ErrToken):
		return ErrToken.Error()
	case e.Code != 0:
		return fmt.Sprintf("%s: %s (code %d)", ErrRefused, said, e.Code)
	}
	return fmt.Sprintf("%s: %s", ErrRefused, said)
}

// Unwrap returns ErrToken, ErrClosed, ErrRefused or nil.
func (e *Error) Unwrap() error { return e.kind }

// RetryAfter returns when to try again at the earliest.
func (e *Error) RetryAfter() time.Duration { return e.After }

// Unavailable reports whether Discord was not reached, or has answered that it cannot serve a request now.
func Unavailable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.kind == nil || errors.Is(err, errUnreachable)
}

func hasCode(err error, codes ...int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// ignore returns err, nil if it has one of the codes.
func ignore(err error, codes ...int) error {
	if hasCode(err, codes...) {
		return nil
	}
	return err
}

// unreadable returns the error of an answer that is not what Discord promises, such as that of a proxy.
func unreadable(err error) error { return fmt.Errorf("unreadable answer from Discord: %w", err) }

// kindOf returns what an answer means for the next attempt.
func kindOf(status, code int) error {
	switch {
	case status == http.StatusUnauthorized:
		return ErrToken
	case code == closedDM || code == noGuild:
		return ErrClosed
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500:
		return nil
	}
	return ErrRefused
}

// ended returns the error of a context with the reason for the last attempt's failure.
func ended(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	if last == nil || errors.Is(last, cause) {
		return cause
	}
	return fmt.Errorf("%w: %w", cause, last)
}
