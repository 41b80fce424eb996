package cli

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/server/discord"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// TestListenStopsAfterTheTurn: a listener that is stopped during a turn shows the end of its answer first, and the next one resumes
// the session of the gateway.
func TestListenStopsAfterTheTurn(t *testing.T) {
	t.Parallel()
	w, s := onDiscord(t, discordapi.Options{})
	w.script("turns:\n  - - text: It begins\n    - delay: 400ms\n    - text: and ends.\n  - - text: Once more.\n")
	b := w.listen(s)
	asked := b.Say(discordapi.Post{Text: "Hello!"})
	b.says("It begins")
	b.end()
	if got := s.Said(discordapi.DM); !slices.Equal(got, []string{"It begins\n\nand ends."}) {
		t.Errorf("said %q", got)
	}
	if r := s.Message(asked).Reactions; len(r["👀"])+len(r["⏳"]) > 0 {
		t.Errorf("reactions %v", r)
	}
	s.Say(discordapi.Post{Text: "Are you there?"})
	b = w.listen(s)
	b.answers(discordapi.DM, 2)
	b.end()
	if got := s.Said(discordapi.DM); !slices.Equal(got, []string{"It begins\n\nand ends.", "Once more."}) {
		t.Errorf("said %q", got)
	}
	if v := s.Visits(); v.Identified != 1 || v.Resumed != 1 || slices.Contains(v.Closes, 1000) || slices.Contains(v.Closes, 1001) {
		t.Errorf("%+v", v)
	}
}

// says waits until a message of the bot's contains a text.
func (b *bot) says(text string) {
	b.w.t.Helper()
	b.Wait(text, func() bool { return strings.Contains(strings.Join(b.Said(discordapi.DM), "\n"), text) })
}

// TestListenCutsOffTheTurn: a turn that takes longer than a stop may is cut off; the next start says so, and the next turn reads its
// message.
func TestListenCutsOffTheTurn(t *testing.T) {
	t.Parallel()
	w, s := onDiscord(t, discordapi.Options{})
	w.script("turns:\n  - - text: It begins\n    - delay: 1h\n  - - text: Once more.\n")
	d := w.deps(strings.NewReader(""), &bytes.Buffer{}, &safeBuffer{})
	h := homeOf(t, d)
	o, err := d.listener(h)
	if err != nil {
		t.Fatal(err)
	}
	o.Grace = time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- discord.Run(ctx, o) }()
	s.Wait("the listener", s.Connected)
	asked := s.Say(discordapi.Post{Text: "Hello!"})
	s.Wait("the turn", func() bool { return strings.Contains(strings.Join(s.Said(discordapi.DM), ""), "It begins") })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b := w.listen(s)
	b.says("ollim was restarted during this turn, and the answer was cut off. Your message is kept")
	b.Say(discordapi.Post{Text: "Are you there?"})
	b.says("Once more.")
	b.Wait("the end", func() bool { return len(b.settled(discordapi.DM)) > 0 })
	b.end()
	w.wants(w.prompt(), "Hello!", "Are you there?")
	if m := s.Message(asked); len(m.Reactions["👀"]) > 0 {
		t.Errorf("reactions %v", m.Reactions)
	}
	if v := s.Visits(); v.Identified != 1 {
		t.Errorf("%+v", v)
	}
}

// manager is a service manager that is notified.
type manager struct {
	mu    sync.Mutex
	lines []string
}

func newManager(t *testing.T, path string) *manager {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	m := &manager{}
	go func() {
		data := make([]byte, 4096)
		for {
			n, err := c.Read(data)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.lines = append(m.lines, strings.Split(string(data[:n]), "\n")...)
			m.mu.Unlock()
		}
	}()
	return m
}

// count returns how often a state was received.
func (m *manager) count(state string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines {
		if line == state {
			n++
		}
	}
	return n
}

// TestListenFeedsTheWatchdog: systemd is told that the listener is ready when it is connected, and that it is well while its
// heartbeats are acknowledged: one that hears nothing feeds no watchdog, whatever it does to be heard again.
func TestListenFeedsTheWatchdog(t *testing.T) {
	t.Parallel()
	w, s := onDiscord(t, discordapi.Options{Heartbeat: 100 * time.Millisecond})
	path := filepath.Join(t.TempDir(), "notify")
	m := newManager(t, path)
	w.env["NOTIFY_SOCKET"] = path
	b := w.begin(s)
	s.Wait("readiness", func() bool { return m.count("READY=1") == 1 })
	if s.Visits().Identified == 0 {
		t.Error("ready before it is connected")
	}
	s.Wait("heartbeats", func() bool { return m.count("WATCHDOG=1") > 3 })
	closes := len(s.Visits().Closes)
	s.Silence(true)
	s.Wait("the end of the connection that heard nothing", func() bool { return len(s.Visits().Closes) > closes })
	fed := m.count("WATCHDOG=1")
	if most := s.Visits().Heartbeats + m.count("READY=1"); fed > most {
		t.Errorf("the watchdog was fed %d times for %d acknowledgements", fed, most)
	}
	s.Silence(false)
	s.Wait("heartbeats", func() bool { return m.count("WATCHDOG=1") > fed+1 })
	b.end()
	s.Wait("the end", func() bool { return m.count("STOPPING=1") == 1 })
}
