package cli

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// trouble is a listener that meets random faults.
type trouble struct {
	*bot
	*rand.Rand
	said []string
	last string // id of the newest message
	back bool   // the clock was set back, so runs are not listed in their order
}

// TestListenThroughFaults: whatever happens to the gateway and to requests while the owner writes, each message is asked once, in
// order, each turn has one whole answer, and nothing is left that says that the agent works.
// Rounds are mostly waiting: with many of them, run the test with -parallel 10.
func TestListenThroughFaults(t *testing.T) {
	worlds, rounds, slow := 3, 1, false
	if text := os.Getenv("OLLIM_TEST_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("OLLIM_TEST_ROUNDS=%s: want a number", text)
		}
		worlds = min(n, 10)
		rounds, slow = (n+worlds-1)/worlds, true
	}
	for range worlds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			throughFaults(t, rand.New(rand.NewPCG(seed, 0)), rounds, slow)
		})
	}
}

func throughFaults(t *testing.T, random *rand.Rand, rounds int, slow bool) {
	w, s := onDiscord(t, discordapi.Options{Heartbeat: 300 * time.Millisecond})
	w.script("turns:\n  - - text: It begins\n    - delay: 30ms\n    - text: and ends.\n")
	tr := &trouble{bot: w.listen(s), Rand: random}
	for range rounds {
		began := time.Now()
		tr.says(0)
		name := tr.fault(slow)
		tr.says(1)
		tr.answered()
		t.Logf("%s: answered after %s", name, time.Since(began).Round(time.Millisecond))
		if t.Failed() {
			break
		}
	}
	tr.end()
	tr.check()
}

// says says a few messages at random moments.
func (tr *trouble) says(least int) {
	for range least + tr.IntN(3) {
		text := fmt.Sprint("message ", len(tr.said))
		tr.said = append(tr.said, text)
		tr.last = tr.Say(discordapi.Post{Text: text})
		time.Sleep(time.Duration(tr.IntN(50)) * time.Millisecond) // any moment
	}
}

// fault plays a fault with messages during it, and returns its name. Some take seconds: only if slow is set.
func (tr *trouble) fault(slow bool) string {
	kinds := []func() string{tr.closes, tr.asks, tr.silence, tr.cut, tr.requests, tr.requests, tr.requests, tr.repeat, tr.restart}
	if slow {
		kinds = append(kinds, tr.forget)
	}
	return kinds[tr.IntN(len(kinds))]()
}

func (tr *trouble) closes() string {
	codes := []int{0, 1000, 1001, 1011, 4000, 4001, 4002, 4003, 4005, 4008, 4999}
	code := codes[tr.IntN(len(codes))]
	tr.Close(code)
	tr.says(0)
	return fmt.Sprint("close ", code)
}

func (tr *trouble) asks() string {
	if tr.IntN(2) == 0 {
		tr.Meet(discordapi.Refused, discordapi.AskReconnect)
	}
	if tr.IntN(2) == 0 {
		tr.Op(7, nil)
		tr.says(0)
		return "op 7"
	}
	tr.Op(9, true)
	tr.says(0)
	return "op 9, resumable"
}

func (tr *trouble) forget() string {
	tr.Op(9, false)
	tr.says(0)
	return "op 9"
}

func (tr *trouble) silence() string {
	tr.Silence(true)
	tr.says(0)
	tr.Silence(false)
	return "silence"
}

func (tr *trouble) cut() string {
	tr.Cut()
	tr.says(0)
	time.Sleep(time.Duration(tr.IntN(500)) * time.Millisecond) // any moment
	tr.Restore()
	return "cut"
}

func (tr *trouble) repeat() string {
	tr.says(1)
	tr.Repeat(5)
	return "events again"
}

// restart ends the listener, perhaps during a turn, and starts it again.
func (tr *trouble) restart() string {
	tr.says(0)
	tr.end()
	tr.says(0)
	tr.bot = tr.w.begin(tr.Server)
	return "restart"
}

// requests lets requests fail.
func (tr *trouble) requests() string {
	faults := []discordapi.Fault{
		{Status: http.StatusBadGateway, Times: 1 + tr.IntN(6)},
		{Status: 0, Applied: true, Times: 1 + tr.IntN(3)},
		{Status: 0, Times: 1 + tr.IntN(3)},
		{Method: "POST", Path: "/messages", Status: 0, Applied: true, Times: 1 + tr.IntN(4)},
		{Method: "PATCH", Status: http.StatusServiceUnavailable, Applied: tr.IntN(2) == 0, Times: 1 + tr.IntN(4)},
		{Method: "PUT", Path: "/reactions/", Status: 0, Applied: true, Times: 1 + tr.IntN(4)},
		{Method: "DELETE", Path: "/reactions/", Status: http.StatusBadGateway, Times: 1 + tr.IntN(4)},
		{Status: http.StatusTooManyRequests, After: time.Duration(tr.IntN(400)) * time.Millisecond, Global: tr.IntN(2) == 0},
	}
	fault := faults[tr.IntN(len(faults))]
	tr.Fail(fault)
	tr.says(1)
	return fmt.Sprintf("%+v", fault)
}

// answered waits until all messages are answered.
func (tr *trouble) answered() {
	tr.w.t.Helper()
	tr.Wait("the answers", func() bool {
		noted := tr.w.read("state/discord.json")
		return strings.Contains(noted, tr.last) && !strings.Contains(noted, `"open"`) && len(tr.settled(discordapi.DM)) > 0
	})
}

// check checks what the owner sees and what the agent was asked.
func (tr *trouble) check() {
	t := tr.w.t
	got := tr.w.asked()
	if tr.back {
		slices.Sort(got)
	}
	if !slices.Equal(got, tr.said) {
		t.Errorf("asked %q", got)
	}
	answers := map[string]int{}
	for _, r := range tr.w.runs() {
		list, _ := r["answers"].([]any)
		if len(list) == 0 || r["outcome"] != "ok" {
			t.Errorf("a run %v", r)
			continue
		}
		answers[fmt.Sprint(list[0])]++
	}
	texts := tr.Said(discordapi.DM)
	if len(texts) != len(answers) {
		t.Errorf("%d messages for %d turns: %q", len(texts), len(answers), texts)
	}
	for _, m := range tr.Messages(discordapi.DM) {
		if m.Author.ID != discordapi.Bot {
			continue
		}
		if late := m.Reference == nil && m.Content == "and ends."; m.Content != "It begins\n\nand ends." && !late { // late: by way of the outbox
			t.Errorf("said %q", m.Content)
		}
		if m.Reference != nil {
			if answers[m.Reference.Message]--; answers[m.Reference.Message] != 0 {
				t.Errorf("not one answer to the message %s: %+d", m.Reference.Message, answers[m.Reference.Message])
			}
		}
	}
}
