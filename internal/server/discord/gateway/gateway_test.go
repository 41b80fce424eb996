package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// world is a Discord in which no heartbeat is due during the test, and a bot.
func world(t *testing.T) (*discordapi.Server, *bot) {
	t.Helper()
	return beating(t, 0)
}

// beating is a world with an interval of heartbeats. A bot on a busy machine may stand still for one, and is disconnected.
func beating(t *testing.T, interval time.Duration) (*discordapi.Server, *bot) {
	t.Helper()
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{Heartbeat: interval})
	return s, newBot(t, s)
}

func TestRun(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	s.Say(discordapi.Post{Text: "one"})
	b.hears("one")
	s.Repeat(2)
	b.beatsNow(3)
	s.Wait("the position", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.saved.Seq == 2 })
	b.stop()
	b.gone()
	s.Say(discordapi.Post{Text: "two"})
	b.start()
	b.hears("one", "two")
	if v := b.did(1); v.Resumed != 1 || v.Paths[1] != "/ws/resume" || b.again != 0 {
		t.Errorf("%+v, %d messages came again", v, b.again)
	}
	b.stop()
	b.gone()
	if v := s.Visits(); len(b.log()) != 0 || !slices.Equal(v.Closes, []int{4900, 4900}) {
		t.Errorf("closed with %d, logged %q", v.Closes, b.log())
	}
}

// TestReadyIsNeverDropped: a READY that is numbered 0, as some servers of Discord's protocol number it, is an event as well.
func TestReadyIsNeverDropped(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{Zero: true})
	b := newBot(t, s)
	b.start()
	s.Wait("READY", func() bool { return slices.Contains(b.happened(), "READY") })
	s.Say(discordapi.Post{Text: "one"})
	b.hears("one")
	s.Close(4000)
	s.Say(discordapi.Post{Text: "two"})
	b.hears("one", "two")
	if v := b.did(1); v.Resumed != 1 || b.again != 0 {
		t.Errorf("%+v, %d messages came again", v, b.again)
	}
}

func TestCloses(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	var said []string
	for _, code := range []int{0, 1000, 1001, 1006, 1011, 4000, 4001, 4002, 4003, 4005, 4008, 4999} {
		s.Close(code)
		said = append(said, fmt.Sprint("after ", code))
		s.Say(discordapi.Post{Text: said[len(said)-1]})
		b.hears(said...)
	}
	if v := b.did(1); slices.Contains(v.Paths[1:], "/ws") {
		t.Errorf("resumed at %v", v.Paths)
	}
	for i, code := range []int{4007, 4009} {
		s.Close(code)
		s.Wait("a new session", func() bool { return s.Visits().Identified == 2+i && s.Connected() })
	}
	b.did(3)
}

func TestRefusals(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	b := newBot(t, s)
	b.use("old", s.URL())
	if err := b.start().end(); !errors.Is(err, api.ErrToken) || len(b.naps()) != 0 {
		t.Errorf("%v after %v", err, b.naps())
	}
	b = newBot(t, s)
	b.Intents |= 1<<15 | 1<<1
	err := b.start().end()
	if !errors.Is(err, gateway.ErrIntents) || !strings.Contains(err.Error(), "turn on Server Members Intent and Message Content Intent") {
		t.Error(err)
	}
	b = newBot(t, s)
	b.saved = gateway.Saved{ID: "1", Resume: "ws" + strings.TrimPrefix(s.URL(), "http") + "/ws", Seq: 1, Intents: b.Intents}
	b.use("old", s.URL())
	if err := b.start().end(); !errors.Is(err, api.ErrToken) || s.Visits().Identified != 0 {
		t.Errorf("%v in answer to RESUME", err)
	}
}

// TestAnswers: what Discord says instead of READY and RESUMED.
func TestAnswers(t *testing.T) {
	s, b := world(t)
	s.Meet(discordapi.Refused, discordapi.AskReconnect, discordapi.Invalid, discordapi.InvalidTrue)
	b.start().connected()
	b.did(4)
	for i, wait := range b.naps() {
		if i == 0 && wait > time.Second || wait > 5*time.Second {
			t.Errorf("waited %v", b.naps())
		}
	}
	for i, answer := range []discordapi.Greeting{discordapi.AskReconnect, discordapi.InvalidTrue, discordapi.Refused} {
		s.Meet(answer, answer)
		s.Lose(func() { s.Op(7, nil) })
		s.Say(discordapi.Post{Text: fmt.Sprint(i)})
		s.Wait("the message", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.heard) == i+1 })
	}
	b.did(4)
	s.Meet(discordapi.Invalid)
	s.Op(7, nil)
	s.Wait("a new session", func() bool { return s.Visits().Identified == 5 && s.Connected() })
	b.hears("0", "1", "2")
}

func TestInvalidSession(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	for _, resumable := range []bool{true, false} {
		before := len(b.naps())
		s.Lose(func() { s.Op(9, resumable) })
		s.Wait("a session", s.Connected)
		if wait := b.naps()[before]; wait < time.Second || wait > 5*time.Second {
			t.Errorf("waited %v after op 9 %v", wait, resumable)
		}
	}
	if v := b.did(2); v.Resumed != 1 {
		t.Errorf("resumed %d times", v.Resumed)
	}
}

// TestNoEnd: a session that never resumes is given up.
func TestNoEnd(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	s.Meet(slices.Repeat([]discordapi.Greeting{discordapi.InvalidTrue}, 5)...)
	s.Op(7, nil)
	s.Wait("a new session", func() bool { return s.Visits().Identified == 2 && s.Connected() })
	if v := b.did(2); v.Resumed != 5 {
		t.Errorf("resumed %d times", v.Resumed)
	}
}

// TestBurst: 500 messages at once, and more than the queue holds while the handler is busy for many heartbeats.
func TestBurst(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{Heartbeat: 10 * beat}) // a busy machine may stand still for one beat, and be disconnected
	b := newBot(t, s)
	b.start().connected()
	var said []string
	say := func(n int) {
		for range n {
			said = append(said, fmt.Sprint(len(said)))
			s.Say(discordapi.Post{Text: said[len(said)-1]})
		}
	}
	say(500)
	b.hears(said...)
	held := make(chan struct{})
	b.set(func() { b.held = held })
	say(1300)
	// heartbeats go on, but past the bound nothing is read, so no acknowledgement either
	s.Wait("heartbeats whose acknowledgement is not read", func() bool {
		beats := b.beaten()
		return s.Visits().Heartbeats > beats+testkit.Full(4, 2)
	})
	b.set(func() { b.held = nil })
	close(held)
	b.hears(said...)
	if v := b.did(1); v.Resumed > 2 { // none, unless the machine stood still for a heartbeat
		t.Errorf("resumed %d times: %q", v.Resumed, b.log())
	}
}

func TestUnknown(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	s.Emit("NEW_EVENT", map[string]any{"a": 1})
	unknown := []any{map[string]any{"type": 1, "components": []any{map[string]any{"type": 99, "id": 1, "new": true}}}}
	s.Say(discordapi.Post{Text: "new components", Raw: map[string]any{
		"components": unknown, "new_field": map[string]any{"components": 1}, "nonce": 1300000000000000001, "referenced_message": map[string]any{"components": unknown},
	}})
	s.Say(discordapi.Post{Text: "after it"})
	b.hears("new components", "after it")
	var events []string
	b.set(func() { events = slices.Clone(b.events) })
	if !slices.Contains(events, "NEW_EVENT") {
		t.Error("an event that nobody knows is lost")
	}
}

// TestHeartbeatsOnRequest: they are answered at once, but not until Discord closes for their number.
func TestHeartbeatsOnRequest(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	b := newBot(t, s)
	b.Random = func() float64 { return .999 }
	b.start().connected()
	for range 300 {
		s.Op(1, nil)
	}
	s.Say(discordapi.Post{Text: "still there"})
	b.hears("still there")
	s.Wait("the answers", func() bool { return s.Visits().Heartbeats >= 41 })
	if v := b.did(1); v.Heartbeats > 60 || v.Resumed != 0 {
		t.Errorf("%d heartbeats, resumed %d times", v.Heartbeats, v.Resumed)
	}
}

// TestSessionLimits: neither Discord's count nor our own is overrun, whatever makes sessions end.
func TestSessionLimits(t *testing.T) {
	s, b := world(t)
	s.Limit(0, 5*time.Hour)
	b.start()
	s.Wait("the wait", func() bool { return len(b.naps()) > 0 })
	if nap := b.naps()[0]; nap < 5*time.Hour || nap > 5*time.Hour+time.Minute || s.Visits().Identified != 0 {
		t.Errorf("waited %v, identified %d times", nap, s.Visits().Identified)
	}
	s.Limit(1000, 0)
	b.connected()
	begin := b.Now()
	for b.Now().Sub(begin) < 90*time.Minute { // a loop of restarts that lose the session at once
		b.kill()
		s.Forget()
		n := s.Visits().Identified
		b.start()
		s.Wait("a session", func() bool { return s.Visits().Identified > n && s.Connected() })
	}
	took := b.Now().Sub(begin)
	if n, most := s.Visits().Identified, 21+int(took/(3*time.Minute)); n > most || n < most-3 {
		t.Errorf("%d sessions in %v, want %d", n, took, most)
	}
}

func TestIntentsChange(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	b.stop()
	b.Intents |= 1 << 9
	b.start()
	s.Wait("a session", func() bool { return s.Visits().Identified == 2 })
	if v := b.did(2); v.Resumed != 0 {
		t.Error("a session with other intents was resumed")
	}
}

// TestAddress: the token goes to no address without TLS but this machine's.
func TestAddress(t *testing.T) {
	for _, address := range []string{"ws://gateway.example", "http://127.0.0.1.example", "wss:", "::"} {
		ctx, cancel := context.WithCancel(context.Background())
		var said []string
		err := gateway.Run(ctx, gateway.Options{
			Saved: gateway.Saved{ID: "1", Resume: address}, Now: time.Now,
			Log:  func(err error) { said = append(said, err.Error()); cancel() },
			REST: api.New(api.Options{}), Save: func(gateway.Saved) {},
		}, func(gateway.Event) {})
		if err != nil || len(said) != 1 || !strings.Contains(said[0], "connect to the gateway: ") {
			t.Errorf("%s: %v, %q", address, err, said)
		}
	}
}

// TestLeaks: connections and runs leave no goroutine and no descriptor.
func TestLeaks(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{Heartbeat: beat})
	b := newBot(t, s)
	b.Patience = beat
	round := func() {
		n := len(s.Visits().Paths)
		s.Meet(discordapi.Refused, discordapi.Mute, discordapi.AskReconnect)
		b.start()
		s.Wait("a session", func() bool { return len(s.Visits().Paths) >= n+4 && s.Connected() })
		s.Close(0)
		s.Wait("a session", func() bool { return len(s.Visits().Paths) >= n+5 && s.Connected() })
		b.stop()
		b.gone()
	}
	count := func() (goroutines, descriptors int) {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(open)
	}
	round()
	var goroutines, descriptors int
	s.Wait("quiet", func() bool {
		g, d := count()
		still := g == goroutines && d == descriptors
		goroutines, descriptors = g, d
		return still
	})
	for range testkit.Full(4, 2) {
		round()
	}
	s.Wait(fmt.Sprintf("%d goroutines and %d descriptors", goroutines, descriptors), func() bool {
		g, d := count()
		return g <= goroutines && d <= descriptors
	})
}
