package cron_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/cron"
)

const fiveFields = "(minute hour day-of-month month day-of-week)"

var parseErrors = []struct{ expr, message string }{
	// The number of fields.
	{"", `column 1: expression is empty, 5 fields are needed ` + fiveFields},
	{" \t ", `column 4: expression is empty, 5 fields are needed ` + fiveFields},
	{"0", `column 2: 1 field, 5 are needed ` + fiveFields},
	{"0 9 * *  ", `column 8: 4 fields, 5 are needed ` + fiveFields},
	{"0 9 * * * 2026", `column 11: "2026": 6 fields, 5 are needed (seconds and years are not supported)`},
	{"0 0 12 1/5 * ? *", `column 14: "?": 7 fields, 5 are needed (seconds and years are not supported)`},
	{"CRON_TZ=UTC 0 9 * * *", `column 1: "CRON_TZ=UTC": a zone is not part of the expression`},
	{"TZ=UTC 0 9 * * *", `column 1: "TZ=UTC": a zone is not part of the expression`},

	// Nicknames.
	{"@reboot", `column 1: "@reboot": a system start is not a time on the calendar`},
	{" @Daily", `column 2: "@Daily": nicknames are lower case (write @daily)`},
	{"@every 5m", `column 1: "@every": intervals are not supported (write a step such as */5 * * * *)`},
	{"@fortnightly", `column 1: "@fortnightly": unknown nickname (write @hourly, @daily, @weekly, @monthly or @yearly)`},
	{"@", `column 1: "@": unknown nickname (write @hourly, @daily, @weekly, @monthly or @yearly)`},
	{"@daily ollim", `column 8: "ollim": nothing may follow @daily`},

	// Numbers.
	{"60 * * * *", `column 1: minute "60": not in 0-59`},
	{"* 24 * * *", `column 3: hour "24": not in 0-23 (midnight is 0)`},
	{"* 5,25 * * *", `column 5: hour "25": not in 0-23`},
	{"* * 0 * *", `column 5: day-of-month "0": not in 1-31`},
	{"* * 1-32 * *", `column 7: day-of-month "32": not in 1-31`},
	{"* * * 13 *", `column 7: month "13": not in 1-12`},
	{"* * * 0-3 *", `column 7: month "0": not in 1-12`},
	{"* * * * 8", `column 9: day-of-week "8": not in 0-7`},
	{"18446744073709551616 * * * *", `column 1: minute "18446744073709551616": not in 0-59`},
	{"1" + strings.Repeat("0", 50) + " * * * *", `column 1: minute "1` + strings.Repeat("0", 39) + `...": not in 0-59`},
	{"-5 * * * *", `column 1: minute "-5": numbers have no sign`},
	{"+5 * * * *", `column 1: minute "+": numbers have no sign`},
	{"5--7 * * * *", `column 1: minute "5--7": numbers have no sign`},

	// Names.
	{"mon * * * *", `column 1: minute "mon": not a number in 0-59`},
	{"* * * mon *", `column 7: month "mon": not a month (1-12 or jan-dec)`},
	{"* * * * jan", `column 9: day-of-week "jan": not a weekday (0-7 or sun-sat)`},
	{"* * * * mo", `column 9: day-of-week "mo": not a weekday (0-7 or sun-sat)`},
	{"* * * * Monday", `column 9: day-of-week "Monday": names have three letters (write mon)`},
	{"* * * jan,sept *", `column 11: month "sept": names have three letters (write sep)`},

	// Ranges.
	{"* 22-2 * * *", `column 3: hour "22-2": range runs backwards (write 22-23,0-2)`},
	{"5-4 * * * *", `column 1: minute "5-4": range runs backwards (write 5-59,0-4)`},
	{"59-0 * * * *", `column 1: minute "59-0": range runs backwards (write 59,0)`},
	{"* 22-2/2 * * *", `column 3: hour "22-2": range runs backwards`},
	{"* * * nov-feb *", `column 7: month "nov-feb": range runs backwards (write nov-dec,jan-feb)`},
	{"* * * 12-FEB *", `column 7: month "12-FEB": range runs backwards (write 12,jan-feb)`},
	{"* * * * fri-mon", `column 9: day-of-week "fri-mon": range runs backwards (write fri-sun,mon)`},
	{"* * * * 1,SAT-Tue", `column 11: day-of-week "SAT-Tue": range runs backwards (write sat-sun,mon-tue)`},
	{"* * * * 5-0", `column 9: day-of-week "5-0": range runs backwards (write 5-7)`},
	{"* * * * 7-0", `column 9: day-of-week "7-0": range runs backwards (write 7)`},
	{"* * * * 7-2", `column 9: day-of-week "7-2": range runs backwards (write 7,1-2)`},
	{"5- * * * *", `column 1: minute "5-": range has no end`},
	{"- * * * *", `column 1: minute "-": numbers have no sign`},
	{"5-10-20 * * * *", `column 1: minute "5-10-20": range has more than two ends`},
	{"1-* * * * *", `column 3: minute "*": not a number in 0-59`},

	// Steps.
	{"1/20 * * * *", `column 1: minute "1/20": a step needs * or a range (write 1-59/20)`},
	{"0/15 * * * *", `column 1: minute "0/15": a step needs * or a range (write */15)`},
	{"59/5 * * * *", `column 1: minute "59/5": a step needs * or a range (write 59)`},
	{"* * * * mon/2", `column 9: day-of-week "mon/2": a step needs * or a range (write mon-sun/2)`},
	{"* * * oct/2 *", `column 7: month "oct/2": a step needs * or a range (write oct-dec/2)`},
	{"*/0 * * * *", `column 3: minute "0": step is not in 1-60`},
	{"*/90 * * * *", `column 3: minute "90": step is not in 1-60`},
	{"* 0-23/25 * * *", `column 8: hour "25": step is not in 1-24`},
	{"* * */32 * *", `column 7: day-of-month "32": step is not in 1-31`},
	{"* * * */13 *", `column 9: month "13": step is not in 1-12`},
	{"* * * * */8", `column 11: day-of-week "8": step is not in 1-7`},
	{"*/ * * * *", `column 2: minute "/": step is missing`},
	{"*/x * * * *", `column 3: minute "x": step is not a number`},
	{"*/-5 * * * *", `column 3: minute "-5": step is not a number`},
	{"*/2/3 * * * *", `column 3: minute "2/3": step is not a number`},
	{"/5 * * * *", `column 1: minute "/5": nothing before the step (write */5)`},

	// Lists.
	{"1,,2 * * * *", `column 2: minute ",": empty list item`},
	{",1 * * * *", `column 1: minute ",": empty list item`},
	{"* 1, * * *", `column 4: hour ",": empty list item`},

	// Other dialects and plain junk.
	{"* * ? * *", `column 5: day-of-month "?": ? is not supported (write *)`},
	{"* * L * *", `column 5: day-of-month "L": last days (L) are not supported`},
	{"* * L-3 * *", `column 5: day-of-month "L": last days (L) are not supported`},
	{"* * * * 5L", `column 9: day-of-week "5L": last days (L) are not supported`},
	{"* * 15W * *", `column 5: day-of-month "15W": nearest weekdays (W) are not supported`},
	{"* * * * 5#3", `column 10: day-of-week "#": nth weekdays (#) are not supported`},
	{"0~30 * * * *", `column 2: minute "~": random times (~) are not supported`},
	{"% * * * *", `column 1: minute "%": % is not supported`},
	{"5x * * * *", `column 2: minute "x": unexpected text after a number`},
	{"5* * * * *", `column 2: minute "*": unexpected text after a number`},
	{"*foo * * * *", `column 2: minute "foo": unexpected text after *`},
	{"** * * * *", `column 2: minute "*": unexpected text after *`},
	{"*-5 * * * *", `column 2: minute "-5": unexpected text after *`},
	{"5.5 * * * *", `column 2: minute ".": unexpected character`},
	{"* * * * *\n", `column 10: day-of-week "\n": unexpected character`},
	{"1–5 * * * *", `column 2: minute "–": not an ASCII character (write -)`},
	{"* ٣ * * *", `column 3: hour "٣": not an ASCII character`},
	{"*\u00a0* * * * *", `column 2: minute "\u00a0": not an ASCII character`},
	{"\xff * * * *", `column 1: minute "\xff": not an ASCII character`},
}

func TestParseErrors(t *testing.T) {
	for _, test := range parseErrors {
		s, err := cron.Parse(test.expr)
		if err == nil {
			t.Errorf("Parse(%q) = %q, want error %s", test.expr, s, test.message)
			continue
		}
		if err.Error() != test.message {
			t.Errorf("Parse(%q):\n got %s\nwant %s", test.expr, err, test.message)
		}
		if s != (cron.Schedule{}) {
			t.Errorf("Parse(%q) returns a schedule beside the error", test.expr)
		}
		checkError(t, test.expr, err)
		checkSuggestion(t, err)
	}
}

// checkError holds for every error that Parse returns.
func checkError(t *testing.T, expr string, err error) {
	t.Helper()
	var e *cron.SyntaxError
	if !errors.As(err, &e) {
		t.Fatalf("Parse(%q): error is a %T", expr, err)
	}
	if e.Expr != expr || e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(expr) {
		t.Errorf("Parse(%q): place %d+%d of %q", expr, e.Offset, e.Length, e.Expr)
	}
	if message := e.Error(); strings.ContainsAny(message, "\r\n") || strings.HasSuffix(message, ".") {
		t.Errorf("Parse(%q): message is not one line without a full stop: %q", expr, message)
	}
}

var suggestion = regexp.MustCompile(`\(write (\S+)\)$`)

// checkSuggestion follows the advice of an error and expects it to be good.
func checkSuggestion(t *testing.T, err error) {
	t.Helper()
	var e *cron.SyntaxError
	if !errors.As(err, &e) {
		return
	}
	found := suggestion.FindStringSubmatch(e.Reason)
	if found == nil {
		return
	}
	better := e.Expr[:e.Offset] + found[1] + e.Expr[e.Offset+e.Length:]
	if _, err := cron.Parse(better); err != nil {
		t.Errorf("%v\n leads to %v", e, err)
	}
}

func TestSyntaxErrorOutsideItsExpression(t *testing.T) {
	e := &cron.SyntaxError{Expr: "x", Offset: 7, Length: 3, Reason: "made by hand"}
	if got, want := e.Error(), "column 8: made by hand"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWildAndNever(t *testing.T) {
	tests := []struct {
		expr        string
		wild, never bool
	}{
		{"30 2 * * *", false, false},
		{"0,*/30 0-23 * * *", false, false},
		{"*/30 2 * * *", true, false},
		{"30 */2 * * *", true, false},
		{"* * 31 2 *", true, true},
		{"0 0 31 2,4,6,9,11 *", false, true},
		{"0 0 30,31 2 */2", false, true},
		{"0 0 31 2-4 *", false, false},
		{"0 0 29 2 *", false, false},
		{"0 0 29 2 */7", false, false},
		{"0 0 31 2 1", false, false}, // every Monday in February
	}
	for _, test := range tests {
		s := parse(t, test.expr)
		if s.Wild() != test.wild || s.Never() != test.never {
			t.Errorf("%q: wild %v, never %v; want %v, %v", test.expr, s.Wild(), s.Never(), test.wild, test.never)
		}
	}
}

func parse(t testing.TB, expr string) cron.Schedule {
	t.Helper()
	s, err := cron.Parse(expr)
	if err != nil {
		t.Fatalf("Parse(%q): %v", expr, err)
	}
	return s
}
