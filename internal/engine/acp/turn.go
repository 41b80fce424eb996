package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

// turn is what one process of the agent has reported so far. Its methods are called by the reader of the connection and by the
// goroutines that decide about uses of tools.
type turn struct {
	ctx      context.Context // of the process: decisions end with it
	profile  Profile
	root     string
	servers  []string
	hidden   []string     // paths that no tool may reach and no seal closes to the agent
	tools    engine.Tools // nil: every use is refused, as in a compaction
	delta    func(text string) error
	stop     func() // ends the turn
	conn     *conn
	given    given
	gate     *command.Gate // what counts the requests to the model; nil: nothing does
	model    string        // that the session uses
	note     note          // of the session, once the agent has opened it
	deciding sync.WaitGroup

	mu        sync.Mutex
	sink      engine.Sink
	answered  bool // the agent has answered a prompt
	listening bool // updates count: those before are a replay of the session
	said      strings.Builder
	thought   strings.Builder
	message   string // id of the message that is arriving
	text      string // of the last message
	uses      map[string]*use
	order     []*use
	most      int           // answers that the model may give; 0: no limit
	answers   int           // that it has begun
	next      bool          // what it sends next begins another answer
	denied    []string      // reasons of the refusals since the last prompt
	beat      chan struct{} // gets a value when the agent sends something of its work
	trouble   string        // with its service, as the agent has reported it last
	known     chan struct{} // closed and renewed when something new is known of a use
	cost      bill
	mode      string // as the agent has reported it
	fatal     error  // why ollim has ended the turn
}

// fail ends the turn with an error; the first one counts.
func (t *turn) fail(err error) {
	if err != nil && t.fatal == nil {
		t.fatal = err
		t.stop()
	}
}

// heard handles what the agent sends by itself.
func (t *turn) heard(m message) {
	switch {
	case m.Method == "session/update":
		var p struct {
			Update update `json:"update"`
		}
		if json.Unmarshal(m.Params, &p) == nil { // an update of another form says nothing
			t.mu.Lock()
			defer t.mu.Unlock()
			t.trouble = p.Update.trouble()
			if p.Update.Type != infoUpdate {
				t.alive()
			}
			t.mode = orElse(p.Update.Mode, modeOf(p.Update), t.mode)
			switch {
			case t.closed():
			case t.unsafe():
				t.fail(t.wrongMode(t.mode))
			default:
				t.fail(t.take(p.Update))
			}
		}
	case m.Method == "session/request_permission" && len(m.ID) > 0:
		t.alive()
		var a ask
		if json.Unmarshal(m.Params, &a) != nil {
			_ = t.conn.answer(m.ID, ask{}.choice(false))
			return
		}
		if !t.begin(m, a) {
			_ = t.conn.answer(m.ID, a.choice(false))
		}
	case len(m.ID) > 0:
		t.alive()
		_ = t.conn.refuse(m) // an agent that has ended hears nothing
	}
}

// alive notes that the agent works.
func (t *turn) alive() {
	select {
	case t.beat <- struct{}{}:
	default: // there is one already
	}
}

// begin has a request for permission decided. It reports false if nothing may be used now.
func (t *turn) begin(m message, a ask) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed() {
		t.fail(errors.Join(t.flush(), t.count(true)))
	}
	if t.closed() {
		return false
	}
	u := t.use(a.Use.ID, true)
	u.learn(a.Use)
	t.deciding.Go(func() { t.decide(m, a, u) })
	return true
}

// rest lets nothing that the agent sends count any more, and waits for the decisions that are in progress.
func (t *turn) rest() {
	t.mu.Lock()
	t.listening = false
	t.mu.Unlock()
	t.deciding.Wait()
}

// closed reports whether what the agent sends does not count: before a prompt, after its answer, and after an error.
func (t *turn) closed() bool { return !t.listening || t.fatal != nil }

// unsafe reports whether the agent has said that it is in another mode than the one in which it asks.
func (t *turn) unsafe() bool {
	return t.profile.Mode != "" && t.mode != "" && t.mode != t.profile.Mode
}

func (t *turn) wrongMode(now string) error {
	return fmt.Errorf("%w: the agent is in the mode %q instead of %q, in which it asks", engine.ErrSetup, now, t.profile.Mode)
}

func modeOf(u update) string {
	if u.Type != optionUpdate {
		return ""
	}
	mode, _ := opened{Options: u.Options}.option(optionMode)
	return mode
}

func (t *turn) take(u update) error {
	switch u.Type {
	case agentChunk:
		return errors.Join(t.count(false), t.chunk(&t.said, &t.thought, u))
	case thoughtChunk:
		return errors.Join(t.count(false), t.chunk(&t.thought, &t.said, u))
	case toolCall:
		return errors.Join(t.count(true), t.flush(), t.tool(u))
	case toolUpdate:
		return errors.Join(t.flush(), t.tool(u))
	case usageUpdate:
		t.cost.update(u)
		if t.cost.exceeded() {
			return fmt.Errorf("%w: the agent has spent %s of %s USD", engine.ErrMaxCost, engine.USD(t.cost.spent+t.cost.sum()), engine.USD(t.cost.most))
		}
	}
	return nil
}

// count counts the answers of the model. One begins with what the agent sends after a prompt, or after the last use of a tool has ended. The use
// of a tool in the last answer ends the turn before it is made, because the agent would ask the model again with its result.
func (t *turn) count(uses bool) error {
	if t.next {
		t.next = false
		t.answers++
	}
	if t.most > 0 && (t.answers > t.most || uses && t.answers == t.most) {
		return fmt.Errorf("%w: %s", engine.ErrMaxTurns, plaintext.Count(t.most, "answer"))
	}
	return nil
}

// chunk adds a part of a message to one text, after the end of the other.
func (t *turn) chunk(to, other *strings.Builder, u update) error {
	text := u.text()
	if text == "" {
		return nil
	}
	if other.Len() > 0 || u.Message != "" && t.message != "" && u.Message != t.message {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.message = u.Message
	to.WriteString(text)
	if to == &t.said && t.delta != nil {
		return t.delta(text)
	}
	return nil
}

// flush records the message that has arrived.
func (t *turn) flush() (err error) {
	if text := t.thought.String(); strings.TrimSpace(text) != "" {
		err = t.sink(runlog.Event{Type: runlog.Thinking, Text: text})
	}
	if text := strings.TrimSpace(t.said.String()); text != "" {
		t.text = text
		err = errors.Join(err, t.sink(runlog.Event{Type: runlog.Text, Text: text}))
	}
	t.said.Reset()
	t.thought.Reset()
	t.message = ""
	return err
}

// use returns the use of an id. An update that begins a use begins another one if that has ended: agents use ids again.
func (t *turn) use(id string, begins bool) *use {
	u := t.uses[id]
	if u == nil || begins && u.ended {
		u = &use{id: id}
		if t.uses == nil {
			t.uses = map[string]*use{}
		}
		t.uses[id] = u
		t.order = append(t.order, u)
	}
	return u
}

// tool handles an update of a use of a tool.
func (t *turn) tool(up update) error {
	u := t.use(up.ID, up.Type == toolCall)
	u.learn(up)
	close(t.known)
	t.known = make(chan struct{})
	ends := up.Status == completed || up.Status == failed
	n, ok := t.profile.name(u, t.root, t.servers)
	if !u.reported && (ends || ok && up.Status == "in_progress") {
		if err := t.report(u, n); err != nil {
			return err
		}
	}
	u.done = u.done || up.Status == completed
	if up.Status == failed {
		u.failure = cmp.Or(up.output(), u.printed, failed)
	}
	if !ends || u.ended {
		return nil
	}
	t.end(u)
	text := cmp.Or(up.output(), u.printed)
	return t.sink(runlog.Event{Type: runlog.ToolResult, Tool: n.tool, ToolID: u.id, Text: text, IsError: up.Status == failed})
}

// end marks a use as ended. After the last one the model answers again.
func (t *turn) end(u *use) {
	u.ended = true
	t.next = !t.using()
}

// using reports whether a tool is in use.
func (t *turn) using() bool {
	return slices.ContainsFunc(t.order, func(u *use) bool { return !u.ended })
}

// report records a use of a tool.
func (t *turn) report(u *use, n named) error {
	u.reported = true
	var input json.RawMessage
	if len(n.inputs) > 0 {
		input, _ = json.Marshal(n.inputs[0]) // what was decoded can be encoded
	} else {
		input, _ = json.Marshal(u.plain())
	}
	return t.sink(runlog.Event{Type: runlog.ToolUse, Tool: n.tool, ToolID: u.id, Input: input})
}

func orElse(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}
