package backtest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Kinds of decisions.
const (
	Pinged   = "ping"   // a message, an embed or a file to the owner
	Asked    = "ask"    // a question to the owner
	Reported = "report" // to the main conversation
	Wrote    = "write"  // a file
	Reminded = "remind" // a reminder or a follow-up, or the end of one
	Answered = "answer" // the text of a run whose text the owner reads
)

// Decision is one thing that an agent wanted done.
type Decision struct {
	Kind string `json:"kind"`
	What string `json:"what,omitempty"` // the file that is written
	Text string `json:"text"`
}

// own are ollim's tools with effects: the kind of the decision, and what the agent is told if the record has no use of the tool.
func own(tool string) (kind, result string, is bool) {
	switch tool {
	case "ping_user", "discord_embed", "send_file":
		return Pinged, "Sent.", true
	case "ask_owner":
		return Asked, "The owner was asked. The run waits for the answer: end your turn now.", true
	case "report_updates":
		return Reported, "Reported.", true
	case "add_reminder", "cancel_reminder", "follow_up_chain":
		return Reminded, "Done.", true
	case "compact_session", "enter_fork", "exit_fork", "save_context", "update_names":
		return "", "Done.", true
	}
	return "", "", false
}

// writes reports whether a tool writes a file.
func writes(tool string) bool {
	return slices.Contains([]string{"Write", "Edit", "MultiEdit", "NotebookEdit"}, tool)
}

// HasEffect reports whether a tool is one of ollim's own that sends, reports or reminds, or changes the session.
func HasEffect(tool string) bool {
	_, _, is := own(short(tool))
	return is || writes(tool)
}

// short returns the name of one of ollim's own tools as it is without an MCP server around it.
func short(tool string) string { return strings.TrimPrefix(tool, tools.Prefix) }

// decide adds the decision in a use of a tool, if there is one. Paths are relative to root.
func decide(list []Decision, root, tool string, input json.RawMessage) []Decision {
	kind, _, _ := own(short(tool))
	var in struct {
		Message  string `json:"message"`
		Question string `json:"question"`
		Content  string `json:"content"`
	}
	_ = json.Unmarshal(input, &in) // another input is compared as it is
	switch {
	case writes(tool) && pathOf(root, input) == "":
		return list
	case writes(tool):
		text := in.Content
		if text == "" {
			text = canonical(input)
		}
		return append(list, Decision{Wrote, pathOf(root, input), text})
	case kind == "":
		return list
	}
	text := in.Message + in.Question
	if text == "" {
		text = canonical(input)
	}
	return append(list, Decision{Kind: kind, Text: text})
}

// upToQuestion returns the decisions up to the first question: what comes after it depends on the answer.
func upToQuestion(list []Decision) []Decision {
	if i := slices.IndexFunc(list, func(d Decision) bool { return d.Kind == Asked }); i >= 0 {
		return list[:i+1]
	}
	return list
}

// canonical returns a JSON value in a form that does not depend on the order of keys and on white space.
func canonical(value json.RawMessage) string {
	d := json.NewDecoder(strings.NewReader(string(value)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(value)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return string(value)
	}
	return string(text)
}

// Results of asking a run again.
const (
	Same      = "same"
	Different = "different text" // the same decisions with other texts
	Extra     = "extra"          // the agent decides something that it did not decide then
	Missed    = "missed"         // the agent does not decide something that it decided then, whatever else it decides
	Undecided = "undecided"
)

func results() []string { return []string{Same, Different, Extra, Missed, Undecided} }

// Verdict is what came of asking a run again.
type Verdict struct {
	Run      string     `json:"run"`
	Baseline bool       `json:"baseline,omitempty"` // it was asked without a change
	Result   string     `json:"verdict"`
	Missed   []string   `json:"missed,omitempty"` // kinds of decisions, for files with their paths
	Extra    []string   `json:"extra,omitempty"`
	Why      string     `json:"why,omitempty"`  // of an undecided run
	Call     *Call      `json:"call,omitempty"` // the use of a tool without an answer in the record
	Live     []string   `json:"live,omitempty"` // tools that were used now
	Before   []Decision `json:"then"`
	Now      []Decision `json:"now"`
	Facts    string     `json:"facts,omitempty"` // what the judge says about other texts
	Was      Use        `json:"use_then"`
	Is       Use        `json:"use_now"`

	JudgeCost float64 `json:"judge_cost,omitempty"` // USD
}

// Call is a use of a tool.
type Call struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
}

// Use is what a run used.
type Use struct {
	Cost    float64 `json:"cost"` // USD
	Seconds float64 `json:"seconds"`

	Usage runlog.Usage `json:"usage"`
}

// Silent is what a list of decisions says if there are none.
const Silent = "silent"

// Kinds returns what decisions are about, sorted, each once.
func Kinds(list []Decision) (kinds []string) {
	for _, d := range list {
		kinds = append(kinds, strings.TrimSpace(d.Kind+" "+d.What))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// compare sets the result.
func (v *Verdict) compare() {
	before, now := Kinds(v.Before), Kinds(v.Now)
	without := func(list, of []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(kind string) bool { return slices.Contains(of, kind) })
	}
	v.Missed, v.Extra = without(before, now), without(now, before)
	switch {
	case len(v.Missed) > 0:
		v.Result = Missed
	case len(v.Extra) > 0:
		v.Result = Extra
	case !slices.EqualFunc(v.Before, v.Now, sameText):
		v.Result = Different
	default:
		v.Result = Same
	}
}

func sameText(a, b Decision) bool {
	return a.Kind == b.Kind && a.What == b.What && strings.Join(strings.Fields(a.Text), " ") == strings.Join(strings.Fields(b.Text), " ")
}
