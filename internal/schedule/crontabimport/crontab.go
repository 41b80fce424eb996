package crontabimport

import (
	"maps"
	"regexp"
	"strings"
)

// entry is a line with a schedule.
type entry struct {
	line    int
	cron    string // as it is written, with single spaces
	command string // what cron hands to the shell
	input   string // what it hands to the command
	vars    map[string]string
}

// entries are the lines with a schedule. What is none, cron would refuse.
func entries(crontab string) (list []entry) {
	variable := regexp.MustCompile(`^\s*("[^"]+"|'[^']+'|[A-Za-z_][^\s=]*)\s*=\s*(.*?)\s*$`)
	vars := map[string]string{}
	number := 0
	for line := range strings.Lines(crontab) {
		number++
		line = strings.Trim(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if v := variable.FindStringSubmatch(line); v != nil {
			vars[unquoted(v[1])] = unquoted(v[2])
			continue
		}
		schedule, rest, ok := fields(line)
		if !ok {
			continue
		}
		e := entry{line: number, cron: schedule, vars: maps.Clone(vars)}
		e.command, e.input = atPercent(rest)
		list = append(list, e)
	}
	return list
}

// unquoted takes off a pair of quotes, as cron does.
func unquoted(s string) string {
	if n := len(s); n > 1 && (s[0] == '"' || s[0] == '\'') && s[0] == s[n-1] {
		return s[1 : n-1]
	}
	return s
}

// fields splits a line into its schedule, five fields or a nickname, and the command.
func fields(line string) (schedule, command string, ok bool) {
	const blanks = " \t"
	count := 5
	if line[0] == '@' {
		count = 1
	}
	var words []string
	for range count {
		end := strings.IndexAny(line, blanks)
		if end < 0 {
			return "", "", false
		}
		words = append(words, line[:end])
		line = strings.TrimLeft(line[end:], blanks)
	}
	return strings.Join(words, " "), line, true
}

// atPercent splits what cron runs from what it writes to that: at the first %, with every further one a newline. A backslash
// keeps a % what it is; any other backslash is the shell's.
func atPercent(text string) (command, input string) {
	var parts [2]strings.Builder
	part, escaped := 0, false
	for _, c := range []byte(text) {
		switch {
		case escaped && c == '%':
			parts[part].WriteByte(c)
			escaped = false
			continue
		case escaped:
			parts[part].WriteByte('\\')
			escaped = false
			if part == 0 && c == '\\' { // of two, the second quotes nothing
				parts[part].WriteByte(c)
				continue
			}
		}
		switch {
		case c == '\\':
			escaped = true
		case c == '%' && part == 0:
			part = 1
		case c == '%':
			parts[part].WriteByte('\n')
		default:
			parts[part].WriteByte(c)
		}
	}
	if escaped {
		parts[part].WriteByte('\\')
	}
	return parts[0].String(), parts[1].String()
}
