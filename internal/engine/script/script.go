// Package script is an engine without a model: it plays the turns in a YAML file. Its tool calls and its sessions are real, so that
// everything around a model can be shown and tested without an account. The event that opens a turn says that it is a script, and
// how many messages the turn was given.
package script

import (
	"errors"
	"os"
	"time"
)

// script is the content of a script file.
type script struct {
	// Turns are played in the order of a session's turns: its first turn plays the first entry and so on; the last entry serves all
	// later turns. A branch and a compaction continue the count of the old session.
	Turns [][]step
	// OnNudge is played when the prompt is a nudge.
	OnNudge []step
	// Summary is the summary of a compaction; "" stands for a line that quotes the instructions.
	Summary string
}

// step is one action of the scripted agent.
type step struct {
	Do         string         // the step's key: expect, think, text, tool, delay, touch, compact, cost, overloaded, error
	Text       string         // its value
	Input      map[string]any // of a tool
	Wait       time.Duration  // of delay; of overloaded, the wait that the service asks for
	Cost       float64        // USD
	Times      int            // of overloaded: how often it refuses; 0 means always
	identifier int            // unique in the script
}

// maxScript is the largest script file, in bytes.
const maxScript = 1 << 20

// Load reads a script file. The error of an invalid script is a yamldoc.Faults.
func Load(path string) (script, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxScript) {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("not a file of at most 1 MiB")}
	}
	if err != nil {
		return script{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return script{}, err
	}
	return parse(path, data)
}

// tokens estimates the tokens of a text of so many bytes: one for each four, as in English.
func tokens(bytes int) int { return (bytes + 3) / 4 }
