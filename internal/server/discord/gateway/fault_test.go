package gateway_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/server/discord/gateway"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

func TestSilence(t *testing.T) {
	s, b := beating(t, beat)
	b.Patience = 3 * beat
	b.start().connected()
	before := len(b.log()) // on a busy machine the bot may connect twice
	s.Silence(true)
	s.Say(discordapi.Post{Text: "missed"})
	s.Wait("attempts", func() bool { return len(s.Visits().Paths) > 2 })
	s.Silence(false)
	b.hears("missed")
	s.Wait("the close", func() bool { return slices.Contains(s.Visits().Closes, 4900) })
	if v := b.did(1); !slices.Contains(v.Closes, 4900) || !strings.Contains(b.log()[before], "a heartbeat was not acknowledged") {
		t.Errorf("closed with %d: %q", v.Closes, b.log())
	}
	s.Meet(discordapi.Mute)
	s.Lose(func() { s.Op(7, nil) })
	s.Say(discordapi.Post{Text: "after a mute server"})
	b.hears("missed", "after a mute server")
	b.did(1)
}

// TestSilentStart: servers that say nothing before a session has begun.
func TestSilentStart(t *testing.T) {
	s, b := world(t)
	b.Patience = 2 * beat
	s.Meet(discordapi.Mute)
	s.Silence(true)
	b.start()
	s.Wait("attempts", func() bool { return len(s.Visits().Paths) > 2 })
	s.Silence(false)
	b.connected()
	if !slices.ContainsFunc(b.log(), func(line string) bool { return strings.Contains(line, "the gateway does not answer") }) {
		t.Errorf("%q", b.log())
	}
}

// deaf accepts connections, reports them to accepted, and says nothing.
func deaf(t *testing.T) (address string, accepted chan bool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	accepted = make(chan bool, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			accepted <- true
		}
	}()
	return l.Addr().String(), accepted
}

// TestElsewhere: a session whose address is dead is resumed at the address of new ones.
func TestElsewhere(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	b.stop()
	s.Say(discordapi.Post{Text: "missed"})
	silent, _ := deaf(t)
	b.saved.Resume = "ws://" + silent
	b.Patience = 20 * beat // the other address answers in time, also where the machine is busy
	b.start()
	b.hears("missed")
	if v := b.did(1); v.Resumed != 1 || v.Paths[1] != "/ws" {
		t.Errorf("%+v", v)
	}
}

// TestEnd: the end of the context ends every wait, long before patience does.
func TestEnd(t *testing.T) {
	s, b := world(t)
	b.Patience = time.Hour
	silent, accepted := deaf(t)
	for name, set := range map[string]func(){
		"the REST API":     func() { b.use(discordapi.Token, "http://"+silent); b.saved = gateway.Saved{} },
		"the handshake":    func() { b.saved = gateway.Saved{ID: "1", Resume: "ws://" + silent, Intents: b.Intents} },
		"HELLO":            func() { s.Meet(discordapi.Mute); b.saved = gateway.Saved{} },
		"READY":            func() { s.Silence(true); b.saved = gateway.Saved{} },
		"a session's time": func() { s.Limit(0, 24*time.Hour); b.saved = gateway.Saved{} },
	} {
		b.use(discordapi.Token, s.URL())
		s.Limit(1000, 0)
		s.Silence(false)
		set()
		visits, naps := len(s.Visits().Paths), len(b.naps())
		b.start()
		switch name {
		case "HELLO", "READY":
			s.Wait(name, func() bool { return len(s.Visits().Paths) > visits })
		case "a session's time":
			s.Wait(name, func() bool { return len(b.naps()) > naps })
		default:
			<-accepted
		}
		b.stop()
	}
}

func TestBackoff(t *testing.T) {
	s, b := world(t)
	b.Random = func() float64 { return 1 - 1e-12 }
	b.start().connected()
	b.beatsNow(1)
	s.Cut()
	s.Say(discordapi.Post{Text: "missed"})
	s.Wait("attempts", func() bool { return len(b.naps()) >= 8 })
	for i, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := b.naps()[i].Round(time.Millisecond); got != time.Duration(want)*time.Second {
			t.Errorf("wait %d is %v, want %d s", i, got, want)
		}
	}
	s.Restore()
	b.hears("missed")
	b.beatsNow(2)
	before := len(b.naps())
	s.Op(7, nil)
	s.Wait("the wait", func() bool { return len(b.naps()) > before })
	if got := b.naps()[before].Round(time.Millisecond); got != time.Second {
		t.Errorf("the first wait after a session that held is %v", got)
	}
	b.did(1)
}

// TestClockJump: a day forwards and two days back change nothing of a session, nor of when the next one may begin.
func TestClockJump(t *testing.T) {
	s, b := beating(t, 4*beat)
	b.start().connected()
	var said []string
	for _, jump := range []time.Duration{24 * time.Hour, -48 * time.Hour} {
		b.set(func() { b.instant = b.instant.Add(jump) })
		beats := s.Visits().Heartbeats
		s.Wait("heartbeats", func() bool { return s.Visits().Heartbeats > beats+2 })
		said = append(said, jump.String())
		s.Say(discordapi.Post{Text: jump.String()})
		b.hears(said...)
	}
	if v := b.did(1); v.Resumed > 2 { // none, unless the machine stood still for a heartbeat
		t.Errorf("resumed %d times: %q", v.Resumed, b.log())
	}
	b.set(func() { b.instant = b.instant.Add(-240 * time.Hour) })
	s.Op(9, false)
	s.Wait("a new session", func() bool { return s.Visits().Identified == 2 && s.Connected() })
	for _, nap := range b.naps() {
		if nap > 5*time.Second {
			t.Errorf("waited %v", b.naps())
		}
	}
}

// TestKill: what was handled and not saved comes again; what was not handled comes.
func TestKill(t *testing.T) {
	s, b := world(t)
	b.start().connected()
	s.Say(discordapi.Post{Text: "saved"})
	s.Wait("the position", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.saved.Seq == 2 })
	b.set(func() { b.lost = true })
	s.Say(discordapi.Post{Text: "handled"})
	b.hears("saved", "handled")
	held := make(chan struct{})
	b.set(func() { b.held = held })
	s.Say(discordapi.Post{Text: "in the handler"})
	s.Say(discordapi.Post{Text: "in the queue"})
	s.Wait("the handler", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.events) == 4 })
	b.cancel()
	b.set(func() { b.held = nil })
	close(held)
	b.stop()
	b.start()
	b.hears("saved", "handled", "in the handler", "in the queue")
	if b.did(1); b.again != 2 {
		t.Errorf("%d came again, want 2", b.again)
	}
}
