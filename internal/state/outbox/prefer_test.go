package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// door is a carrier that one process at a time has: who holds its lock. It appends what it sends to a file.
type door struct {
	name   string
	o      *office
	served bool   // by this process
	fault  error  // of each attempt
	bad    string // a part that is never delivered
	fate   Fate   // of a fault; "" is Queued
}

func (d *door) Name() string { return d.name }

func (d *door) Carry(_ context.Context, m Message, done []string, delivered func(id string)) (Fate, error) {
	if !d.served {
		held, err := lock.Try(d.lock())
		if errors.Is(err, lock.ErrBusy) {
			return Queued, &Elsewhere{d.name}
		}
		defer held.Release()
	}
	for _, word := range strings.Fields(m.Text)[len(done):] {
		if d.fault != nil || word == d.bad {
			return d.fate, d.fault
		}
		d.o.append(d.name + " " + word)
		delivered(d.name + "." + word)
	}
	return Sent, nil
}

func (d *door) lock() string { return d.o.Home.Path("door_" + d.name) }

// serve lets this process have the door.
func (d *door) serve(t *testing.T) {
	t.Helper()
	held, err := lock.Try(d.lock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.Release)
	d.served = true
}

// append notes what a carrier sends.
func (o *office) append(line string) {
	f, err := os.OpenFile(o.Home.Path("sent"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

// newDoors is an office with the doors a and b, of which a is preferred.
func newDoors(t *testing.T) (o *office, a, b *door) {
	t.Helper()
	o = newOffice(t)
	return o, o.door("a"), o.door("b")
}

// door adds a door, the last in the order of preference.
func (o *office) door(name string) *door {
	d := &door{name: name, o: o, fate: Queued}
	o.Carriers, o.Order, o.Timeout = append(o.Carriers, d), append(o.Order, name), time.Minute
	return d
}

// peer is another process at the same outbox, with doors of its own.
func (o *office) peer() (p *office, a, b *door) {
	p = officeAt(string(o.Home))
	p.now = o.now
	return p, p.door("a"), p.door("b")
}

func (o *office) has(t *testing.T, want string) {
	t.Helper()
	if got := strings.TrimSpace(strings.ReplaceAll(o.read(t, "sent"), "\n", ";")); got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

var errDown = errors.New("the network is down")

// TestFirstThatTakes: the first carrier that takes a message is enough.
func TestFirstThatTakes(t *testing.T) {
	o, a, b := newDoors(t)
	o.send(t, numbered(0, "m0"), Sent)
	a.fault = errDown
	o.send(t, numbered(1, "m1"), Sent)
	a.fate = Refused
	o.send(t, numbered(2, "m2"), Sent)
	b.fault, b.fate = errDown, Refused
	o.send(t, numbered(3, "m3"), Refused)
	o.has(t, "a m0;b m1;b m2;")
	if got := o.files(t); got != "" {
		t.Errorf("left: %s", got)
	}
}

// TestAllFail: an attempt that no carrier takes is one failed attempt, and the next one begins with the preferred carrier.
func TestAllFail(t *testing.T) {
	o, a, b := newDoors(t)
	a.fault, b.fault = errDown, errDown
	o.send(t, numbered(0, "m0"), Queued)
	if e := o.pending(t); len(e) != 1 || e[0].Attempts != 1 || e[0].LastError != "the network is down the network is down" {
		t.Errorf("%+v", e)
	}
	a.fault, o.now = nil, start.Add(time.Hour)
	o.flush(t, Report{Sent: 1})
	o.has(t, "a m0;")
}

// TestByImportance: critical messages have an order of their own, and do not wait for others.
func TestByImportance(t *testing.T) {
	o, a, _ := newDoors(t)
	o.Order, o.Urgent = []string{"a"}, []string{"b", "a"}
	a.fault = errDown
	o.send(t, numbered(0, "m0"), Queued)
	urgent := numbered(1, "m1")
	urgent.Critical = true
	o.send(t, urgent, Sent)
	o.has(t, "b m1;")
	queued, cancel := context.WithCancel(t.Context())
	cancel()
	urgent.ID, urgent.Text = "r.2", "m2"
	if r, err := o.Send(queued, urgent); r.Fate != Queued || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	o.now = start.Add(time.Hour)
	o.flush(t, Report{Sent: 1, Queued: 1})
	o.has(t, "b m1;b m2;")
}

// TestCommandInOrder: the command has its place among the others, or none.
func TestCommandInOrder(t *testing.T) {
	o, a, _ := newDoors(t)
	o.script(t, `sed 's/^/command /' >> "$data/sent"`)
	o.send(t, numbered(0, "m0"), Sent)
	o.Order, a.fault = []string{"a", "command"}, errDown
	o.send(t, numbered(1, "m1"), Sent)
	o.has(t, "a m0;command m1;")
}

// TestBegunIsFinished: a carrier that has delivered a part delivers the rest, unless it refuses that.
func TestBegunIsFinished(t *testing.T) {
	o, a, _ := newDoors(t)
	a.bad = "y"
	o.send(t, numbered(0, "x y"), Queued)
	o.has(t, "a x;")
	a.bad, o.now = "", start.Add(time.Hour)
	o.flush(t, Report{Sent: 1})
	o.has(t, "a x;a y;")

	o, a, _ = newDoors(t)
	a.bad = "y"
	o.send(t, numbered(0, "x y"), Queued)
	a.fate, o.now = Refused, start.Add(time.Hour)
	o.flush(t, Report{Sent: 1})
	o.has(t, "a x;b x;b y;")

	o, a, b := newDoors(t)
	a.fault, b.bad = errDown, "y"
	o.send(t, numbered(0, "x y"), Queued)
	o.has(t, "b x;")
	a.fault, b.bad, o.now = nil, "", start.Add(time.Hour) // the preferred one works again
	o.flush(t, Report{Sent: 1})
	o.has(t, "b x;b y;")

	o, a, b = newDoors(t)
	a.fault, b.bad = errDown, "y"
	m := numbered(0, "x y")
	o.send(t, m, Queued)
	if err := o.note(m.ID, line{Carrier: "b", Fate: Sent}); err != nil { // and its process was killed
		t.Fatal(err)
	}
	a.fault, o.now = nil, start.Add(time.Hour)
	o.flush(t, Report{Sent: 1})
	o.has(t, "b x;")
}

// TestHandOver: the process that serves a door sends what others put into the outbox. The sender waits for that.
func TestHandOver(t *testing.T) {
	server, a, _ := newDoors(t)
	a.serve(t)
	o, _, _ := server.peer()
	sent := make(chan Receipt)
	go func() {
		r, err := o.Send(t.Context(), numbered(0, "x y"))
		if err != nil {
			t.Error(err)
		}
		sent <- r
	}()
	eventually(t, "the message is handed over", func() bool {
		r, err := server.Flush(t.Context())
		return err != nil || r.Sent == 1
	})
	if r := <-sent; r.Fate != Sent || strings.Join(r.Outside, " ") != "a.x a.y" {
		t.Errorf("%+v", r)
	}
	server.has(t, "a x;a y;")
}

// TestHandOverFails: the sender is told that the server could not send the message, or that it was refused.
func TestHandOverFails(t *testing.T) {
	for _, fate := range []Fate{Queued, Refused} {
		server, a, b := newDoors(t)
		a.serve(t)
		a.fault, a.fate, b.fault, b.fate = errDown, fate, errDown, fate
		o, _, _ := server.peer()
		sent := make(chan Receipt)
		go func() {
			r, err := o.Send(t.Context(), numbered(0, "m0"))
			if err != nil {
				t.Error(err)
			}
			sent <- r
		}()
		eventually(t, "the message is tried", func() bool {
			r, err := server.Flush(t.Context())
			return err != nil || r.Refused == 1 || r.Queued == 1 && server.pending(t)[0].Attempts == 1
		})
		if r := <-sent; r.Fate != fate || r.Reason == nil {
			t.Errorf("%s: %+v", fate, r)
		}
	}
}

// TestTwoServers: when the preferred door fails, the server of the next one continues the attempt.
func TestTwoServers(t *testing.T) {
	first, a, _ := newDoors(t)
	a.serve(t)
	a.fault = errDown
	second, _, b := first.peer()
	b.serve(t)
	o, _, _ := first.peer()
	queued, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := o.Send(queued, numbered(0, "m0")); r.Fate != Queued || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	second.flush(t, Report{Queued: 1}) // it is a's turn
	before := first.Changed()
	first.now = start.Add(time.Second)
	first.flush(t, Report{Queued: 1})
	if !first.Changed().After(before) {
		t.Error("the server of b is not woken")
	}
	first.flush(t, Report{Queued: 1}) // a has failed in this attempt
	first.has(t, "")
	second.flush(t, Report{Sent: 1})
	first.has(t, "b m0;")
}

// TestServerHangs: a server that does not send a message for a while loses its turn.
func TestServerHangs(t *testing.T) {
	server, a, _ := newDoors(t)
	a.serve(t)
	o, _, _ := server.peer()
	queued, cancel := context.WithCancel(t.Context())
	cancel()
	m := numbered(0, "m0")
	if r, err := o.Send(queued, m); r.Fate != Queued || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	o.now = start.Add(time.Hour)
	o.flush(t, Report{Queued: 1})
	o.now = o.now.Add(handTime - time.Second)
	o.flush(t, Report{Queued: 1})
	o.has(t, "")
	o.now = o.now.Add(time.Second)
	o.flush(t, Report{Sent: 1})
	o.has(t, "b m0;")
}

// TestHandOverAlone: without another carrier the message is tried again by the schedule of failed attempts, and the server has its turn in each.
func TestHandOverAlone(t *testing.T) {
	server, a, _ := newDoors(t)
	a.serve(t)
	o, _, _ := server.peer()
	o.Order = []string{"a"}
	queued, cancel := context.WithCancel(t.Context())
	cancel()
	m := numbered(0, "m0")
	if r, err := o.Send(queued, m); r.Fate != Queued || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	o.now = m.Created
	o.flush(t, Report{Queued: 1})
	o.now = m.Created.Add(handTime)
	o.flush(t, Report{Queued: 1})
	if e := o.pending(t); len(e) != 1 || e[0].Attempts != 1 || !strings.Contains(e[0].LastError, "serves a has not sent it for 2m0s") {
		t.Errorf("%+v", e)
	}
	o.now = o.now.Add(24 * time.Hour)
	o.flush(t, Report{Queued: 1})
	if e := o.pending(t); len(e) != 1 || e[0].Attempts != 1 {
		t.Errorf("%+v", e)
	}
	server.now = o.now
	server.flush(t, Report{Sent: 1})
	server.has(t, "a m0;")
}

// TestOrderBesideASender: while another process is at a message, no later one is sent, unless that process has been at it for too long.
func TestOrderBesideASender(t *testing.T) {
	server, a, _ := newDoors(t)
	a.serve(t)
	o, _, _ := server.peer()
	queued, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 2 {
		if r, err := o.Send(queued, numbered(n, fmt.Sprint("m", n))); r.Fate != Queued || err != nil {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	held, err := lock.TryGuard(server.path(numbered(0, "m0").ID))
	if err != nil {
		t.Fatal(err)
	}
	server.flush(t, Report{Queued: 1})
	o.Carriers, o.Timeout = a.o.Carriers, 50*time.Millisecond
	if r, err := o.Send(t.Context(), numbered(2, "m2")); r.Fate != Queued || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	server.has(t, "")
	before := server.Disk.Now().Add(-longest)
	if err := os.Chtimes(server.path(numbered(0, "m0").ID), before, before); err != nil {
		t.Fatal(err)
	}
	server.flush(t, Report{Sent: 2})
	server.has(t, "a m1;a m2;")
	held.Release()
	server.flush(t, Report{Sent: 1})
	server.has(t, "a m1;a m2;a m0;")
}

// nonces is a door whose messenger knows what it has: the same part again is the same message. Its messages have one part.
type nonces struct{ *door }

func (n nonces) Carry(ctx context.Context, m Message, done []string, delivered func(id string)) (Fate, error) {
	if sent, err := os.ReadFile(n.o.Home.Path("sent")); len(done) == 0 && err == nil && slices.Contains(strings.Split(string(sent), "\n"), n.name+" "+m.Text) {
		done = append(done, m.Text)
	}
	return n.door.Carry(ctx, m, done, delivered)
}

// handOver sends the message whose number is the first line of the standard input.
func handOver(ctx context.Context, o *office) error {
	o.Carriers, o.Order, o.Timeout = []Carrier{nonces{&door{name: "a", o: o, fate: Queued}}}, []string{"a"}, time.Minute
	var n int
	if _, err := fmt.Scan(&n); err != nil {
		return err
	}
	_, err := o.Send(ctx, numbered(n, fmt.Sprint("m", n)))
	return err
}

// serveDoor sends what is in the outbox by the door, until it is killed.
func serveDoor(ctx context.Context, o *office) error {
	d := &door{name: "a", o: o, fate: Queued}
	o.Carriers, o.Order, o.Timeout = []Carrier{nonces{d}}, []string{"a"}, time.Minute
	for !d.served {
		_, err := lock.Try(d.lock())
		d.served = err == nil
	}
	fmt.Println("serving")
	for {
		if _, err := o.Flush(ctx); err != nil {
			return err
		}
	}
}

// TestKilledHandOver kills senders and servers at random moments: each message that is in the outbox is sent, once and in order.
func TestKilledHandOver(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const rounds = 25
	for n := range rounds {
		server := o.child(t, "serve")
		out, err := server.StdoutPipe()
		if err == nil {
			err = server.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		sender := o.child(t, "hand")
		sender.Stdin = strings.NewReader(fmt.Sprintln(n))
		if n%2 == 0 {
			if _, err := out.Read(make([]byte, 8)); err != nil { // it serves
				t.Fatal(err)
			}
		}
		if err := sender.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = sender.Wait(); close(ended) }()
		eventually(t, "the message is in the outbox or sent", func() bool {
			return strings.Contains(o.files(t), fmt.Sprintf("r.%d.jsonl", n)) || strings.Contains(o.read(t, "sent"), fmt.Sprintf("a m%d\n", n))
		})
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		victims := []*os.Process{server.Process, sender.Process}
		if n%3 == 0 {
			victims = victims[:1]
		}
		for _, p := range victims {
			_ = p.Kill() // it may have ended
		}
		if n%3 == 0 {
			_ = server.Wait()
			again := o.child(t, "serve")
			if err := again.Start(); err != nil {
				t.Fatal(err)
			}
			<-ended // its message was sent, by itself or by the new server
			_ = again.Process.Kill()
			_ = again.Wait()
		} else {
			<-ended
			_ = server.Wait()
		}
	}
	d := &door{name: "a", o: o, fate: Queued}
	o.Carriers, o.Order, o.Timeout = []Carrier{nonces{d}}, []string{"a"}, time.Minute
	o.now = start.Add(time.Hour)
	if _, err := o.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for n := range rounds {
		fmt.Fprintf(&want, "a m%d;", n)
	}
	o.has(t, want.String())
	if got := o.files(t); got != "" {
		t.Errorf("left: %s", got)
	}
}
