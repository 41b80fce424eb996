package outbox

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// TestEachFault: whichever system call fails while a message is sent or retried, a message that was taken arrives, in order, and twice only
// where its delivery could not be noted. One that was not taken is an error.
func TestEachFault(t *testing.T) {
	t.Parallel()
	const text = "one two three"
	for name, c := range map[string]struct {
		prep func(t *testing.T, o *office, m *messenger)
		call func(t *testing.T, o *office) (Fate, error)
	}{
		"Send": {call: func(t *testing.T, o *office) (Fate, error) { return o.try(t.Context(), numbered(1, text)) }},
		"Send while there is no connection": {
			prep: func(_ *testing.T, _ *office, m *messenger) { m.left = 0 },
			call: func(t *testing.T, o *office) (Fate, error) { return o.try(t.Context(), numbered(1, text)) },
		},
		"Flush": {
			prep: func(t *testing.T, o *office, m *messenger) {
				m.left = 0
				o.send(t, numbered(1, text), Queued)
				m.left, o.now = connected, start.Add(time.Hour)
			},
			call: func(t *testing.T, o *office) (Fate, error) {
				_, err := o.Flush(t.Context())
				return Queued, err
			},
		},
		"Flush of a draft": {
			prep: func(t *testing.T, o *office, _ *messenger) { o.file(t, ".r.1.new", stored(t, numbered(1, text))) },
			call: func(t *testing.T, o *office) (Fate, error) {
				_, err := o.Flush(t.Context())
				return Queued, err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for fault := range testkit.Faults(t, syscall.EIO) {
				o, m := newMessenger(t)
				if c.prep != nil {
					c.prep(t, o, m)
				}
				var fate Fate
				var err error
				fault.In(o.Home.Path(), func() { fate, err = c.call(t, o) })
				got := strings.Join(m.delivered, " ")
				if fate == Sent && got != text {
					t.Errorf("%q fails: %q is delivered, and it is %s, %v", fault.Call, got, fate, err)
				}
				for _, left := range testkit.OpenFiles(t, o.Home.Path()) {
					t.Errorf("%q fails: %s is left open", fault.Call, left)
				}
				m.left = connected
				for range 3 {
					o.now = o.now.Add(2 * time.Hour)
					if _, err := o.Flush(t.Context()); err != nil {
						t.Errorf("%q fails, and so does the next Flush: %v", fault.Call, err)
					}
				}
				if left := o.pending(t); len(left) > 0 {
					t.Errorf("%q fails: %+v stays", fault.Call, left)
				}
				once := slices.Compact(slices.Clone(m.delivered))
				switch {
				case len(once) == 0 && err != nil: // not taken
				case !slices.Equal(once, strings.Fields(text)):
					t.Errorf("%q fails: %v, then %q is delivered", fault.Call, err, m.delivered)
				case len(once) < len(m.delivered) && !strings.Contains(fault.Call, "state/outbox/r.1.jsonl"):
					t.Errorf("%q fails: %v, then %q is delivered", fault.Call, err, m.delivered)
				case err != nil && !errors.Is(err, syscall.EIO):
					t.Errorf("%q fails: %v", fault.Call, err)
				}
			}
		})
	}
}
