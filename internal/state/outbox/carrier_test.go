package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// messenger is a carrier that delivers a message in parts, one for each word of its text.
type messenger struct {
	left      int      // parts until the connection is lost
	bad       string   // a part that is never delivered
	delivered []string // parts, in order
	during    func()   // is called in each attempt; nil: nothing is
}

var errLost = errors.New("no connection")

func (*messenger) Name() string { return "messenger" }

func (m *messenger) Carry(_ context.Context, message Message, done []string, delivered func(id string)) (Fate, error) {
	if m.during != nil {
		m.during()
	}
	for _, word := range strings.Fields(message.Text)[len(done):] {
		if m.left == 0 || word == m.bad {
			return Queued, errLost
		}
		m.left--
		m.delivered = append(m.delivered, word)
		delivered("id of " + word)
	}
	return Sent, nil
}

const connected = 1 << 20 // parts

// newMessenger is an office with a messenger and without a command.
func newMessenger(t *testing.T) (*office, *messenger) {
	t.Helper()
	o, m := newOffice(t), &messenger{left: connected}
	o.Carriers, o.Timeout = []Carrier{m}, time.Minute
	return o, m
}

// numbered is the n-th message, created n seconds after start.
func numbered(n int, text string) Message {
	m := message(fmt.Sprintf("r.%d", n))
	m.Text, m.Created = text, start.Add(time.Duration(n)*time.Second)
	return m
}

func (m *messenger) has(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(m.delivered, " "); got != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
}

// TestRemainingParts: what remains of a message is sent later, in order, once. Each part is known by the id that a reply quotes.
func TestRemainingParts(t *testing.T) {
	for done := range 3 {
		o, m := newMessenger(t)
		var received []string
		o.Received = func(_ context.Context, message string, ids ...string) error {
			received = append(received, message+" "+strings.Join(ids, ","))
			return nil
		}
		m.left = done
		if r, err := o.Send(t.Context(), numbered(0, "a b c")); err != nil || r.Fate != Queued || len(r.Outside) != done || !errors.Is(r.Reason, errLost) {
			t.Errorf("after %d parts: %+v, %v", done, r, err)
		}
		m.left, o.now = connected, start.Add(time.Hour)
		o.flush(t, Report{Sent: 1})
		m.has(t, "a b c")
		if got := strings.Join(received, ";"); got != "r.0 id of a;r.0 id of b;r.0 id of c" {
			t.Errorf("after %d parts: received %q", done, got)
		}
	}
}

// TestOrder: after an outage a new message waits for the earlier ones, and goes with them.
func TestOrder(t *testing.T) {
	o, m := newMessenger(t)
	m.left = 0
	for n := range 3 {
		if r, err := o.Send(t.Context(), numbered(n, fmt.Sprint("m", n))); err != nil || r.Fate != Queued || !errors.Is(r.Reason, errLost) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	o.flush(t, Report{Queued: 3}) // none is due
	m.left = connected
	o.send(t, numbered(3, "m3"), Sent)
	m.has(t, "m0 m1 m2 m3")
	o.flush(t, Report{})
}

// TestOrderOfFlush: a message that is due takes with it the earlier ones that are not.
func TestOrderOfFlush(t *testing.T) {
	o, m := newMessenger(t)
	m.left = 0
	for n := range 4 {
		o.send(t, numbered(n, fmt.Sprint("m", n)), Queued)
		o.now = o.now.Add(time.Minute)
	}
	o.flush(t, Report{Queued: 4})
	m.has(t, "")
	m.left, o.now = connected, o.now.Add(2*time.Hour)
	o.flush(t, Report{Sent: 4})
	m.has(t, "m0 m1 m2 m3")
}

// TestOneThatAlwaysFails: a message holds up later ones for some attempts only, those of Send and those of Flush.
func TestOneThatAlwaysFails(t *testing.T) {
	o, m := newMessenger(t)
	m.bad = "bad"
	o.send(t, numbered(0, "bad"), Queued)
	for n := 1; n < patience; n++ {
		o.send(t, numbered(n, fmt.Sprint("m", n)), Queued)
	}
	o.send(t, numbered(patience, "m5"), Sent)
	m.has(t, "m1 m2 m3 m4 m5")

	o, m = newMessenger(t)
	m.bad = "bad"
	o.send(t, numbered(0, "bad"), Queued)
	o.send(t, numbered(1, "m1"), Queued)
	for range patience - 2 {
		o.now = o.now.Add(24 * time.Hour)
		o.flush(t, Report{Queued: 2})
	}
	o.now = o.now.Add(24 * time.Hour)
	o.flush(t, Report{Sent: 1, Queued: 1})
	m.has(t, "m1")
}

// TestStuckHoldsUpNothing: a message that is given up after few attempts holds up no later one.
func TestStuckHoldsUpNothing(t *testing.T) {
	o, m := newMessenger(t)
	m.bad = "bad"
	o.send(t, numbered(0, "bad"), Queued)
	o.now = start.Add(stuckAfter + time.Hour)
	o.flush(t, Report{Queued: 1})
	late := numbered(1, "late")
	late.Created = o.now
	m.left = 0
	o.send(t, late, Queued)
	m.left, o.now = connected, o.now.Add(time.Hour)
	o.flush(t, Report{Sent: 1, Queued: 1})
	m.has(t, "late")
}

// TestTriedMeanwhile: a message that another process has tried since the outbox was read is not tried again at once.
func TestTriedMeanwhile(t *testing.T) {
	o, m := newMessenger(t)
	command := o.Carriers
	o.Carriers = nil
	urgent := numbered(1, "m1")
	urgent.Critical = true // it does not wait for the first, which is being sent
	o.send(t, numbered(0, "m0"), Queued)
	o.send(t, urgent, Queued)
	o.Carriers, o.Urgent, o.now = command, []string{m.Name()}, start.Add(time.Minute)
	other := officeAt(string(o.Home))
	other.now, other.Timeout, other.Carriers, other.Urgent = o.now, time.Minute, []Carrier{&messenger{}}, o.Urgent
	m.during = func() {
		m.during = nil
		if r, err := other.Flush(t.Context()); err != nil || r.Queued != 1 {
			t.Errorf("the other process: %+v, %v", r, err)
		}
	}
	o.flush(t, Report{Sent: 1, Queued: 1})
	m.has(t, "m0")
	if e := o.pending(t); len(e) != 1 || e[0].Attempts != 1 {
		t.Errorf("%+v", e)
	}
}

// TestEachCarrierOnce: the command and the messenger get a message once each, whichever of them fails at first.
func TestEachCarrierOnce(t *testing.T) {
	for _, broken := range []string{"command", "messenger"} {
		o, m := newMessenger(t)
		o.script(t, `[ -e "$data/broken" ] && exit 1; cat >> "$data/sent"`)
		if broken == "messenger" {
			m.left = 0
		} else if err := os.WriteFile(o.Home.Path("broken"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o.send(t, numbered(0, "m0"), Queued)
		o.flush(t, Report{Queued: 1})
		m.left, o.now = connected, start.Add(time.Hour)
		_ = os.Remove(o.Home.Path("broken"))
		o.flush(t, Report{Sent: 1})
		m.has(t, "m0")
		if got := o.read(t, "sent"); got != "m0\n" {
			t.Errorf("%s was broken: the command got %q", broken, got)
		}
	}
}
