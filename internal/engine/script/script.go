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
	// Turns are the turns of a session: its first turn plays the first entry and so on, and the last entry serves all later turns. A
	// branch or a compaction continues the count of the old session.
	Turns [][]step
	// OnNudge is played when the prompt is a nudge.
	OnNudge []step
	// Summary is the summary of a compaction. If it is "", the summary is a line that quotes the instructions.
	Summary string
}

// step is one action of the scripted agent.
type step struct {
	Do         string         // the step's key: expect, think, text, tool, delay, touch, compact, cost, overloaded, error
	Text       string         // value of that key
	Input      map[string]any // input of a tool
	Wait       time.Duration  // duration of delay; for overloaded, the wait that the service asks for
	Cost       float64        // USD
	Times      int            // how often overloaded refuses; 0 means always
	identifier int            // number that is unique in the script
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

// tokens estimates the tokens of a text with so many bytes: one for each four, as in English.
func tokens(bytes int) int { return (bytes + 3) / 4 }
