package outbox

import (
	"context"
	"strings"
	"testing"
)

// TestJSON: the command gets a line, and what it prints is the id that a reply quotes.
func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct{ prints, id, warning string }{
		"an id":       {`{"type":"done","id":"m-17","more":1}`, "m-17", ""},
		"nothing":     {"", "", ""},
		"no id":       {`{"type":"done"}`, "", ""},
		"a text":      {"sent", "", "printed no line like"},
		"no word":     {`{"id":"a b"}`, "", "printed no line like"},
		"a number":    {`{"id":17}`, "", "printed no line like"},
		"a long id":   {`{"id":"` + strings.Repeat("x", 101) + `"}`, "", "printed no line like"},
		"two objects": {`{"id":"a"}{"id":"b"}`, "", "printed no line like"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.JSON = true
			var received []string
			o.Received = func(_ context.Context, message string, ids ...string) error {
				received = append(received, message+" "+strings.Join(ids, ","))
				return nil
			}
			o.script(t, `cat > "$data/line"; printf %s '`+tc.prints+`'`)
			m := message("r.1")
			m.Text, m.File, m.Buttons = "which?\n\"this\"", "/tmp/a b.png", []Button{{Label: "This", ID: ButtonID(ButtonAnswer, "r", "1"), Style: "primary"}}
			r, err := o.Send(t.Context(), m)
			if err != nil || r.Fate != Sent || strings.Join(r.Outside, " ") != tc.id {
				t.Errorf("%+v, %v", r, err)
			}
			const line = `{"type":"send","text":"which?\n\"this\"","buttons":[{"label":"This","id":"ollim:answer:r:1","style":"primary"}],` +
				`"files":[{"name":"a b.png","path":"/tmp/a b.png"}],"nonce":"r.1"}` + "\n"
			if got := o.read(t, "line"); got != line {
				t.Errorf("it got %s", got)
			}
			if got := strings.Join(received, ";"); tc.id != "" && got != "r.1 "+tc.id || tc.id == "" && got != "" {
				t.Errorf("received %q", got)
			}
			if warned := strings.Join(o.warned, " "); tc.warning == "" && warned != "" || !strings.Contains(warned, tc.warning) {
				t.Errorf("warned %q", warned)
			}
		})
	}
}

// TestPrintedIsSent: a message whose id the command has printed is not sent again after a kill.
func TestPrintedIsSent(t *testing.T) {
	o := newOffice(t)
	o.JSON = true
	o.script(t, `echo again >> "$data/sent"`)
	o.file(t, "r.1.jsonl", `{"id":"r.1","kind":"ping","text":"x","created":"2026-02-24T22:30:00Z"}`+"\n"+
		`{"at":"2026-02-24T22:30:00Z","carrier":"command","part":"17"}`+"\n")
	o.flush(t, Report{Sent: 1})
	if got := o.read(t, "sent"); got != "" {
		t.Errorf("it was sent again")
	}
}
