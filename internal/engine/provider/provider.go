// Package provider calls model services: one request, one streamed answer. A service speaks the Anthropic Messages API or
// OpenAI's chat completions API, as many other services and local servers do; this package hides the difference. It keeps no
// state, runs no tools and repeats nothing: the caller knows which requests may be repeated.
package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Provider is one service.
type Provider interface {
	// Ask sends a conversation and returns the answer when it is complete. While it comes in, delta (which may be nil) is
	// given the pieces of its text in order; an error of delta ends the stream with that error. With an error the answer holds what had
	// arrived: whole blocks only, and text as far as it came.
	//
	// The error wraps engine.ErrUnavailable (ErrUnreached, engine.ErrKey, engine.ErrSetup if there is no such model), is an
	// *engine.Overloaded (429, 529, other 5xx), ErrCut, ErrTooLong, ErrThinking, ErrRejected or ErrGarbled.
	Ask(ctx context.Context, r Request, delta func(text string) error) (Answer, error)

	// Search asks the service's own search tool, see [Options.HasSearch]. The errors are those of Ask. With an error the result holds
	// what is known to have been used.
	Search(ctx context.Context, q SearchRequest) (Found, error)
}

// Errors that a caller acts on.
var (
	// ErrCut: the answer broke off before its end. It may be asked for again.
	ErrCut = errors.New("the answer was cut off")
	// ErrUnreached: there is no way to the service, maybe for a moment only.
	ErrUnreached = fmt.Errorf("%w: no connection", engine.ErrUnavailable)
	// ErrGarbled: what came is not what such a service sends.
	ErrGarbled = errors.New("the service gave an unexpected answer")
	// ErrTooLong: the conversation does not fit into the model's window, or the answer to it does not.
	ErrTooLong = errors.New("the conversation is too long for the model")
	// ErrThinking: the thoughts in the conversation, or how much to think, are not what the model takes. It may be asked again
	// without the one and the other.
	ErrThinking = errors.New("the service rejected the thinking of earlier turns")
	// ErrRejected: the service does not take the request, for the reason that it gives.
	ErrRejected = errors.New("refused")
)

// Request is one question.
type Request struct {
	Model     string // as the service knows it
	System    string
	Messages  []transcript.Message // roles alternate, the last is the user's
	Tools     []engine.Tool
	MaxTokens int          // of the answer; a budget for thoughts may raise it
	Most      int          // to which MaxTokens may be raised; 0 is not known
	Cache     engine.Cache // for how long the service is to keep the conversation, where it has a choice
	Thinking  string       // "" is the model's default; off (or as little as it takes), adaptive, or a number of tokens

	Sent engine.Keep // keeps the request and the answer; may be nil
}

// Answer is what the model said.
type Answer struct {
	Message transcript.Message // role assistant; its tool uses have ids, and inputs that are objects (see Unread)
	Stop    string             // why the model stopped, as follows
	Usage   runlog.Usage       // In does not hold what was read from or written to the cache
}

// Reasons to stop.
const (
	EndTurn   = "end_turn"
	toolUse   = "tool_use"
	MaxTokens = "max_tokens"
	Refusal   = "refusal"
	Pause     = "pause_turn" // ask again with the answer as it is, to go on

	fullWindow = "model_context_window_exceeded" // becomes ErrTooLong
)
