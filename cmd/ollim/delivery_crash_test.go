package main

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
)

// rounds is how many rounds a crash test plays: OLLIM_TEST_ROUNDS, or what is given.
func rounds(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv("OLLIM_TEST_ROUNDS")
	if text == "" {
		return testkit.Full(few, (few+3)/4)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("OLLIM_TEST_ROUNDS=%s: want a number", text)
	}
	return n
}

// receiver is a delivery command that keeps what it reads as received/ID.PID. The first line of the file moments says when it
// kills the ollim that started it: before it reads, after that, or never.
const receiver = `#!/bin/sh
moment=$(head -n 1 moments 2> /dev/null)
sed -i 1d moments 2> /dev/null
[ "$moment" = before ] && { kill -9 $PPID; while kill -0 $PPID 2> /dev/null; do sleep 0.01; done; }
cat > "reading.$$"
mv "reading.$$" "received/$OLLIM_MESSAGE_ID.$$"
[ "$moment" = after ] && kill -9 $PPID
exit 0
`

// TestKillDuringDelivery kills fires and ticks with -9 while they deliver: before the delivery command has read anything, after
// it has read all, and at random moments. Every attempt has the whole text, one id always has one text, and a receiver that
// drops messages of an id that it knows still gets the answer, and the notice that its run was cut off.
func TestKillDuringDelivery(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	text := strings.Repeat("0123456789abcdef", 18_750) // more than a pipe holds
	c.write("big.yaml", "turns:\n  - - text: "+text+"\n")
	c.write("receive", receiver)
	if err := os.Chmod(filepath.Join(c.data, "receive"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("config", "set", "delivery.command", filepath.Join(c.data, "receive"))
	c.write("routines/answer.md", "---\nid: answer\ncron: \"0 9 * * *\"\nengine: script:big.yaml\n---\nGo.\n")
	if err := os.Mkdir(filepath.Join(c.data, "received"), 0o700); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewSource(18))
	killed := map[string]int{}
	for round := range rounds(t, 8) {
		moment := []string{"before", "after", "random", "before\nafter\nafter"}[round%4]
		limit := time.Minute
		if moment == "random" {
			limit = time.Duration(random.Intn(60_000)) * time.Microsecond
			moment = "none"
		}
		c.write("moments", moment+"\n")
		for _, name := range []string{"sessions.json", "ledger", "checkpoint.json"} { // or the session would become long, and one notice count for all rounds
			if err := os.RemoveAll(filepath.Join(c.data, "state", name)); err != nil {
				t.Fatal(err)
			}
		}
		cut := killAfter(c.cmd("fire", "answer"), limit) == -1
		if cut {
			killed[moment]++
		}
		c.outboxEmpties()
		c.received(text, cut, moment != "none")
	}
	t.Logf("killed: %v", killed)
	for _, moment := range []string{"before", "after"} {
		if killed[moment] == 0 {
			t.Errorf("no fire was killed %s the command read its text", moment)
		}
	}
	c.stateParses()
	c.everyRunEnded()
}

// outboxEmpties runs ticks, some of which the delivery command kills, until every message has been delivered.
func (c *command) outboxEmpties() {
	c.t.Helper()
	for range 50 {
		tick := c.cmd("tick")
		out, err := tick.CombinedOutput()
		if s := status(err); s != 0 && s != -1 {
			c.t.Fatalf("tick: exit status %d: %s", s, out)
		}
		left, globErr := filepath.Glob(filepath.Join(c.data, "state/outbox/*"))
		drafts, draftErr := filepath.Glob(filepath.Join(c.data, "state/outbox/.*"))
		if globErr != nil || draftErr != nil {
			c.t.Fatal(globErr, draftErr)
		}
		if err == nil && len(left)+len(drafts) == 0 {
			return
		}
	}
	c.t.Fatal("the outbox does not become empty")
}

// received checks what the receiver has kept of the latest run, and forgets it.
func (c *command) received(text string, cut, sent bool) {
	c.t.Helper()
	home := "HOME=" + c.data // which a delivery command has, and no OLLIM_DATA_DIR
	eventually(c.t, "the orphaned delivery command has ended", func() bool { return len(process.Carrying(home)) == 0 })
	files, err := filepath.Glob(filepath.Join(c.data, "received/*"))
	if err != nil {
		c.t.Fatal(err)
	}
	answers, notices := 0, 0
	byID := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		id := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		before, again := byID[id]
		switch body := string(data); {
		case again && before != body:
			c.t.Errorf("%s has two texts, of %d and %d bytes: %.60q", id, len(before), len(body), body)
		case again:
		case body == text+"\n":
			answers++
		case strings.Contains(body, "was cut off before it ended"):
			notices++
		default:
			c.t.Errorf("%s: %d bytes: %.60q", id, len(body), body)
		}
		byID[id] = string(data)
		if err := os.Remove(file); err != nil {
			c.t.Fatal(err)
		}
	}
	if !cut && answers != 1 || sent && answers != 1 || answers > 1 {
		c.t.Errorf("the answer was received %d times", answers)
	}
	record := c.ok("run", "list", "-n", "1", "--json")
	if cutOff := strings.Contains(record, `"outcome":"interrupted"`); notices > 1 || cutOff != (notices == 1) && sent {
		c.t.Errorf("%d notices; the run: %s", notices, fmt.Sprintf("%.300s", record))
	}
}
