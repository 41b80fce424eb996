package distil

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/shell"
)

// Verdict is what came of a gate.
type Verdict struct {
	ID       string   `json:"id"`
	Job      string   `json:"job"`
	Name     string   `json:"name"`
	Accepted bool     `json:"accepted"`
	Why      []string `json:"why,omitempty"` // the gate is refused

	Quiet   int     `json:"quiet"`   // runs that told and changed nothing, of those that the model did not see
	Skipped int     `json:"skipped"` // of Quiet
	Loud    int     `json:"loud"`    // the others of them
	Lost    int     `json:"lost"`    // of Loud, which the gate would skip
	Pings   bool    `json:"pings"`   // each of Loud pinged or asked
	Bound   float64 `json:"bound"`   // with a confidence of 95 %, at most this part of all such runs would be lost, 0 to 1
	Monthly float64 `json:"monthly"` // what the skipped runs cost in a month, USD

	Runs   []Judged `json:"runs"`
	Model  string   `json:"model"`
	Tries  int      `json:"tries"`
	Cost   float64  `json:"cost"`   // USD
	Digest string   `json:"digest"` // of the gate, SHA-256 in hex

	filter string
}

// Judged is a run that the model did not see, and what the gate would have done.
type Judged struct {
	Run    string   `json:"run"`
	Did    []string `json:"did,omitempty"`
	Closed bool     `json:"closed"`
	Why    string   `json:"why,omitempty"` // the gate is broken
}

// String says what the judge counted.
func (v Verdict) String() string {
	if len(v.Runs) == 0 {
		return "not judged"
	}
	loud := "pings"
	if !v.Pings {
		loud = "runs that told or changed something"
	}
	text := fmt.Sprintf("%d of %s skipped, %d of %d %s lost", v.Skipped, plaintext.Count(v.Quiet, "quiet run"), v.Lost, v.Loud, loud)
	if v.Monthly > 0 {
		text += fmt.Sprintf("; $%.2f a month less", v.Monthly)
	}
	return text
}

// judge lets the gate decide about the runs that the model did not see.
func (d *Distil) judge(ctx context.Context, v *Verdict) error {
	held := d.Records.Of(d.Held)
	v.Pings = true
	var saved float64
	for _, c := range held {
		j := Judged{Run: c.Run, Did: c.Did}
		var err error
		if j.Closed, j.Why, err = d.closes(ctx, v.filter, c); err != nil {
			return err
		}
		switch {
		case j.Why != "":
			v.Why = append(v.Why, fmt.Sprintf("with the inputs of the run %s, %s", c.Run, j.Why))
		case j.Closed && c.Loud():
			v.Lost++
			v.Why = append(v.Why, fmt.Sprintf("it would skip the run %s, which did this: %s", c.Run, strings.Join(c.Did, ", ")))
		case j.Closed:
			v.Skipped++
			saved += c.Cost
		}
		if c.Loud() {
			v.Loud++
			v.Pings = v.Pings && slices.ContainsFunc(c.Did, func(did string) bool { return did == backtest.Pinged || did == backtest.Asked })
		} else {
			v.Quiet++
		}
		v.Runs = append(v.Runs, j)
	}
	if v.Skipped == 0 {
		v.Why = append(v.Why, "it would skip no quiet run")
	}
	v.Bound = backtest.Bound(v.Lost, v.Loud)
	v.Monthly = saved / float64(len(held)) * d.Monthly
	return nil
}

// Bounds of what a deciding part may name of single runs.
const (
	mostValues = 2 // texts with a digit, such as a date, an id or a measured value
	mostWords  = 8 // any texts
	rare       = 10
)

var token = compiled(`[\p{L}\p{N}](?:[\p{L}\p{N}._:/%-]*[\p{L}\p{N}])?`) //nolint:gochecknoglobals // a constant

// unfit returns why a deciding part is not to be judged: it is no filter, or it knows the runs by heart.
func unfit(filter string, seen []Case) string {
	literals, err := shell.Filter(filter)
	if err != nil {
		return "it is no filter: " + err.Error()
	}
	words := map[string]bool{}
	for _, text := range literals {
		for _, word := range token().FindAllString(text, -1) {
			if len(word) > 1 {
				words[word] = true
			}
		}
	}
	in := map[string]int{} // how many runs have a word in their inputs
	for _, c := range seen {
		once := map[string]bool{}
		for _, word := range token().FindAllString(strings.Join(c.Inputs, "\n"), -1) {
			if words[word] && !once[word] {
				once[word] = true
				in[word]++
			}
		}
	}
	values, all := 0, 0
	for word, n := range in {
		if n > max(1, len(seen)/rare) {
			continue
		}
		if all++; strings.ContainsAny(word, "0123456789") {
			values++
		}
	}
	if values > mostValues || all > mostWords {
		return fmt.Sprintf("it knows the runs by heart: it names %s of single runs", plaintext.Count(all, "text"))
	}
	return ""
}
