package crontabimport

import (
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/policy"
)

// pipeline is from the first to the last command of the pipe that claude is in.
func pipeline(commands []policy.Command, at int) (first, last int) {
	first, last = at, at
	for commands[at].In && first > 0 && commands[first-1].Out {
		first--
	}
	for commands[at].Out && last+1 < len(commands) && commands[last+1].In {
		last++
	}
	return first, last
}

// standardInput reads what claude is given beside its arguments.
func (r *reading) standardInput(commands []policy.Command, at int) {
	first, _ := pipeline(commands, at)
	if first < at {
		text, literal, ok := echoed(commands[first])
		if !ok || first+1 < at {
			r.source = " but comes from " + shown(commands[first])
			r.lose("%s pipes into claude: what a gate writes joins the prompt", shown(commands[first]))
			return
		}
		r.input, r.filled = text, r.filled || !literal
		return
	}
	r.input = strings.TrimSpace(r.entry.input)
	for _, f := range commands[at].Files {
		switch strings.TrimPrefix(f.Op, "0") {
		case "<<<":
			r.input, r.filled = f.To.Text, r.filled || !f.To.Literal
		case "<":
			r.input = ""
			if f.To.Text != "/dev/null" {
				r.source = " but in " + f.To.Text
				r.lose("claude reads %s: put its text into the routine", f.To.Text)
			}
		}
	}
}

// echoed is what echo or a plain printf writes.
func echoed(c policy.Command) (text string, literal, ok bool) {
	if len(c.Words) < 2 {
		return "", true, false
	}
	words, literal := c.Words[1:], true
	var texts []string
	for _, w := range words {
		texts = append(texts, w.Text)
		literal = literal && w.Literal
	}
	switch c.Words[0].Text {
	case "echo":
		for len(texts) > 0 && slices.Contains([]string{"-n", "-e", "-ne", "-en"}, texts[0]) {
			texts = texts[1:]
		}
		return strings.Join(texts, " "), literal, true
	case "printf":
		if format := strings.ReplaceAll(texts[0], `\n`, "\n"); len(texts) == 1 && !strings.Contains(format, "%") {
			return strings.TrimSpace(format), literal, true
		}
		if len(texts) == 2 && strings.TrimSuffix(texts[0], `\n`) == "%s" {
			return texts[1], literal, true
		}
	}
	return "", literal, false
}

// standardOutput says what became of the answer.
func (r *reading) standardOutput(commands []policy.Command, at int) {
	const instead = "a routine reports by a ping or an update"
	_, last := pipeline(commands, at)
	quiet := false
	for _, f := range commands[at].Files {
		if !slices.Contains([]string{">", ">>", ">|", "&>", "&>>"}, strings.TrimPrefix(f.Op, "1")) {
			continue
		}
		if quiet = true; f.To.Text != "/dev/null" {
			r.lose("its answer went to %s: %s", f.To.Text, instead)
		}
	}
	if last > at {
		r.lose("its answer went to %s: %s, or pipe what ollim fire --print writes", shown(commands[at+1]), instead)
	}
	if mail := r.entry.vars["MAILTO"]; mail != "" && !quiet && last == at {
		r.lose("cron mailed its answer to %s: %s", mail, instead)
	}
}

// shown is a command in a message.
func shown(c policy.Command) string {
	const most = 60 // characters
	var texts []string
	for _, w := range c.Words {
		texts = append(texts, w.Text)
	}
	return plaintext.Short(strings.Join(texts, " "), most)
}
