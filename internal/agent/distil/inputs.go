package distil

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Input is a use of a tool in recorded runs.
type Input struct {
	Tool string `json:"tool"`
	What string `json:"what"`          // the command, the path or the URL; of another tool its input
	Runs int    `json:"runs"`          // how many runs have it
	Why  string `json:"why,omitempty"` // why it is no input of a gate; "": it is one

	key    string
	failed int // runs in which it failed
}

// Case is a recorded run.
type Case struct {
	Run     string
	Did     []string // what it told or changed; nil: nothing
	Inputs  []string // the results of the inputs, in their order
	Failed  bool     // an input failed, so the gate leaves the run to the model
	Cost    float64  // USD
	Started time.Time

	calls []backtest.RecordedCall
	root  string
}

// Loud reports whether the run must not be skipped.
func (c Case) Loud() bool { return len(c.Did) > 0 }

// Records is the recorded runs of a job.
type Records struct {
	Cases  []Case  // newest first
	Inputs []Input // of a gate
	Others []Input // uses of tools that are no inputs, those of most runs first
}

// Of returns the cases of some runs.
func (r Records) Of(runs []string) (list []Case) {
	for _, c := range r.Cases {
		if slices.Contains(runs, c.Run) {
			list = append(list, c)
		}
	}
	return list
}

// Read reads recorded runs of a job, the newest first, and finds the inputs of a gate.
func Read(runs runlog.Book, home paths.Dir, ids []string) (r Records, err error) {
	for _, id := range ids {
		h, err := backtest.ReadHistory(runs, home, id)
		if err != nil {
			return r, err
		}
		r.Cases = append(r.Cases, Case{Run: id, Did: did(h), Cost: h.Record.Cost, Started: h.Record.Started, calls: h.Calls, root: h.Root})
	}
	r.sort()
	for i := range r.Cases {
		r.Cases[i].fill(r.Inputs)
	}
	return r, nil
}

// did returns what a run told or changed.
func did(h backtest.History) []string {
	kinds := backtest.Kinds(h.Decisions)
	if h.Record.Pings > 0 && !slices.Contains(kinds, backtest.Pinged) && !slices.Contains(kinds, backtest.Asked) { // by a command of ollim
		kinds = append(kinds, backtest.Pinged)
	}
	if h.Record.Reports > 0 && !slices.Contains(kinds, backtest.Reported) {
		kinds = append(kinds, backtest.Reported)
	}
	return kinds
}

// sort tells the inputs from the other uses of tools. A run with a use that may have changed something, and that is not in every run, did
// something.
func (r *Records) sort() {
	found := map[string]*Input{}
	var keys []string
	for _, c := range r.Cases {
		once := map[string]bool{}
		for _, use := range c.calls {
			key := backtest.KeyOf(c.root, use.Tool, use.Input)
			if found[key] == nil {
				found[key] = &Input{Tool: use.Tool, What: what(use), Why: unfetched(use), key: key}
				keys = append(keys, key)
			}
			if !once[key] {
				once[key] = true
				found[key].Runs++
				if use.Failed {
					found[key].failed++
				}
				if _, why := result(use); why != "" && found[key].Why == "" && !use.Failed {
					found[key].Why = why
				}
			}
		}
	}
	for _, key := range keys {
		in := found[key]
		if in.Why == "" && in.Runs < len(r.Cases) {
			in.Why = fmt.Sprintf("it is in %d of %s", in.Runs, plaintext.Count(len(r.Cases), "run"))
		}
		if in.Why == "" && in.failed == in.Runs {
			in.Why = "it failed in each run"
		}
		if in.Why == "" {
			r.Inputs = append(r.Inputs, *in)
		} else {
			r.Others = append(r.Others, *in)
		}
	}
	slices.SortStableFunc(r.Others, func(a, b Input) int { return b.Runs - a.Runs })
	for i := range r.Cases {
		c := &r.Cases[i]
		for _, use := range c.calls {
			if in := found[backtest.KeyOf(c.root, use.Tool, use.Input)]; in.Why != "" && !reads(use.Tool) && !backtest.HasEffect(use.Tool) {
				c.Did = append(c.Did, "used "+use.Tool)
			}
		}
		slices.Sort(c.Did)
		c.Did = slices.Compact(c.Did)
	}
}

// reads reports whether a tool of an engine only reads.
func reads(tool string) bool {
	return slices.Contains([]string{"Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "TodoWrite", "ToolSearch"}, tool)
}

// fill sets the results of the inputs.
func (c *Case) fill(inputs []Input) {
	for _, in := range inputs {
		i := slices.IndexFunc(c.calls, func(use backtest.RecordedCall) bool { return backtest.KeyOf(c.root, use.Tool, use.Input) == in.key })
		text, why := result(c.calls[i])
		c.Failed = c.Failed || c.calls[i].Failed || why != ""
		c.Inputs = append(c.Inputs, text)
	}
	c.calls = nil
}

// asked is the input of the tools that a gate can repeat.
type asked struct {
	Command string          `json:"command"`
	File    string          `json:"file_path"`
	URL     string          `json:"url"`
	Offset  json.RawMessage `json:"offset"`
	Limit   json.RawMessage `json:"limit"`
	Pages   json.RawMessage `json:"pages"`
}

func askedOf(use backtest.RecordedCall) (a asked) {
	_ = json.Unmarshal(use.Input, &a) // another input is no input of a gate
	return a
}

// what names a use of a tool for people and for the gate.
func what(use backtest.RecordedCall) string {
	a := askedOf(use)
	for tool, text := range map[string]string{"Bash": a.Command, "Read": a.File, "WebFetch": a.URL} {
		if use.Tool == tool && text != "" {
			return text
		}
	}
	return string(use.Input)
}

// unfetched returns why a plain program cannot repeat a use of a tool; "": it can.
func unfetched(use backtest.RecordedCall) string {
	a := askedOf(use)
	switch {
	case use.Tool == "Bash" && a.Command != "":
		name, err := shell.Program(a.Command)
		switch {
		case err != nil:
			return "the shell cannot read it"
		case name == "ollim":
			return "it is a command of ollim"
		}
		return ""
	case use.Tool == "Read" && a.File != "":
		if a.Offset != nil || a.Limit != nil || a.Pages != nil {
			return "it reads a part of the file"
		}
		return ""
	case use.Tool == "WebFetch" && (strings.HasPrefix(a.URL, "https://") || strings.HasPrefix(a.URL, "http://")):
		return ""
	case backtest.HasEffect(use.Tool):
		return "it has an effect"
	}
	return "no plain program can repeat it"
}

// Marks of results that a record does not have in full.
//
//nolint:gochecknoglobals // constants
var (
	cutMark   = compiled(`(?m)^(… \(\d+ characters omitted\) …|\(cut at .*\)|\(the file continues; .*\)|\(the page is longer .*\))$|… \(line cut\)`)
	numbered  = compiled(`^ *\d+(?:\t|→)`)
	reminders = compiled(`(?s)\s*<system-reminder>.*</system-reminder>\s*$`)
)

// compiled returns a function that compiles an expression at its first call, and not at the start of every command.
func compiled(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// result returns what a program that repeats a use of a tool would have printed then, without newlines at the end. why says that the record
// does not show that.
func result(use backtest.RecordedCall) (text, why string) {
	text = reminders().ReplaceAllString(use.Text, "")
	switch {
	case cutMark().MatchString(text):
		return "", "its result is cut in the record"
	case use.Failed:
		return "", "it failed"
	}
	switch use.Tool {
	case "Bash":
		if text == "(no output)" {
			text = ""
		}
	case "Read":
		if text == "(the file is empty)" {
			return "", ""
		}
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		for i, line := range lines {
			mark := numbered().FindString(line)
			if mark == "" {
				return "", "its result is not the text of a file"
			}
			lines[i] = line[len(mark):]
		}
		text = strings.Join(lines, "\n")
	case "WebFetch":
		if !json.Valid([]byte(text)) {
			return "", "its result is not JSON"
		}
	}
	return strings.TrimRight(text, "\n"), ""
}

// Few says why there are too few runs to write and judge a gate; "": there are enough.
func (r Records) Few() string {
	loud := 0
	for _, c := range r.Cases {
		if c.Loud() {
			loud++
		}
	}
	switch quiet := len(r.Cases) - loud; {
	case len(r.Cases) < 2*backtest.Few:
		return fmt.Sprintf("%s can be used, and %d are needed", plaintext.Count(len(r.Cases), "recorded run"), 2*backtest.Few)
	case quiet < 2:
		return fmt.Sprintf("%s told or changed nothing: a gate has nothing to skip", plaintext.Count(quiet, "run"))
	case loud < 2:
		return fmt.Sprintf("%s told or changed something, and 2 are needed: one to learn from and one to judge by", plaintext.Count(loud, "run"))
	case len(r.Inputs) == 0:
		return "no use of a tool is the same in every run and can be repeated by a plain program"
	}
	return ""
}

// Split divides the runs into those that the model sees and those that judge: every other one of the quiet runs, and of the others.
func (r Records) Split() (seen, held []string) {
	var n [2]int
	for _, c := range r.Cases {
		kind := 0
		if c.Loud() {
			kind = 1
		}
		if n[kind]++; n[kind]%2 == 1 {
			seen = append(seen, c.Run)
		} else {
			held = append(held, c.Run)
		}
	}
	return seen, held
}
