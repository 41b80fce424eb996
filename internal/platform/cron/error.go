package cron

import (
	"strconv"
	"strings"
)

// SyntaxError says what is wrong with an expression, and where.
type SyntaxError struct {
	Expr   string // the expression as it was given
	Field  string // minute, hour, day-of-month, month, day-of-week; or empty
	Offset int    // in bytes from the start of Expr
	Length int    // in bytes; 0 if something is missing at Offset
	Reason string // what is wrong and, in parentheses, what to write instead
}

// Error is one line such as
//

//	column 9: day-of-week "fri-mon": range runs backwards (write fri-sun,mon)
//

// The column counts bytes from 1.
func (e *SyntaxError) Error() string {
	const longest = 40 // bytes of the expression that a message repeats
	var b strings.Builder
	b.WriteString("column " + strconv.Itoa(e.Offset+1) + ": ")
	place := e.Expr[min(e.Offset, len(e.Expr)):min(e.Offset+e.Length, len(e.Expr))]
	if len(place) > longest {
		place = place[:longest] + "..."
	}
	switch {
	case e.Field != "":
		b.WriteString(e.Field + " " + strconv.Quote(place) + ": ")
	case place != "":
		b.WriteString(strconv.Quote(place) + ": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}
