package cli

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// tally adds up the events of a run, for the result object of both JSON formats.
type tally struct {
	session, model string
	text           string // the final one
	last           string // the last text of the model
	stop           string // why its last answer ended
	turns          int    // answers of the model
	api            int64  // milliseconds in which the service answered
	models         map[string]modelUse
	uses           map[string]runlog.Event // of tools, by id
	counted        bool                    // the engine has reported tokens
	silent         bool                    // the engine has reported none since its last start
	unpriced       bool                    // a model has no known price
}

func (t *tally) hear(e runlog.Event) {
	switch e.Type {
	case runlog.Session, runlog.Compacted:
		t.session, t.model = cmp.Or(e.Session, t.session), cmp.Or(e.Model, t.model)
		t.silent = t.silent || e.Type == runlog.Session
	case runlog.Text:
		t.last = e.Text
	case runlog.ToolUse:
		if t.uses == nil {
			t.uses = map[string]runlog.Event{}
		}
		t.uses[e.ToolID] = e
	case runlog.Result:
		t.text = cmp.Or(e.Text, t.text)
	case runlog.UsageEvent:
		t.silent = false
		if e.Usage != nil {
			t.count(e)
		}
	}
}

func (t *tally) count(e runlog.Event) {
	t.counted, t.unpriced, t.api = true, t.unpriced || e.Unpriced, t.api+e.APIMillis
	if e.Stop != "" {
		t.stop, t.turns = e.Stop, t.turns+max(e.Count, 1)
	}
	models := e.Models
	if models == nil && t.model != "" {
		models = map[string]runlog.ModelUsage{t.model: {Usage: *e.Usage, Cost: e.Cost}}
	}
	if t.models == nil {
		t.models = map[string]modelUse{}
	}
	for name, m := range models {
		u := t.models[name]
		u.In, u.Out, u.CacheRead, u.CacheWrite = u.In+m.In, u.Out+m.Out, u.CacheRead+m.CacheRead, u.CacheWrite+m.CacheWrite
		u.cost += m.Cost
		u.Window, u.Output = cmp.Or(m.Window, u.Window), cmp.Or(m.Output, u.Output)
		t.models[name] = u
	}
}

// answer is the last object of both JSON formats: the keys of the claude command that are known, and two keys of ollim's own.
type answer struct {
	Type        string              `json:"type"`
	Subtype     string              `json:"subtype"`
	IsError     bool                `json:"is_error"`
	Duration    int64               `json:"duration_ms"`
	DurationAPI *int64              `json:"duration_api_ms,omitempty"`
	Turns       int                 `json:"num_turns"`
	Result      string              `json:"result"` // if the run failed, the last text of the model
	Stop        string              `json:"stop_reason,omitempty"`
	SessionID   string              `json:"session_id,omitempty"`
	Cost        *float64            `json:"total_cost_usd,omitempty"`
	Usage       *wireUsage          `json:"usage,omitempty"`
	Models      map[string]modelUse `json:"modelUsage,omitempty"`
	Denials     []denial            `json:"permission_denials"`
	Structured  json.RawMessage     `json:"structured_output,omitempty"`
	Errors      []string            `json:"errors,omitempty"`
	Run         string              `json:"run"`
	Engine      string              `json:"engine"`
}

type wireUsage struct {
	In         int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Out        int `json:"output_tokens"`
}

type modelUse struct {
	In         int      `json:"inputTokens"`
	Out        int      `json:"outputTokens"`
	CacheRead  int      `json:"cacheReadInputTokens"`
	CacheWrite int      `json:"cacheCreationInputTokens"`
	Cost       *float64 `json:"costUSD,omitempty"`
	Window     int      `json:"contextWindow,omitempty"`
	Output     int      `json:"maxOutputTokens,omitempty"`
	cost       float64
}

type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input,omitempty"`
}

func (v *voice) result(h app.Home, r runlog.Record, err error) answer {
	t := v.tally
	a := answer{
		Type: "result", Subtype: "success", IsError: r.Outcome != runlog.OK, Duration: v.d.Now().Sub(v.began).Milliseconds(),
		Turns: max(r.Turns, t.turns), Result: t.text, Stop: t.stop, SessionID: cmp.Or(r.SessionAfter, t.session, r.SessionBefore),
		Denials: denials(h, r.ID, t.uses), Structured: v.structured(), Run: r.ID, Engine: r.Engine,
	}
	if a.Structured != nil {
		a.Result = string(a.Structured)
	}
	if a.IsError {
		a.Subtype, a.Result, a.Structured, a.Errors = subtype(err), cmp.Or(t.last, t.text), nil, []string{r.Error}
	}
	script := strings.HasPrefix(r.Engine, "script:") // a script has no service, and costs nothing
	if t.counted && !script {
		a.DurationAPI = &t.api
	}
	if t.counted {
		a.Models = t.modelUses(h)
		a.Usage = &wireUsage{r.Usage.In, r.Usage.CacheWrite, r.Usage.CacheRead, r.Usage.Out}
	}
	if !t.unpriced && (!t.silent || script) {
		a.Cost = millionths(r.Cost)
	}
	return a
}

// subtype returns the claude command's word for how a run failed.
func subtype(err error) string {
	switch {
	case is(engine.ErrMaxTurns)(err):
		return "error_max_turns"
	case is(engine.ErrMaxCost)(err):
		return "error_max_budget_usd"
	case is(turn.ErrUnfit)(err):
		return "error_max_structured_output_retries"
	}
	return "error_during_execution"
}

func (t tally) modelUses(h app.Home) map[string]modelUse {
	table, err := h.Models()
	for name, u := range t.models {
		if !t.unpriced {
			u.Cost = millionths(u.cost)
		}
		if m := table.Resolve(name); err == nil && m.Known {
			u.Window, u.Output = cmp.Or(u.Window, m.Window), cmp.Or(u.Output, m.Output)
		}
		t.models[name] = u
	}
	return t.models
}

func denials(h app.Home, id string, uses map[string]runlog.Event) []denial {
	denied := []denial{}
	for e, err := range h.Runs.Events(id, nil) {
		if err == nil && e.Type == runlog.Verdict && e.IsError {
			denied = append(denied, denial{e.Tool, e.ToolID, uses[e.ToolID].Input})
		}
	}
	return denied
}

// millionths returns an amount of USD without floating-point noise.
func millionths(usd float64) *float64 {
	usd = math.Round(usd*1e6) / 1e6
	return &usd
}
