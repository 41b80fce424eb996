package outbox

import "testing"

// TestHold: no process sends a message that is held, and one that is released is sent once, however often it is released.
func TestHold(t *testing.T) {
	o := newOffice(t)
	o.script(t, `cat >> "$data/sent"`)
	for _, text := range []string{"first try", "week"} {
		m := message("summary.1")
		m.Text = text
		if err := o.Hold(m); err != nil {
			t.Fatal(err)
		}
		o.flush(t, Report{})
	}
	if got := o.pending(t); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	for range 2 {
		if err := o.Release("summary.1"); err != nil {
			t.Fatal(err)
		}
	}
	o.flush(t, Report{Sent: 1})
	if err := o.Release("summary.1"); err != nil {
		t.Fatal(err)
	}
	o.flush(t, Report{})
	if got := o.read(t, "sent"); got != "week\n" || o.files(t) != "" {
		t.Errorf("sent %q, left %q", got, o.files(t))
	}
	if err := o.Hold(message("../x")); err == nil {
		t.Error("no error")
	}
}
