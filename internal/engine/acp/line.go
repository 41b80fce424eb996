package acp

import (
	"time"

	"github.com/ollim/ollim/internal/state/transcript"
)

// line is a line of talk.jsonl.
type line struct {
	transcript.Entry

	At time.Time `json:"timestamp"`
}
