package claudecode

import (
	"math"
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

// The amounts of a result event are those of the session, not of the process: the command (from about 2.1.277 on) keeps them in its
// transcript and begins a resumed session, a branch and a compaction with them. What a process added is the difference.

// spent is what the processes of a session have used, as the command reports it and keeps it in the lines cost-state of a transcript.
type spent struct {
	Cost   float64             `json:"totalCostUSD"`
	Models map[string]consumed `json:"modelUsage"`
}

// consumed is the usage of one model.
type consumed struct {
	In         int     `json:"inputTokens"`
	Out        int     `json:"outputTokens"`
	CacheRead  int     `json:"cacheReadInputTokens"`
	CacheWrite int     `json:"cacheCreationInputTokens"`
	Cost       float64 `json:"costUSD"`
	Window     int     `json:"contextWindow"`
	Output     int     `json:"maxOutputTokens"`
}

func (c consumed) usage() usage { return usage{c.In, c.Out, c.CacheRead, c.CacheWrite} }

// input returns the number of tokens that models have read.
func (s spent) input() (n int) {
	for _, m := range s.Models {
		n += m.usage().input()
	}
	return n
}

// less returns what was used besides what was used before. The models that used nothing are left out. It reports whether all that was used
// before is contained in s.
func (s spent) less(before spent) (rest spent, contained bool) {
	rest = spent{Cost: s.Cost - before.Cost, Models: map[string]consumed{}}
	contained = rest.Cost > -1e-9
	for name, m := range s.Models {
		b := before.Models[name]
		d := m
		d.In, d.Out, d.CacheRead, d.CacheWrite, d.Cost = m.In-b.In, m.Out-b.Out, m.CacheRead-b.CacheRead, m.CacheWrite-b.CacheWrite, m.Cost-b.Cost
		contained = contained && min(d.In, d.Out, d.CacheRead, d.CacheWrite) >= 0
		if d.usage() != (usage{}) {
			rest.Models[name] = d
		}
	}
	for name := range before.Models {
		_, kept := s.Models[name]
		contained = contained && kept
	}
	return rest, contained
}

// ownTokens is an upper bound of the tokens of instructions and tools: those of the command in the main conversation have up to 25 kB
// (2.1.197 and 2.1.330), ours 15 kB, at engine.Uncounted bytes to a token.
const ownTokens = 20_000

// tokensPerSecond is an upper bound of how fast a model answers.
const tokensPerSecond = 100

// usage is what one answer used. In the events it is provisional: if an answer is longer than its usage says, its length counts.
type usage struct {
	In         int `json:"input_tokens"`
	Out        int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func (u usage) tokens() int { return u.input() + u.Out }

// input returns the number of tokens that the model has read.
func (u usage) input() int { return u.In + u.CacheRead + u.CacheWrite }

// costs tracks what one process of the command spends.
type costs struct {
	models model.Table
	hour   bool // the service keeps conversations for an hour, at the price of that
	now    func() time.Time
	model  model.Model // of the session
	likely float64     // USD that were reserved and may still be spent
	each   int         // tokens of an answer, thoughts included

	talks    map[string]talk    // by the tool use that called the subagent; "" for the agent itself
	answers  map[string]*answer // by id
	reported float64            // USD, of all answers
	read     int                // tokens, by all answers
	heard    map[string]*heard  // by model, of those with a price
	since    int                // answers since the last request in the record
	by       string             // whose request is open, as in talks
	asked    time.Time          // when it was sent; zero: none was

	past spent // of the session before this process, then before the next result
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
	cost, input float64 // USD, the second of what the model read
	said        int     // bytes
	read        int     // tokens
}

func (e *Engine) costs(r engine.Request, past history) costs {
	first := talk{tokens: max(past.tokens, ownTokens)}
	return costs{models: e.Models, hour: e.cache(r) == engine.CacheHour, now: e.Disk.Now, talks: map[string]talk{"": first}, answers: map[string]*answer{}, heard: map[string]*heard{}, past: past.spent}
}

// priced returns a model with the prices that count for the process.
func (c *costs) priced(name string) model.Model {
	m := c.models.Resolve(name)
	if hourly, known := m.Hourly(); known && c.hour {
		return hourly
	}
	return m
}

// added returns what this process has used since its last result. A version that does not report it includes what earlier processes
// have used or, before 2.1.277, does not: then the tokens of the answers decide.
func (c *costs) added(e event) spent {
	all := spent{e.Cost, e.Models}
	past := c.past
	c.past = all
	if e.Added != nil {
		now := spent{Models: map[string]consumed{}}
		for name, m := range e.Added {
			if m.usage() != (usage{}) {
				now.Models[name], now.Cost = m, now.Cost+m.Cost
			}
		}
		return now
	}
	rest, contained := all.less(past)
	if own, _ := all.less(spent{}); !contained || c.read > 0 && distance(own.input(), c.read) < distance(rest.input(), c.read) {
		return own
	}
	return rest
}

func distance(a, b int) int { return max(a, b) - min(a, b) }

// doubt returns what the process has added by the table of models, in USD, if the command's amount differs from that by more than a
// tenth; else 0. The input is that of the answers in the events, the output the command's: in the events it is provisional. A model that
// answers in no event, such as one that summarizes a web page for a tool, is not doubted.
func (c *costs) doubt(added spent) float64 {
	var booked, table float64
	for name, m := range added.Models {
		name, _, _ = strings.Cut(name, "[")
		if heard := c.heard[name]; heard != nil {
			booked, table = booked+m.Cost, table+heard.input+heard.output(m.Out)
		}
	}
	if math.Abs(booked-table) <= table/10 {
		return 0
	}
	return added.Cost - booked + table
}

// heard is what one model has answered, as far as events tell.
type heard struct {
	model   model.Model
	input   float64 // USD
	longest int     // tokens of a request
}

// output returns the price of so many tokens, at the rate of the longest request.
func (h *heard) output(tokens int) float64 {
	without, _ := h.model.Cost(model.Tokens{In: h.longest})
	with, _ := h.model.Cost(model.Tokens{In: h.longest, Out: tokens})
	return with - without
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
	c.model = c.priced(name)
}

// answer counts a part of an answer. It reports whether the request that it answers is missing from the record, as that of a
// subagent's first answer is.
func (c *costs) answer(by string, m message) (again bool) {
	if m.ID == "" {
		return false
	}
	a := c.answers[m.ID]
	if a == nil {
		a = &answer{}
		c.answers[m.ID] = a
		c.since++
		again = c.since > 1
	}
	u := m.Usage
	c.read, a.read = c.read+u.input()-a.read, u.input()
	c.hear(a, m)
	if !c.model.Priced {
		return false
	}
	a.said += len(m.Content)
	u.Out = max(u.Out, a.said/engine.BytesPerToken)
	priced := c.priced(m.Model)
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

// hear counts what a part of an answer has cost besides its output.
func (c *costs) hear(a *answer, m message) {
	priced := c.priced(m.Model)
	if !priced.Priced {
		return
	}
	h := c.heard[m.Model]
	if h == nil {
		h = &heard{model: priced}
		c.heard[m.Model] = h
	}
	input, _ := priced.Cost(model.Tokens{In: m.Usage.In, CacheRead: m.Usage.CacheRead, CacheWrite: m.Usage.CacheWrite})
	h.input, a.input, h.longest = h.input+input-a.input, input, max(h.longest, m.Usage.input())
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
	c.since, c.asked, c.by = 0, c.now(), by
	return c.open(c.each)
}

// cut returns the event of the open request when the owner stops it: its answer is as long as the time since allows.
func (c *costs) cut() runlog.Event {
	return c.open(min(c.each, int(c.now().Sub(c.asked).Seconds()*tokensPerSecond)))
}

// open returns the event of the open request, with an answer of so many tokens.
func (c *costs) open(answer int) runlog.Event {
	if !c.model.Priced {
		return runlog.Event{Type: runlog.Request, Most: c.likely}
	}
	by := c.by
	t, known := c.talks[by]
	if !known {
		t.tokens = ownTokens
	}
	tokens, cached := t.tokens+t.bytes/engine.Uncounted, 0
	if c.now().Sub(t.at) < engine.CacheLife {
		cached = min(t.cached, tokens)
	}
	asked, _ := c.model.Cost(model.Tokens{In: tokens})
	answered, _ := c.model.Cost(model.Tokens{In: tokens, Out: answer})
	return runlog.Event{Type: runlog.Request, Reported: c.reported, Most: c.model.Question(tokens, cached) + answered - asked}
}

// cutShort records what a request that was stopped can have cost, unless the command has said.
func (t *turn) cutShort() error {
	if t.counted || t.cost.asked.IsZero() {
		return nil
	}
	return t.sink(t.cost.cut())
}

// window returns how much of the model's window is used, of what the command says that it has.
func (t *turn) window(reported int) int {
	if t.want.window > 0 && reported > t.want.window {
		return t.want.window
	}
	return reported
}
