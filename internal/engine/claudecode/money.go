package claudecode

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/gateway"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The command reports the cost of a turn only at its end. Until then the record has an estimate, which counts if the run is killed: the
// price of the answers so far, and the most that one open request is expected to cost. Prices are from the table of models. If it has
// none for the session's model, the estimate is the amount that was reserved for the run.

// The amounts in a result event are totals of the session, not of the process: the command (from about 2.1.277 on) stores them in its
// transcript, and a resumed session, a branch and a compaction start with them. The difference is what the process used.

// spent is what the processes of a session have used, as the command reports it and stores it in the cost-state lines of a transcript.
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

// input returns the number of tokens that the models have read.
func (s spent) input() (n int) {
	for _, m := range s.Models {
		n += m.usage().input()
	}
	return n
}

// less returns what was used since before. It omits models that used nothing. contained reports whether s includes everything in before.
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

// ownTokens is an upper limit of the tokens of instructions and tools. Those of the command have up to 25 kB in the main conversation
// (2.1.197 and 2.1.330), those of ollim 15 kB, at engine.Uncounted bytes for each token.
const ownTokens = 20_000

// tokensPerSecond is an upper limit of a model's speed.
const tokensPerSecond = 100

// usage is the usage of one answer. It is provisional in the events: if the text of an answer has more tokens than its usage, the text
// counts.
type usage struct {
	In         int `json:"input_tokens"`
	Out        int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func (u usage) tokens() int { return u.input() + u.Out }

// input returns the number of tokens that the model has read.
func (u usage) input() int { return u.In + u.CacheRead + u.CacheWrite }

// costs adds up what one process of the command spends.
type costs struct {
	models model.Table
	hour   bool // the service caches conversations for an hour, at the price of that cache
	now    func() time.Time
	model  model.Model // model of the session
	likely float64     // USD that are still left of the reservation
	each   int         // tokens of an answer, including thoughts

	talks    map[string]talk    // by the tool use that started the subagent; "" for the agent itself
	answers  map[string]*answer // by id
	reported float64            // USD of all answers
	read     int                // tokens that all answers have read
	heard    map[string]*heard  // by model, for models with a price
	since    int                // answers since the last request event in the record
	by       string             // conversation of the open request, as in talks
	asked    time.Time          // when it was sent; zero if none was

	past spent // usage of the session before this process; after a result, usage up to that result

	gate *gateway.Gateway // what counts the requests of the process; nil: nothing does
	told usage            // usage that the command has reported, of all its results
}

// mostTokens is more than any service reports for the answers of one turn.
const mostTokens = 10 * engine.MostTokens

// plausible returns what the command has reported, or what the gateway has counted if that is absurd: one wrong count of a service would stop
// every later run of the day.
func (c *costs) plausible(added spent) spent {
	for _, m := range added.Models {
		if u := m.usage(); min(u.In, u.Out, u.CacheRead, u.CacheWrite) < 0 || max(u.In, u.Out, u.CacheRead, u.CacheWrite) > mostTokens {
			if c.gate == nil {
				return spent{Cost: c.reported, Models: map[string]consumed{}}
			}
			usd, _ := c.gate.Spent()
			return spent{Cost: usd, Models: map[string]consumed{}}
		}
	}
	return added
}

// unreported returns the price of what has passed the gateway and is in no result, in USD: answers that broke off, and requests that
// programs of the agent made.
func (c *costs) unreported(added spent) float64 {
	if c.gate == nil {
		return 0
	}
	for _, m := range added.Models {
		u := m.usage()
		c.told = usage{c.told.In + u.In, c.told.Out + u.Out, c.told.CacheRead + u.CacheRead, c.told.CacheWrite + u.CacheWrite}
	}
	passed := c.gate.Used()
	rest := usage{
		max(0, passed.In-c.told.In), max(0, passed.Out-c.told.Out), max(0, passed.CacheRead-c.told.CacheRead), max(0, passed.CacheWrite-c.told.CacheWrite),
	}
	c.told = usage{c.told.In + rest.In, c.told.Out + rest.Out, c.told.CacheRead + rest.CacheRead, c.told.CacheWrite + rest.CacheWrite}
	cost, _ := c.model.Cost(model.Tokens(rest))
	return cost
}

// talk is the length of one conversation, that of the agent or of a subagent.
type talk struct {
	id     string // id of the last answer
	tokens int    // tokens that the service has counted
	bytes  int    // bytes since then, which are not counted yet
	cached int    // tokens that the service had in its cache
	at     time.Time
}

type answer struct {
	cost, input float64 // USD; input is the part for what the model read
	said        int     // bytes of text
	read        int     // tokens read
}

func (e *Engine) costs(r engine.Request, past history) costs {
	first := talk{tokens: max(past.tokens, ownTokens)}
	return costs{models: e.Models, hour: e.cache(r) == engine.CacheHour, now: e.Disk.Now, talks: map[string]talk{"": first}, answers: map[string]*answer{}, heard: map[string]*heard{}, past: past.spent}
}

// priced returns a model with the prices that apply to the process.
func (c *costs) priced(name string) model.Model {
	m := c.models.Resolve(name)
	if hourly, known := m.Hourly(); known && c.hour {
		return hourly
	}
	return m
}

// added returns what this process has used since its last result. For versions that do not report it, the total may or (before 2.1.277)
// may not include earlier processes: the tokens of the answers decide which.
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

// doubt returns what the process has used by the table of models, in USD, if the command's amount differs from that by more than a tenth;
// else 0. It takes the input from the answers in the events, and the output from the command, because the events' output is provisional.
// It accepts the amount of a model without an answer in the events, such as one that summarizes a web page for a tool.
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

// heard adds up the answers of one model in the events.
type heard struct {
	model   model.Model
	input   float64 // USD
	longest int     // tokens of the longest request
}

// output returns the price of output tokens at the rate of the longest request.
func (h *heard) output(tokens int) float64 {
	without, _ := h.model.Cost(model.Tokens{In: h.longest})
	with, _ := h.model.Cost(model.Tokens{In: h.longest, Out: tokens})
	return with - without
}

// expect prepares for a request with a prompt of so many bytes.
func (c *costs) expect(r engine.Request, prompt int) {
	if r.Limits.MaxCost > 0 {
		c.likely = min(r.Limits.Reserved, max(r.Limits.MaxCost-r.Limits.Spent, least))
	}
	thoughts, _ := strconv.Atoi(r.Model.Thinking) // a word such as "adaptive" gives 0
	c.each = engine.UsualAnswer + max(0, thoughts)
	first := c.talks[""]
	first.bytes = len(r.Input.System) + prompt
	c.talks[""] = first
}

// of sets the session's model. The name may end with a window, as in claude-opus-4-8[1m].
func (c *costs) of(name string) {
	name, _, _ = strings.Cut(name, "[")
	c.model = c.priced(name)
}

// answer adds a part of an answer. It reports whether the record lacks the request for it, as it does for a subagent's first answer.
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

// hear adds the cost of a part of an answer except for its output.
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

// tell adds the length of a message that the model reads.
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

// cut returns the event of the open request when the owner stops it. It has what the service has reported. An answer of which nothing has
// been reported counts with the tokens that the elapsed time allows.
func (c *costs) cut() runlog.Event {
	if c.gate != nil && c.model.Priced {
		reported, unreported := c.gate.Spent()
		if c.reported = reported; unreported == 0 {
			return runlog.Event{Type: runlog.Request, Reported: reported}
		}
	}
	return c.open(min(c.each, int(c.now().Sub(c.asked).Seconds()*tokensPerSecond)))
}

// open returns the event of the open request, for an answer of so many tokens.
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

// cutShort records what a stopped request can have cost, unless the command has reported it.
func (t *turn) cutShort() error {
	if t.counted || t.cost.asked.IsZero() {
		return nil
	}
	return t.sink(t.cost.cut())
}

// window returns how many tokens of the model's window are used, given the size that the command reports.
func (t *turn) window(reported int) int {
	if t.want.window > 0 && reported > t.want.window {
		return t.want.window
	}
	return reported
}
