package claudecode

import (
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The command reports the cost of a turn only at its end. Until then the record has an estimate, which stands for a run that is
// killed: the price of the answers so far, and the most that one open request is expected to cost. Prices are from the table of
// models. If it has none for the session's model, the estimate is what was reserved for the run.

// ownTokens is an upper bound of the tokens of the command's own instructions and tools.
const ownTokens = 40_000

// usage is what one answer used. In the events it is provisional: if an answer is longer than its usage says, its length counts.
type usage struct {
	In         int `json:"input_tokens"`
	Out        int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func (u usage) tokens() int { return u.In + u.Out + u.CacheRead + u.CacheWrite }

// costs tracks what one process of the command spends.
type costs struct {
	models model.Table
	now    func() time.Time
	model  model.Model // of the session
	likely float64     // USD that were reserved and may still be spent
	each   int         // tokens of an answer, thoughts included

	talks    map[string]talk    // by the tool use that called the subagent; "" for the agent itself
	answers  map[string]*answer // by id
	reported float64            // USD, of all answers
	since    int                // answers since the last request in the record
}

// talk is the length of one conversation, of the agent or a subagent.
type talk struct {
	id     string // of the last answer
	tokens int    // counted by the service
	bytes  int    // not yet counted
	cached int    // tokens that it had in its cache
	at     time.Time
}

type answer struct {
	cost float64
	said int // bytes
}

func (e *Engine) costs(past history) costs {
	first := talk{tokens: max(past.tokens, ownTokens)}
	return costs{models: e.Models, now: e.Now, talks: map[string]talk{"": first}, answers: map[string]*answer{}}
}

// expect prepares for a request and its prompt, of so many bytes.
func (c *costs) expect(r engine.Request, prompt int) {
	if r.Limits.MaxCost > 0 {
		c.likely = min(r.Limits.Reserved, max(r.Limits.MaxCost-r.Limits.Spent, least))
	}
	thoughts, _ := strconv.Atoi(r.Model.Thinking) // a word stands for no number
	c.each = engine.UsualAnswer + max(0, thoughts)
	first := c.talks[""]
	first.bytes = len(r.Input.System) + prompt
	c.talks[""] = first
}

// of sets the session's model. Its name may end with its window: claude-opus-4-8[1m].
func (c *costs) of(name string) {
	name, _, _ = strings.Cut(name, "[")
	c.model = c.models.Resolve(name)
}

// answer counts a part of an answer. It reports whether the request that it answers is missing from the record, as that of a
// subagent's first answer is.
func (c *costs) answer(by string, m message) (again bool) {
	if m.ID == "" || !c.model.Priced {
		return false
	}
	a := c.answers[m.ID]
	if a == nil {
		a = &answer{}
		c.answers[m.ID] = a
		c.since++
		again = c.since > 1
	}
	a.said += len(m.Content)
	u := m.Usage
	u.Out = max(u.Out, a.said/engine.BytesPerToken)
	priced := c.models.Resolve(m.Model)
	if !priced.Priced {
		priced = c.model
	}
	cost, _ := priced.Cost(model.Tokens(u))
	c.reported, a.cost = c.reported+cost-a.cost, cost
	t := c.talks[by]
	if t.id != m.ID {
		t = talk{id: m.ID}
	}
	t.tokens, t.cached, t.at = u.tokens(), u.CacheRead+u.CacheWrite, c.now()
	c.talks[by] = t
	return again
}

// tell counts what the model reads.
func (c *costs) tell(by string, m message) {
	if t, known := c.talks[by]; known {
		t.bytes += len(m.Content)
		c.talks[by] = t
	}
}

// open records a new request if its price is known.
func (t *turn) open(asked bool, by string) error {
	if !asked || !t.cost.model.Priced {
		return nil
	}
	return t.sink(t.cost.request(by))
}

// request returns the event of the open request.
func (c *costs) request(by string) runlog.Event {
	c.since = 0
	if !c.model.Priced {
		return runlog.Event{Type: runlog.Request, Most: c.likely}
	}
	t, known := c.talks[by]
	if !known {
		t.tokens = ownTokens
	}
	tokens, cached := t.tokens+t.bytes/engine.Uncounted, 0
	if c.now().Sub(t.at) < engine.CacheLife {
		cached = min(t.cached, tokens)
	}
	asked, _ := c.model.Cost(model.Tokens{In: tokens})
	answered, _ := c.model.Cost(model.Tokens{In: tokens, Out: c.each})
	return runlog.Event{Type: runlog.Request, Reported: c.reported, Most: c.model.Question(tokens, cached) + answered - asked}
}
