package crontabimport

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
)

// opened puts the commands of sh -c TEXT in its place.
func opened(commands []policy.Command, depth int) (all []policy.Command) {
	for _, c := range commands {
		inner, err := policy.Commands(shellText(unwrap(c.Words, nil)))
		if err != nil || len(inner) == 0 || depth == 0 {
			all = append(all, c)
			continue
		}
		for _, i := range inner {
			i.In, i.Out = i.In || c.In, i.Out || c.Out
			i.Files, i.Sets = append(i.Files, c.Files...), append(i.Sets, c.Sets...)
			all = append(all, opened([]policy.Command{i}, depth-1)...)
		}
	}
	return all
}

// shellText is the text that a shell is told to run; "" when these words tell none.
func shellText(words []policy.Word) string {
	if len(words) < 3 || !slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh"}, path.Base(words[0].Text)) {
		return ""
	}
	for i, w := range words[1 : len(words)-1] {
		switch {
		case !strings.HasPrefix(w.Text, "-"):
			return ""
		case !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "c"):
			return words[i+2].Text
		}
	}
	return ""
}

func isClaude(words []policy.Word) bool {
	if len(words) == 0 {
		return false
	}
	name := words[0].Text
	return path.Base(name) == "claude" || strings.HasPrefix(name, "@anthropic-ai/claude-code")
}

// wrapper is what comes between the name of a program that runs another and that: options with a value, then operands.
type wrapper struct {
	valued   []string
	operands int
}

func wrapperOf(name string) (w wrapper, ok bool) {
	valued := func(options ...string) (wrapper, bool) { return wrapper{options, 0}, true }
	switch path.Base(name) {
	case "nohup", "setsid", "chronic", "command", "unbuffer", "npx", "bunx", "caffeinate":
		return valued()
	case "time":
		return valued("-o", "-f")
	case "exec":
		return valued("-a")
	case "nice":
		return valued("-n", "--adjustment")
	case "ionice":
		return valued("-c", "-n", "--class", "--classdata")
	case "env":
		return valued("-u", "--unset", "-C", "--chdir")
	case "stdbuf":
		return valued("-i", "-o", "-e")
	case "timeout":
		return wrapper{[]string{"-k", "--kill-after", "-s", "--signal"}, 1}, true
	case "flock":
		return wrapper{[]string{"-w", "--timeout", "-E", "--conflict-exit-code"}, 1}, true
	}
	return w, false
}

// unwrap takes away the programs that run what follows, and notes in r what a routine has of them.
func unwrap(words []policy.Word, r *reading) []policy.Word {
	for len(words) > 0 {
		name := path.Base(words[0].Text)
		w, ok := wrapperOf(name)
		if !ok {
			break
		}
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
			skip := 1
			if slices.Contains(w.valued, words[0].Text) {
				skip = 2
			}
			words = words[min(skip, len(words)):]
		}
		for name == "env" && len(words) > 0 && strings.Contains(words[0].Text, "=") {
			variable, _, _ := strings.Cut(words[0].Text, "=")
			if words = words[1:]; r != nil {
				r.sets = append(r.sets, variable)
			}
		}
		if w.operands > len(words) {
			return nil
		}
		if name == "timeout" && r != nil {
			r.limit(words[0].Text)
		}
		words = words[w.operands:]
	}
	return words
}

// limit is timeout(1)'s: seconds unless it says otherwise, 0 is none.
func (r *reading) limit(text string) {
	if text != "" && strings.Trim(text, "0123456789.") == "" {
		text += "s"
	}
	switch d, err := job.ParseDuration(text); {
	case err != nil:
		r.lose("timeout %s is not understood", text)
	case d >= time.Second:
		r.job.Timeout = d.Truncate(time.Second)
	}
}
