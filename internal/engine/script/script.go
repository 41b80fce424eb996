// Package script is an engine without a model: it plays a YAML file of turns. The tool calls in it are real ones, and so
// are the sessions it keeps, so everything around a model can be shown and tested without an account. The event that
// opens each turn says that it is a script.
package script

import (
	"errors"
	"os"
	"strconv"
	"time"
)

// Script is the content of a script file.
type Script struct {
	// Turns are played in the order of a session's turns: its first turn plays the first entry, and so on; the last entry
	// serves all later turns. A branch and a session after a compaction count on from where the old session was.
	Turns [][]Step
	// OnNudge is played when the agent is reminded of something that it owes.
	OnNudge []Step
	// Summary is the text that a compaction makes; empty: a line that quotes the instructions.
	Summary string
}

// Step is one thing that the scripted agent does.
type Step struct {
	Do         string         // the step's key: expect, think, text, tool, delay, touch, compact, cost, overloaded, error
	Text       string         // its value
	Input      map[string]any // of a tool
	Wait       time.Duration  // of delay; of overloaded: what the service says to wait
	Cost       float64        // USD
	Times      int            // overloaded: this often, then pass; 0 is always
	identifier int            // unique in the script
}

// maxScript is the largest script file, in bytes.
const maxScript = 1 << 20

// Load reads a script file, strictly; a fault in it is a yamldoc.Faults.
func Load(path string) (Script, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxScript) {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("not a file of at most 1 MiB")}
	}
	if err != nil {
		return Script{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Script{}, err
	}
	return Parse(path, data)
}

// tokens estimates what a text of so many bytes would cost a model: a token for each four, as vendors say of English.
func tokens(bytes int) int { return (bytes + 3) / 4 }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
