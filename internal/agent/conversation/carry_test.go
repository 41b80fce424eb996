package conversation

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// shelf is an archive in memory.
type shelf map[string][]transcript.Entry

func (shelf) Holder(id string) string { return engine.Holder(id) }

func (s shelf) Entries(id string) ([]transcript.Entry, error) {
	if s[id] == nil {
		return nil, transcript.ErrUnknown
	}
	return s[id], nil
}

// TestCarryOfSeveralEngines: an engine that is used again is told once and in order what was said since with all others, and nothing
// that it knows. An answer has the time of its prompt, and a prompt may have that of its run.
func TestCarryOfSeveralEngines(t *testing.T) {
	const native, claude = "n-6db31bf34ffa", "9a01ae04-4896-4a76-b2fd-8607212fd041"
	names := map[string]string{"s": "s-eb977b14", "n": native, "c": claude}
	kinds := map[string]string{"s": engine.Script, "n": engine.Native, "c": engine.ClaudeCode}
	for turns, want := range map[string]string{ // the engine of each turn; the turns that the message of the last one repeats
		"s n":           "0",
		"s n s":         "1",
		"s n c":         "0 1",
		"s n c s":       "1 2",
		"s s n n c c s": "2 3 4 5",
		"s c s n c":     "2 3",
		"s n c n s":     "1 2 3",
		"s n c s n":     "2 3",
		"s n s c s n":   "2 3 4",
	} {
		t.Run(turns, func(t *testing.T) {
			dir := paths.Dir(t.TempDir())
			sessions := session.Book{Home: dir, Zone: time.UTC, Disk: store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}}
			archive := shelf{}
			book := Book{Sessions: sessions, Archive: archive}
			now, at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), ""
			last := len(strings.Fields(turns)) - 1
			for i, e := range strings.Fields(turns) {
				h, err := book.Open(t.Context(), &Main{Sessions: sessions}, kinds[e])
				if err != nil {
					t.Fatal(err)
				}
				c, err := book.carried(h)
				if err != nil {
					t.Fatal(err)
				}
				var text string
				if c != nil {
					text = "[2026-03-02 Mon 09:00 AM UTC]\n\n" + c.Section()
				}
				if i == last {
					if got := repeated(text); got != want {
						t.Errorf("turns %q are repeated, not %q:\n%s", got, want, text)
					}
					return
				}
				id := names[e]
				asked := transcript.Entry{Message: transcript.Said(transcript.User, text+"\n\nturn-"+string(rune('0'+i))+"\n")}
				if now = now.Add(time.Minute); e == "s" {
					asked.Run = now.Format("20060102T150405.000Z") + "-123456"
				} else {
					asked.At = now
				}
				archive[id] = append(archive[id], asked, transcript.Entry{Message: transcript.Said(transcript.Assistant, "answer")})
				if id != at {
					kind := session.Created
					if h.back {
						kind = session.Swapped
					}
					event := session.Event{SessionID: id, Event: kind, ParentSessionID: at, Timestamp: now.Add(time.Second)}
					if err := sessions.Log(t.Context(), event); err != nil {
						t.Fatal(err)
					}
				}
				if err := sessions.SetMain(id); err != nil {
					t.Fatal(err)
				}
				at = id
			}
		})
	}
}

// repeated returns the numbers of the turns in a text, in its order.
func repeated(text string) string {
	var list []string
	for _, part := range strings.Split(text, "turn-")[1:] {
		list = append(list, part[:1])
	}
	return strings.Join(list, " ")
}
