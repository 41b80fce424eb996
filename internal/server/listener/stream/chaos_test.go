package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/runlog"
)

// chaos is a messenger whose requests take long, fail, or fail after they were carried out, until calm is set. It checks what must
// hold of every request.
type chaos struct {
	*testing.T
	rand *rand.Rand // under mu

	mu       sync.Mutex
	faults   float64 // how many requests fail
	fast     bool    // requests take no time
	order    []string
	messages map[string]*messenger.Outgoing
	nonces   map[string]string
	edits    []time.Time
	flying   int // requests for messages
	reacted  bool
	over     bool // no request is allowed any more
}

var errCut = errors.New("the connection was cut")

// request makes a request: do is called with mu held.
func (c *chaos) request(ctx context.Context, do func() error) error {
	c.mu.Lock()
	if c.over {
		c.Error("a request after the end")
	}
	before, after := c.delay(), c.delay()
	lost, failed := c.rand.Float64() < c.faults/3, c.rand.Float64() < c.faults
	c.mu.Unlock()
	if err := c.sleep(ctx, before); err != nil {
		return err
	}
	var err error
	c.mu.Lock()
	switch {
	case failed && !lost && c.rand.IntN(3) == 0:
		err = &api.Error{Status: http.StatusTooManyRequests, After: time.Duration(c.rand.IntN(8000)) * time.Millisecond}
	case failed && !lost:
		err = &api.Error{Status: http.StatusBadGateway}
	default:
		err = do()
	}
	c.mu.Unlock()
	if late := c.sleep(ctx, after); late != nil {
		return late
	}
	if lost {
		return errCut
	}
	return err
}

func (c *chaos) delay() time.Duration {
	switch {
	case c.fast:
		return 0
	case c.rand.Float64() < c.faults/10:
		return 20 * time.Second
	case c.rand.IntN(2) == 0:
		return time.Duration(c.rand.IntN(900)) * time.Millisecond
	}
	return 0
}

func (c *chaos) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errCut
	}
}

// single counts the requests for messages that are under way.
func (c *chaos) single(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flying += n; c.flying > 1 {
		c.Errorf("%d requests at once", c.flying)
	}
}

func (c *chaos) check(o messenger.Outgoing) {
	if messenger.Size(o.Text) > able().Text || strings.TrimSpace(o.Text) == "" {
		c.Errorf("a message of %d units: %q", messenger.Size(o.Text), o.Text)
	}
}

func (c *chaos) Send(ctx context.Context, _ string, o messenger.Outgoing) (m messenger.Sent, err error) {
	c.single(1)
	defer c.single(-1)
	err = c.request(ctx, func() error {
		c.check(o)
		id, known := c.nonces[o.Nonce]
		if !known {
			id = fmt.Sprint(len(c.messages) + 1)
			c.messages[id], c.nonces[o.Nonce], c.order = &o, id, append(c.order, id)
		}
		m.ID, m.Text = id, strings.TrimSpace(c.messages[id].Text)
		return nil
	})
	return m, err
}

func (c *chaos) Edit(ctx context.Context, _, id string, o messenger.Outgoing) error {
	c.single(1)
	defer c.single(-1)
	now := time.Now()
	c.edits = append(c.edits, now)
	if n := len(c.edits); n > 5 && now.Sub(c.edits[n-6]) < 5*time.Second {
		c.Errorf("six edits in %s", now.Sub(c.edits[n-6]))
	}
	return c.request(ctx, func() error {
		c.check(o)
		if c.messages[id].Text == o.Text && o.Buttons == nil && c.faults == 0 {
			c.Errorf("an edit changes nothing: %q", o.Text)
		}
		c.messages[id].Text = o.Text
		return nil
	})
}

func (c *chaos) Delete(ctx context.Context, _, id string) error {
	return c.request(ctx, func() error {
		delete(c.messages, id)
		return nil
	})
}

func (c *chaos) React(ctx context.Context, _, _, _ string) error {
	return c.request(ctx, func() error {
		c.reacted = true
		return nil
	})
}

func (c *chaos) Unreact(ctx context.Context, _, _, _ string) error {
	return c.request(ctx, func() error {
		c.reacted = false
		return nil
	})
}

func (*chaos) Able() messenger.Able { return able() }

func (c *chaos) Typing(ctx context.Context, _ string) error {
	return c.request(ctx, func() error { return nil })
}

// info is the info string of code blocks here, which no other text has.
const info = "gö9"

// piece returns some text.
func piece(r *rand.Rand) string {
	words := []string{"word ", "Sentence. ", "\n", "\n\n", "\n```" + info + "\n", "\n```\n", "- item\n", "👨‍👩‍👧 ", "e\u0301", "@everyone ", "# H\n", "in ```line``` ", "  "}
	if r.IntN(30) == 0 {
		return strings.Repeat(words[r.IntN(len(words))], 1+r.IntN(2000))
	}
	var b strings.Builder
	for range 1 + r.IntN(20) {
		b.WriteString(words[r.IntN(len(words))])
	}
	return b.String()
}

// bare returns a text without white space and without what carries code blocks on.
func bare(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(strings.Fields(text), ""), "`", ""), info, "")
}

// talk is a turn that says random things, and returns what its answer must say.
func talk(r *rand.Rand, a *Answer) (want string) {
	see, arriving := a.Observer(), ""
	for range 1 + r.IntN(60) {
		switch n := r.IntN(20); {
		case n < 14:
			text := piece(r)
			arriving += text
			see.Text(text)
		case n < 16 && arriving != "":
			see.Event(runlog.Event{Type: runlog.Text, Text: arriving})
			want, arriving = want+arriving, ""
		case n == 16:
			see.Event(runlog.Event{Type: runlog.ToolUse, Tool: "Bash", Input: []byte(`{"command":"A=b /bin/make all"}`)})
			want, arriving = want+arriving, ""
		case n == 17:
			see.Event(runlog.Event{Type: runlog.Retry, Text: "overloaded"})
			arriving = ""
		case n == 18:
			a.Note("note")
			want, arriving = want+arriving+"-# note", ""
		}
		if r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		if r.IntN(40) == 0 {
			time.Sleep(time.Minute)
		}
	}
	return want + arriving
}

// TestChaos: whatever an agent says, when, and however Discord answers, the messages say the whole of it in the end.
func TestChaos(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chat(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// TestRate: the first text comes soon after as many edits as are allowed, and not too soon.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChaos(t, 1)
		c.fast = true
		_, err := Stream{API: c, Now: time.Now}.Show(t.Context(), Source{Channel: "c"}, func(a *Answer) (runlog.Record, error) {
			for i := range 6 {
				wait(1200 * time.Millisecond)
				a.Observer().Event(runlog.Event{Type: runlog.ToolUse, Tool: fmt.Sprint("Tool", i)})
			}
			synctest.Wait()
			a.Observer().Text(strings.Repeat("x", 40))
			wait(time.Second)
			if c.messages["1"].Text[0] != 'x' {
				t.Errorf("the answer is %q", c.messages["1"].Text)
			}
			return done()
		})
		if err != nil || len(c.edits) < 5 {
			t.Errorf("%d edits, %v", len(c.edits), err)
		}
	})
}

func newChaos(t *testing.T, seed uint64) *chaos {
	return &chaos{T: t, rand: rand.New(rand.NewPCG(seed, 2)), messages: map[string]*messenger.Outgoing{}, nonces: map[string]string{}}
}

func chat(t *testing.T, r *rand.Rand) {
	c := newChaos(t, r.Uint64())
	c.faults = []float64{0, 0, 0.1, 0.4}[r.IntN(4)]
	var left []messenger.Outgoing
	stream := Stream{API: c, Now: time.Now, Left: func(_ context.Context, o messenger.Outgoing) error {
		left = append(left, o)
		return nil
	}}
	want := ""
	shown, err := stream.Show(t.Context(), Source{Channel: "c", Message: "m"}, func(a *Answer) (runlog.Record, error) {
		want = talk(r, a)
		return runlog.Record{ID: "r", Outcome: runlog.Failed, Error: "cut"}, errors.New("cut")
	})
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	time.Sleep(time.Hour)
	synctest.Wait()
	if err != nil || shown.Left || len(left) > 0 || c.reacted {
		t.Errorf("%+v, %v, left %v, reacted %v", shown, err, left, c.reacted)
	}
	got := ""
	for _, id := range shown.Messages {
		m := c.messages[id]
		if got += m.Text; len(m.Files) > 0 {
			got = string(m.Files[0].Data)
		}
	}
	if want += "-# The turn failed: cut"; bare(got) != bare(want) {
		i := 0
		for got, want := bare(got), bare(want); i < min(len(got), len(want)) && got[i] == want[i]; i++ {
		}
		t.Errorf("from byte %d on the messages say %.60q instead of %.60q", i, bare(got)[i:], bare(want)[i:])
	}
	if len(shown.Messages) > 4 || len(c.messages) != len(shown.Messages) {
		t.Errorf("the messages %v, of %d", shown.Messages, len(c.messages))
	}
}
