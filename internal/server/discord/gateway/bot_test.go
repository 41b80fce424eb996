package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

const beat = 150 * time.Millisecond

// bot is the owner of a Run: it handles each message once, by its id, and keeps what is saved.
type bot struct {
	t testing.TB
	s *discordapi.Server
	gateway.Options
	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	saved   gateway.Saved
	lost    bool          // nothing is saved any more, as after a kill
	held    chan struct{} // the handler waits for it
	seen    map[string]bool
	heard   []string
	events  []string
	again   int // messages that came again
	beats   int
	slept   []time.Duration
	logged  []string
	instant time.Time // the clock, that sleep moves
}

// newBot returns a bot that is not running. Its sleeps take a thousandth of their time, at most 10 ms.
func newBot(t testing.TB, s *discordapi.Server) *bot {
	b := &bot{t: t, s: s, seen: map[string]bool{}, instant: time.Now()}
	b.Options = gateway.Options{
		Intents: 1<<12 | 1<<13, Save: b.save, Patience: time.Minute, Sleep: b.sleep,
		Beat: func() { b.set(func() { b.beats++ }) },
		Log:  func(err error) { b.set(func() { b.logged = append(b.logged, err.Error()) }) },
		Now:  func() (now time.Time) { b.set(func() { now = b.instant }); return now },
	}
	b.use(discordapi.Token, s.URL())
	return b
}

// use sets the token and the address of the REST API.
func (b *bot) use(token, base string) {
	b.Token = token
	b.REST = api.New(api.Options{
		Base: base, Token: token, Now: time.Now, HTTP: &http.Transport{DisableKeepAlives: true},
		Sleep: func(context.Context, time.Duration) error { return nil },
	})
}

func (b *bot) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// beaten returns how many acknowledgements of heartbeats were read.
func (b *bot) beaten() (n int) {
	b.set(func() { n = b.beats })
	return n
}

// beatsNow lets Discord ask for so many heartbeats, and waits for the acknowledgements.
func (b *bot) beatsNow(n int) {
	b.t.Helper()
	for range n {
		before := b.beaten()
		b.s.Op(1, nil)
		b.s.Wait("a heartbeat", func() bool { return b.beaten() > before })
	}
}

// happened returns the types of the events so far.
func (b *bot) happened() (types []string) {
	b.set(func() { types = slices.Clone(b.events) })
	return types
}

func (b *bot) sleep(ctx context.Context, d time.Duration) error {
	b.set(func() { b.slept, b.instant = append(b.slept, d), b.instant.Add(d) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(d/1000, 10*time.Millisecond)):
		return nil
	}
}

func (b *bot) save(s gateway.Saved) {
	b.set(func() {
		if !b.lost {
			b.saved = s
		}
	})
}

func (b *bot) handle(e gateway.Event) {
	b.mu.Lock()
	held := b.held
	b.events = append(b.events, e.Type)
	b.mu.Unlock()
	if held != nil {
		<-held
	}
	if e.Type != "MESSAGE_CREATE" {
		return
	}
	m, err := api.Decode[discordgo.Message](e.Data)
	if err != nil {
		b.t.Errorf("%s: %v", e.Data, err)
	}
	b.set(func() {
		if b.seen[m.ID] {
			b.again++
			return
		}
		b.seen[m.ID] = true
		b.heard = append(b.heard, m.Content)
	})
}

// start runs the bot with what was saved; the test ends it if nobody does.
func (b *bot) start() *bot {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	b.set(func() { b.Saved, b.lost = b.saved, false })
	b.cancel, b.ended = cancel, ended
	o := b.Options
	go func() { ended <- gateway.Run(ctx, o, b.handle) }()
	b.t.Cleanup(cancel)
	return b
}

// connected waits until the bot has a session and has heard of it.
func (b *bot) connected() *bot {
	b.t.Helper()
	b.s.Wait("the session", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.events) > 0 && b.s.Connected()
	})
	return b
}

// end waits for the end of Run.
func (b *bot) end() error {
	b.t.Helper()
	select {
	case err := <-b.ended:
		return err
	case <-time.After(2 * time.Minute):
		b.t.Fatal("Run does not end")
		return nil
	}
}

func (b *bot) stop() {
	b.t.Helper()
	b.cancel()
	if err := b.end(); err != nil {
		b.t.Errorf("Run returns %v at the end of its context", err)
	}
}

// kill ends Run and loses what it would save from now on.
func (b *bot) kill() {
	b.set(func() { b.lost = true })
	b.stop()
}

// hears says texts, unless they were said already, and waits until they and nothing else were heard, in order.
func (b *bot) hears(texts ...string) {
	b.t.Helper()
	b.s.Wait("messages", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.heard) >= len(texts)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.heard, texts) {
		b.t.Errorf("heard %d messages, want %d:\n%.2000q\n%.2000q", len(b.heard), len(texts), b.heard, texts)
	}
}

// did checks how often the bot began a session, and that it never closed with a code that ends one.
func (b *bot) did(identified int) discordapi.Visits {
	b.t.Helper()
	v := b.s.Visits()
	if v.Identified != identified || slices.Contains(v.Closes, 1000) || slices.Contains(v.Closes, 1001) {
		b.t.Errorf("identified %d times, want %d; closed with %d; %s", v.Identified, identified, v.Closes, strings.Join(b.log(), "\n"))
	}
	return v
}

func (b *bot) log() (lines []string) {
	b.set(func() { lines = slices.Clone(b.logged) })
	return lines
}

func (b *bot) naps() (list []time.Duration) {
	b.set(func() { list = slices.Clone(b.slept) })
	return list
}

// gone waits until the server has no connection of a bot that does not return by itself.
func (b *bot) gone() { b.s.Wait("the end of the connection", func() bool { return !b.s.Connected() }) }

// rounds is how many random rounds are played: OLLIM_TEST_ROUNDS, or a few.
func rounds(t testing.TB, few int) int {
	text := os.Getenv("OLLIM_TEST_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("OLLIM_TEST_ROUNDS=%s: want a number", text)
	}
	return n
}

// TestRandomFaults plays faults at random while messages arrive; nothing but the session's events is there to find them again.
func TestRandomFaults(t *testing.T) {
	s, b := beating(t, beat)
	b.Patience = 3 * beat
	b.start().connected()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var said []string
	say := func() {
		for range random.IntN(4) {
			said = append(said, fmt.Sprint("message ", len(said)))
			s.Say(discordapi.Post{Text: said[len(said)-1]})
		}
	}
	for round := range rounds(t, 12) {
		say()
		name, undo := b.fault(random, (round+random.IntN(2))%8)
		say()
		undo()
		say()
		b.hears(said...)
		if t.Failed() {
			t.Fatalf("round %d, seed %d: after %s", round, seed, name)
		}
	}
	b.stop()
	b.did(1)
	t.Logf("%d messages, %d again after restarts, %+v", len(said), b.again, s.Visits().Resumed)
}

// fault plays a fault, and returns what ends it.
func (b *bot) fault(random *rand.Rand, kind int) (name string, undo func()) {
	s := b.s
	nothing := func() {}
	switch kind {
	case 0:
		codes := []int{0, 1000, 1001, 1011, 4000, 4001, 4002, 4003, 4005, 4008, 4999}
		code := codes[random.IntN(len(codes))]
		s.Close(code)
		return fmt.Sprint("close ", code), nothing
	case 1:
		s.Op(7, nil)
		return "op 7", nothing
	case 2:
		s.Op(9, true)
		return "op 9 true", nothing
	case 3:
		s.Silence(true)
		return "silence", func() { b.gone(); s.Silence(false) }
	case 4:
		s.Cut()
		return "cut", func() { b.gone(); s.Restore() }
	case 5:
		greetings := []discordapi.Greeting{discordapi.Refused, discordapi.Mute, discordapi.AskReconnect, discordapi.InvalidTrue}
		random.Shuffle(len(greetings), func(i, k int) { greetings[i], greetings[k] = greetings[k], greetings[i] })
		s.Meet(greetings[:1+random.IntN(3)]...)
		s.Close(4000)
		return fmt.Sprint("greetings ", greetings), nothing
	case 6:
		b.kill()
		return "kill", func() { b.start() }
	}
	b.stop()
	return "restart", func() { b.start() }
}

var errOf = map[int]error{
	4004: api.ErrToken, 4010: gateway.ErrRefused, 4011: gateway.ErrRefused, 4012: gateway.ErrRefused, 4013: gateway.ErrIntents, 4014: gateway.ErrIntents,
}

func TestFatalCodes(t *testing.T) {
	for code, want := range errOf {
		b := newBot(t, discordapi.New(t, discordapi.Options{})).start().connected()
		b.s.Close(code)
		if err := b.end(); !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", code, err, want)
		}
		if v := b.did(1); v.Resumed != 0 || len(v.Paths) != 1 {
			t.Errorf("%d: connected again: %+v", code, v)
		}
	}
}
