package channel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// start is the time of the first message of the tests, in the zone of the owner.
var start = time.Date(2026, 2, 14, 2, 30, 0, 250_000_000, time.FixedZone("PST", -8*3600))

// world is a data directory with a clock and the warnings of a process.
type world struct {
	t    *testing.T
	book Book

	mu       sync.Mutex
	now      time.Time
	warnings []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: start}
	w.book = Book{Home: paths.Dir(testkit.MemoryDir(t)), Disk: store.Disk{Now: w.clock, Warn: w.warn, Locks: &lock.Table{}}, Cache: &Cache{}}
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) warn(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

func (w *world) warned() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.warnings...)
}

func name(t testing.TB, channelName, chat string) Name {
	t.Helper()
	n, err := NewName(channelName, chat)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// telegram is the session of most tests.
func telegram(t testing.TB) Name { t.Helper(); return name(t, "telegram", "123456789") }

// begin opens a turn with a message.
func (w *world) begin(n Name, text string) *Turn {
	w.t.Helper()
	turn, err := w.book.Open(n)
	if err != nil {
		w.t.Fatal(err)
	}
	turn.Begin(w.t.Context(), text, w.clock())
	return turn
}

// say takes a whole turn.
func (w *world) say(n Name, text, answer string) {
	w.t.Helper()
	turn := w.begin(n, text)
	turn.Answer(answer)
	if err := turn.End(); err != nil {
		w.t.Fatal(err)
	}
}

// Session is a session as it is on disk.
func (w *world) session(n Name) Session {
	w.t.Helper()
	b := w.book
	b.Cache = nil
	s, err := b.Read(n)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) path(n Name) string { return w.book.Home.Channel(n.String()) }

func (w *world) text(n Name) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(n))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) write(n Name, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(n)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(n), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// brief returns messages as words such as `user:hi` and `assistant:well+price(failed)`.
func brief(messages []Message) string {
	var words []string
	for _, m := range messages {
		word := m.Role + ":" + m.Content
		for _, c := range m.ToolCalls {
			word += "+" + c.Name
			if c.Failed {
				word += "(failed)"
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func wantBrief(t *testing.T, got []Message, want string) {
	t.Helper()
	if brief(got) != want {
		t.Errorf("got  %s\nwant %s", brief(got), want)
	}
}

// inTurn calls do under the lock of a session, as the runner does.
func inTurn(ctx context.Context, b Book, n Name, do func(*Turn) error) error {
	guard, err := b.Disk.Locks.WaitGuard(ctx, b.Home.ConversationLock(n.Key()))
	if err != nil {
		return err
	}
	defer guard.Release()
	turn, err := b.Open(n)
	if err != nil {
		return err
	}
	err = do(turn)
	if endErr := turn.End(); err == nil {
		err = endErr
	}
	return err
}

// numbered fills a number into a text.
func numbered(format string, n int) string { return fmt.Sprintf(format, n) }
