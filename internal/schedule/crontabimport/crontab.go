package crontabimport

import (
	"maps"
	"regexp"
	"strings"
)

// entry is a line with a schedule.
type entry struct {
	line    int
	cron    string // as written, with single spaces
	command string // the text that cron passes to the shell
	input   string // the input that cron passes to the command
	vars    map[string]string
}

func entries(crontab string) (list []entry) {
	variable := regexp.MustCompile(`^\s*("[^"]+"|'[^']+'|[A-Za-z_][^\s=]*)\s*=\s*(.*?)\s*$`)
	scheduled := regexp.MustCompile(`^(@[^ \t]*|[^ \t]+(?:[ \t]+[^ \t]+){4})[ \t]+(.*)$`)
	blanks := regexp.MustCompile(`[ \t]+`)
	vars := map[string]string{}
	number := 0
	for line := range strings.Lines(crontab) {
		number++
		line = strings.Trim(line, " \t\r\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if v := variable.FindStringSubmatch(line); v != nil {
			vars[unquoted(v[1])] = unquoted(v[2])
		} else if s := scheduled.FindStringSubmatch(line); s != nil {
			e := entry{line: number, cron: blanks.ReplaceAllString(s[1], " "), vars: maps.Clone(vars)}
			e.command, e.input = atPercent(s[2])
			list = append(list, e)
		}
	}
	return list
}

// unquoted removes a pair of quotes, as cron does.
func unquoted(s string) string {
	if n := len(s); n > 1 && (s[0] == '"' || s[0] == '\'') && s[0] == s[n-1] {
		return s[1 : n-1]
	}
	return s
}

// atPercent splits a line into the command and its input: at the first %, with every further one a newline. A backslash
// quotes a %; any other backslash is left to the shell.
func atPercent(text string) (command, input string) {
	command = regexp.MustCompile(`^(?:[^%\\]|\\.|\\$)*`).FindString(text)
	input = strings.TrimPrefix(text[len(command):], "%")
	return strings.ReplaceAll(command, `\%`, "%"), strings.NewReplacer(`\%`, "%", "%", "\n").Replace(input)
}
