package cli

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/run"
)

// voice gives an answer out, in the format that was asked for.
type voice struct {
	d      *Deps
	format string
	stop   func(error) // called when nobody listens any more
	began  time.Time

	streamed bool // text of the block that is coming in
	midLine  bool
	answers  int   // of the model
	err      error // of the first write that failed
}

// live reports whether text is shown as it arrives: a terminal shows all of it, a pipe or a file receives the final text alone.
func (v *voice) live() bool { return v.format == "text" && isTerminal(v.d.Stdout) }

// delta writes text to a terminal as it arrives.
func (v *voice) delta() func(string) error {
	if !v.live() {
		return nil
	}
	return func(text string) error {
		v.streamed = true
		v.say(text)
		return nil
	}
}

// hear follows the run.
func (v *voice) hear(e run.Event) {
	if e.Type == run.UsageEvent && e.Usage != nil {
		v.answers++
	}
	switch {
	case e.Type == run.Retry && v.format != "stream-json":
		v.d.warn("tried again: " + e.Text)
	case v.format == "stream-json":
		if e.At.IsZero() {
			e.At = v.d.Now()
		}
		v.note(v.d.emit(e))
		v.note(v.d.flush())
	case e.Type == run.Text && v.live():
		if !v.streamed {
			v.say(e.Text)
		}
		if v.midLine {
			v.say("\n")
		}
		v.streamed = false
	}
}

func (v *voice) say(text string) {
	if text == "" || v.err != nil {
		return
	}
	_, err := io.WriteString(v.d.Out, text)
	v.note(errors.Join(err, v.d.flush()))
	v.midLine = !strings.HasSuffix(text, "\n")
}

func (v *voice) note(err error) {
	if err != nil && v.err == nil {
		v.err = err
		v.stop(err)
	}
}

// answer is the last object of both JSON formats; its keys are those that scripts know from other agents.
type answer struct {
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype"` // success, or how the run ended
	IsError   bool      `json:"is_error"`
	Result    string    `json:"result"`
	Error     string    `json:"error,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	Run       string    `json:"run"`
	Engine    string    `json:"engine"`
	Model     string    `json:"model,omitempty"`
	Turns     int       `json:"num_turns"`
	Duration  int64     `json:"duration_ms"`
	Cost      float64   `json:"total_cost_usd"`
	Usage     run.Usage `json:"usage"`
}

// end completes the output of a run.
func (v *voice) end(r run.Record) {
	if v.format == "text" {
		if !v.live() && r.Outcome == run.OK { // what a failed run has said is no answer
			v.say(r.Text)
		}
		if v.midLine {
			v.say("\n")
		}
		return
	}
	if v.err != nil {
		return
	}
	a := answer{
		Type: "result", Subtype: "success", IsError: r.Outcome != run.OK, Result: r.Text, Error: r.Error,
		SessionID: cmp.Or(r.SessionAfter, r.SessionBefore), Run: r.ID, Engine: r.Engine, Model: r.Model, Turns: max(r.Turns, v.answers),
		Duration: v.d.Now().Sub(v.began).Milliseconds(), Cost: r.Cost, Usage: r.Usage,
	}
	if a.IsError {
		a.Subtype = string(r.Outcome)
	}
	v.note(v.d.emit(a))
	v.note(v.d.flush())
}
