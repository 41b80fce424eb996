package main

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// tcpLink is the way to a service that can break: while it is down, open connections end and new ones are closed at once.
type tcpLink struct {
	net.Listener
	to string

	sent atomic.Int64 // bytes that came back from the address

	mu   sync.Mutex
	down bool
	open map[net.Conn]bool
}

// counter counts what is written through it.
type counter struct {
	net.Conn
	sent *atomic.Int64
}

func (c counter) Write(part []byte) (int, error) {
	n, err := c.Conn.Write(part)
	c.sent.Add(int64(n))
	return n, err
}

// newLink returns a link to an address. It ends with the test.
func newLink(t testing.TB, to string) *tcpLink {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &tcpLink{Listener: l, to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = l.Close(); made.set(true) })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go made.pass(in)
		}
	}()
	return made
}

func (l *tcpLink) pass(in net.Conn) {
	out, err := net.Dial("tcp", l.to)
	if err != nil || !l.keep(in, out) {
		_ = in.Close()
		return
	}
	copied := func(to, from net.Conn) { _, _ = io.Copy(to, from); _ = to.Close(); _ = from.Close() }
	go copied(out, in)
	copied(counter{in, &l.sent}, out)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, in)
	delete(l.open, out)
}

// keep registers the ends of a connection. It reports whether the link is up.
func (l *tcpLink) keep(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range ends {
		if l.down {
			_ = c.Close()
		} else {
			l.open[c] = true
		}
	}
	return !l.down
}

// set takes the link down, or up again.
func (l *tcpLink) set(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for c := range l.open {
		if down {
			_ = c.Close()
		}
	}
}

// TestKillBehindTheGateway kills, at random moments of a fire whose three answers stream slowly, the claude command, the ollim that holds
// its gateway, or every connection to the service. The fire ends, nothing of it is left, what is booked is between what was answered and
// that plus what one open request may cost, and the next fire works. OLLIM_TEST_ROUNDS raises the few rounds.
func TestKillBehindTheGateway(t *testing.T) {
	t.Parallel()
	if os.Getenv("OLLIM_TEST_ROUNDS") == "" {
		anthropicapi.InCI(t)
	}
	rounds := rounds(t, 6)
	for lane, sealed := range []string{"auto", "off"} { // a claude that is not sealed outlives its ollim
		t.Run("seal "+sealed, func(t *testing.T) {
			t.Parallel()
			newGatewayKill(t, sealed, int64(lane)).play((rounds + 1) / 2)
		})
	}
}

// gatewayKill is a data directory whose fires are killed.
type gatewayKill struct {
	*command
	api    *anthropicapi.Server
	link   *tcpLink
	random *rand.Rand
	sealed bool
	slow   atomic.Bool // the fire is one to be killed
	ended  map[string]int
	spent  float64 // USD that the runs have cost
}

const killedModel = "claude-opus-4-8" // whose price all tested versions know

// answered is what the service reports for each answer.
func answered() anthropicapi.Usage { return anthropicapi.Usage{In: 10_000, Out: 1000} }

func newGatewayKill(t *testing.T, sealed string, seed int64) *gatewayKill {
	c, api := withClaude(t)
	k := &gatewayKill{command: c, api: api, random: rand.New(rand.NewSource(seed)), sealed: sealed != "off", ended: map[string]int{}}
	k.link = newLink(t, strings.TrimPrefix(api.URL(), "http://"))
	c.environ(map[string]string{"ANTHROPIC_BASE_URL": "http://" + k.link.Addr().String()})
	c.ok("config", "set", "seal", sealed)
	for _, limit := range []string{"per-day", "per-month", "runs-per-day"} {
		c.ok("config", "set", "spend."+limit, "none")
	}
	c.write("routines/look.md", strings.Replace(lookFork, "---\n", "---\nisolated: true\nmodel: "+killedModel+"\n", 1))
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		r := anthropicapi.Reply{Text: "All is well.", Usage: answered()}
		if k.slow.Load() {
			if toolUses(q) < 2 {
				r.ToolUses = []anthropicapi.ToolUse{{Name: "mcp__ollim__list_reminders"}}
			}
			r.StreamDelay = 30 * time.Millisecond
		}
		return r
	})
	return k
}

// toolUses returns how many tools the model has used.
func toolUses(q anthropicapi.Request) (n int) {
	for _, m := range q.Messages {
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				n++
			}
		}
	}
	return n
}

func (k *gatewayKill) play(rounds int) {
	t := k.t
	for round := range rounds {
		what := []string{"claude", "ollim", "service"}[k.random.Intn(3)]
		after, sent := k.random.Intn(4), k.random.Int63n(mostSent)
		before, begun := len(k.api.Requests()), time.Now()
		status := k.killed(what, before+after, sent)
		said := fmt.Sprintf("round %d: %s, at %d requests and %d bytes of answers, exit %d", round, what, after, sent, status)
		took := time.Since(begun)
		k.closed(said, len(k.api.Requests())-before)
		outcome := k.outcome()
		k.ended[what+" "+outcome]++
		t.Logf("%s after %.1f s, %s, %d requests", said, took.Seconds(), outcome, len(k.api.Requests())-before)
		k.api.Forget()
		if out, err := k.cmd("fire", "look").CombinedOutput(); err != nil {
			t.Fatalf("%s: the next fire: %v: %s", said, err, out)
		}
		k.booked(said, 1, 1)
		if t.Failed() {
			return
		}
	}
	t.Log(k.ended)
	if got := k.spentOnce(); got < k.spent-1e-6 || got > k.spent+1e-6 {
		t.Errorf("the accounts have %v USD, the runs %v", got, k.spent)
	}
	k.stateParses()
	if v := k.api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// mostSent is how many bytes the answers of one fire have, about. They come in events of some hundred bytes, 30 ms apart.
const mostSent = 5000

// killed fires, kills something when the service has got so many requests and has sent so many bytes of answers, and returns how the fire
// ended. For 0 requests it kills when the run has begun, or claude has started.
func (k *gatewayKill) killed(what string, requests int, sent int64) int {
	k.slow.Store(true)
	defer k.slow.Store(false)
	defer k.link.set(false)
	runs := k.begun()
	cmd := k.cmd("fire", "look")
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() { ended <- status(cmd.Wait()) }()
	first := len(k.api.Requests()) == requests
	sent += k.link.sent.Load()
	eventually(k.t, "the run, its requests and answers", func() bool {
		if first { // what is killed is there
			return k.begun() > runs && (what != "claude" || len(k.processes("--output-format")) > 0) || len(ended) > 0
		}
		reached := k.begun() > runs && len(k.api.Requests()) >= requests && k.link.sent.Load() >= sent
		return reached || len(ended) > 0
	})
	switch what {
	case "claude":
		for _, p := range k.processes("--output-format") {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	case "ollim":
		_ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	default:
		k.link.set(true)
	}
	select {
	case got := <-ended:
		return got
	case <-time.After(patience):
		k.t.Fatalf("%s was killed, and the fire goes on", what)
		return 0
	}
}

// begun returns how many runs have a record. A fire that is killed before it has written one has not begun its run.
func (k *gatewayKill) begun() int {
	records, _ := filepath.Glob(filepath.Join(k.data, "state/runs/*/*/*/*/run.json"))
	return len(records)
}

// closed checks what a killed fire has left once the next command has closed its record.
func (k *gatewayKill) closed(said string, requests int) {
	k.t.Helper()
	run := k.last()
	over := func() bool { // a child that has not executed claude yet holds the lock without the variable
		return len(process.Carrying("OLLIM_RUN="+filepath.Base(run))) == 0 && lock.Free(paths.Dir(k.data).RunLock(filepath.Base(run)))
	}
	if !k.sealed {
		eventually(k.t, said+": claude has missed its gateway", over)
	}
	k.ok("tick")
	eventually(k.t, said+": nothing of the run goes on", over)
	if got := k.outcome(); got == "" {
		k.t.Errorf("%s: no outcome", said)
	}
	k.booked(said, max(0, requests-1), requests)
	for _, dir := range []string{run, filepath.Join("/tmp", "ollim-"+filepath.Base(run)+"-*")} {
		names, _ := filepath.Glob(dir)
		for _, name := range names {
			_ = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type() == fs.ModeSocket {
					k.t.Errorf("%s: %s is left", said, path)
				}
				return nil
			})
		}
	}
}

// booked checks what the newest run costs: at least the answers that are certain, at most all that have begun and one request more.
func (k *gatewayKill) booked(said string, least, begun int) {
	k.t.Helper()
	m := model.Known().Resolve(killedModel)
	each, _ := m.Cost(model.Tokens{In: answered().In, Out: answered().Out})
	one, _ := m.Cost(model.Tokens{CacheWrite: 40_000, Out: engine.UsualAnswer}) // 80 kB, as it sends in such a run
	got := k.price("run", "show", "look")
	k.spent += got.Cost
	if most := float64(begun)*each + one; got.Cost < float64(least)*each-1e-6 || got.Cost > most {
		k.t.Errorf("%s: %+v USD booked, want from %v to %v", said, got, float64(least)*each, most)
	}
}
