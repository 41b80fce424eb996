package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/runlog"
)

// voice writes an answer in the format that was asked for.
type voice struct {
	d       *deps
	format  string
	partial bool        // stream-json has deltas
	stop    func(error) // called when the reader has gone
	began   time.Time
	root    string          // the working directory of the run
	tools   []string        // that it may use
	schema  *payload.Answer // that the answer fits; nil: any text

	tally    tally
	begun    bool // stream-json has named the session
	deltas   deltas
	streamed bool // text of the block that is coming in
	midLine  bool
	err      error // of the first write that failed
}

// live reports whether text is shown as it arrives: a terminal shows all of it, a pipe or a file receives the final text alone.
func (v *voice) live() bool { return v.format == "text" && v.schema == nil && isTerminal(v.d.Stdout) }

// delta returns the function that writes text as it arrives; nil if the output does not show that.
func (v *voice) delta() func(string) error {
	switch {
	case v.partial:
		return func(text string) error {
			v.streamDelta(text)
			return nil
		}
	case v.live():
		return func(text string) error {
			v.streamed = true
			v.say(text)
			return nil
		}
	}
	return nil
}

func (v *voice) hear(e runlog.Event) {
	v.tally.hear(e)
	v.d.progress.hear(e)
	switch {
	case v.format == "stream-json":
		v.stream(e)
	case e.Type == runlog.Retry:
		v.d.warn("retried: " + e.Text)
	case e.Type == runlog.Text && v.live():
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

func (v *voice) object(o any) {
	if v.err == nil {
		v.note(errors.Join(v.d.emit(o), v.d.flush()))
	}
}

func (v *voice) note(err error) {
	if err != nil && v.err == nil {
		v.err = err
		v.stop(err)
	}
}

// structured returns the JSON value of the answer; nil if there is no schema that it fits.
func (v *voice) structured() json.RawMessage {
	if v.schema == nil {
		return nil
	}
	value, _ := v.schema.Value(v.tally.text) // a run whose answer does not fit has failed
	return value
}

func (v *voice) end(h app.Home, r runlog.Record, err error) {
	if v.format != "text" {
		v.object(v.result(h, r, err))
		return
	}
	if !v.live() && r.Outcome == runlog.OK { // what a failed run has said is no answer
		v.say(cmp.Or(string(v.structured()), v.tally.text))
	}
	if v.midLine {
		v.say("\n")
	}
}
