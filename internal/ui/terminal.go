package ui

import (
	"cmp"
	"os"
	"slices"

	"golang.org/x/term"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	switch s := stream.(type) {
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	case interface{ IsTerminal() bool }:
		return s.IsTerminal()
	}
	return false
}

// Size returns how many columns and rows a terminal has; 0 for what is not known.
func Size(stream any) (columns, rows int) {
	switch s := stream.(type) {
	case *os.File:
		columns, rows, _ = term.GetSize(int(s.Fd()))
	case interface{ Size() (columns, rows int) }:
		return s.Size()
	}
	return columns, rows
}

// Columns returns how wide a text for a stream may be: 80 columns if the stream is no terminal, or one of unknown size.
func Columns(stream any) int {
	columns, _ := Size(stream)
	return cmp.Or(columns, usualColumns)
}

// Environment returns the value of an environment variable.
type Environment func(name string) (value string, set bool)

// Dumb reports whether the terminal may have no control sequences.
func Dumb(lookup Environment) bool {
	kind, _ := lookup("TERM")
	return kind == "" || kind == "dumb"
}

// Coloured reports whether a stream gets colour. NO_COLOR comes before CLICOLOR_FORCE.
func Coloured(stream any, lookup Environment) bool {
	value := func(name string) string {
		v, _ := lookup(name)
		return v
	}
	switch {
	case value("NO_COLOR") != "":
		return false
	case !slices.Contains([]string{"", "0"}, value("CLICOLOR_FORCE")):
		return true
	}
	return IsTerminal(stream) && !Dumb(lookup) && value("CLICOLOR") != "0"
}

// Colours, as control sequences.
const (
	Red    = "\x1b[31m"
	Yellow = "\x1b[33m"
)

// Paint returns a text in a colour; "" is none.
func Paint(text, colour string) string {
	if colour == "" || text == "" {
		return text
	}
	return colour + text + plainStyle
}
