package cli

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// TestListenThroughEachFault plays one fault of each kind between messages: each message is asked once, in order, and has one answer.
func TestListenThroughEachFault(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*trouble){
		"op 7":                   func(tr *trouble) { tr.Op(7, nil) },
		"op 7 twice in answer":   func(tr *trouble) { tr.meets(discordapi.AskReconnect, discordapi.AskReconnect) },
		"op 7 to a new session":  func(tr *trouble) { tr.Forget(); tr.meets(discordapi.Invalid, discordapi.AskReconnect) },
		"op 9, resumable":        func(tr *trouble) { tr.Op(9, true) },
		"op 9":                   func(tr *trouble) { tr.Op(9, false) },
		"op 9 in answer":         func(tr *trouble) { tr.meets(discordapi.Invalid) },
		"503 instead of a hello": func(tr *trouble) { tr.meets(discordapi.Refused) },
		"silence": func(tr *trouble) {
			before := len(tr.Visits().Closes)
			tr.Silence(true)
			tr.says(1)
			tr.Wait("the end of the connection", func() bool { return len(tr.Visits().Closes) > before })
			tr.Silence(false)
		},
		"the network is cut": func(tr *trouble) {
			tr.Cut()
			tr.says(1)
			tr.Wait("two attempts", func() bool { return strings.Count(tr.errOut.String(), "\n") >= 2 })
			tr.Restore()
		},
		"429": func(tr *trouble) {
			tr.Fail(discordapi.Fault{Status: http.StatusTooManyRequests, After: 400 * time.Millisecond, Times: 3})
		},
		"429, global": func(tr *trouble) {
			tr.Fail(discordapi.Fault{Status: http.StatusTooManyRequests, After: 400 * time.Millisecond, Times: 3, Global: true})
		},
		"a burst of 502":   func(tr *trouble) { tr.Fail(discordapi.Fault{Status: http.StatusBadGateway, Times: 8}) },
		"a burst of 500":   func(tr *trouble) { tr.Fail(discordapi.Fault{Status: http.StatusInternalServerError, Times: 8}) },
		"answers are lost": func(tr *trouble) { tr.Fail(discordapi.Fault{Applied: true, Times: 6}) },
		"the clock jumps": func(tr *trouble) {
			tr.w.pass(24 * time.Hour)
			tr.says(1)
			tr.answered()
			tr.w.pass(-48 * time.Hour)
			tr.back = true
		},
		"unknown fields and components": func(tr *trouble) {
			tr.Emit("NEW_EVENT", map[string]any{"a": 1})
			unknown := []any{map[string]any{"type": 1, "components": []any{map[string]any{"type": 99, "new": true}}}}
			text := fmt.Sprint("message ", len(tr.said))
			tr.said = append(tr.said, text)
			tr.last = tr.Say(discordapi.Post{Text: text, Raw: map[string]any{
				"components": unknown, "new_field": map[string]any{"components": 1}, "referenced_message": map[string]any{"components": unknown},
			}})
		},
		"events come again": func(tr *trouble) { tr.Repeat(5) },
	}
	for _, code := range []int{0, 1000, 1001, 1011, 4000, 4001, 4002, 4003, 4005, 4007, 4008, 4009, 4999} {
		faults[fmt.Sprint("close ", code)] = func(tr *trouble) { tr.Close(code) }
	}
	var together sync.WaitGroup // not t.Parallel: they do little but wait
	defer together.Wait()
	for name, fault := range faults {
		together.Go(func() {
			t.Run(name, func(t *testing.T) { throughFault(t, fault) })
		})
	}
}

func throughFault(t *testing.T, fault func(*trouble)) {
	w, s := onDiscord(t, discordapi.Options{Heartbeat: 300 * time.Millisecond, Unlimited: true})
	w.script("turns:\n  - - text: It begins\n    - delay: 30ms\n    - text: and ends.\n")
	tr := &trouble{bot: w.listen(s), Rand: rand.New(rand.NewPCG(1, 0))}
	tr.says(1)
	fault(tr)
	tr.says(2)
	tr.answered()
	tr.end()
	tr.check()
}

// TestListenEndsAtFatalCodes: closes after which a bot must not come back end the listener, and say why.
func TestListenEndsAtFatalCodes(t *testing.T) {
	for _, code := range []int{4004, 4010, 4011, 4012, 4013, 4014} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w, s := onDiscord(t, discordapi.Options{})
			b := w.begin(s)
			s.Wait("the listener", s.Connected)
			s.Close(code)
			if status := <-b.ended; status != 78 || !strings.Contains(b.errOut.String(), "ollim: ") {
				t.Errorf("%d: %s", status, b.errOut)
			}
			close(b.ended)
			if v := s.Visits(); len(v.Paths) != 1 {
				t.Errorf("came back: %+v", v)
			}
		})
	}
}

// meets sets what the next connections meet, and makes the bot connect.
func (tr *trouble) meets(greetings ...discordapi.Greeting) {
	tr.Meet(greetings...)
	tr.Op(7, nil)
}
