package claudecode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// requests are what a stream of events tells of requests, in a session of a model.
func requests(t *testing.T, model string, lines ...string) (list []runlog.Event) {
	t.Helper()
	begin := fmt.Sprintf(`{"type":"system","subtype":"init","session_id":"U","model":%q,"mcp_servers":[{"name":"ollim","status":"connected"}]}`, model)
	_, events := play(t, begin+"\n"+strings.Join(lines, "\n")+"\n")
	for _, e := range events {
		if e.Type == runlog.Request {
			list = append(list, e)
		}
	}
	return list
}

// said is a part of an answer with its usage: tokens in, out, read from the cache and written to it.
func said(id, by, model string, usage [4]int) string {
	return fmt.Sprintf(`{"type":"assistant","parent_tool_use_id":%q,"message":{"id":%q,"model":%q,"content":[],"usage":`+
		`{"input_tokens":%d,"output_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d}}}`,
		by, id, model, usage[0], usage[1], usage[2], usage[3])
}

func reported(by string) string {
	return fmt.Sprintf(`{"type":"user","parent_tool_use_id":%q,"message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}`, by)
}

// TestReportedByAnswers: each answer is priced once, by its last usage and its own model's price, and every request is recorded.
func TestReportedByAnswers(t *testing.T) {
	const opus, haiku = "claude-opus-4-8", "claude-haiku-4-5" // at 5 and 25, 1 and 5 USD
	first := said("m1", "", opus, [4]int{1000, 1, 0, 0})
	whole := said("m1", "", opus, [4]int{1000, 200, 0, 0}) // 0.01 USD
	for name, c := range map[string]struct {
		lines    []string
		reported []float64
	}{
		"the first request":           {nil, []float64{0}},
		"an answer":                   {[]string{first, whole}, []float64{0}},
		"a tool":                      {[]string{first, whole, reported("")}, []float64{0, 0.01}},
		"an answer between results":   {[]string{first, reported(""), whole, reported("")}, []float64{0, 0.005025, 0.01}},
		"two tools":                   {[]string{whole, reported(""), said("m2", "", opus, [4]int{0, 0, 1000, 1000}), reported("")}, []float64{0, 0.01, 0.01675}},
		"a subagent":                  {[]string{whole, said("m2", "t1", haiku, [4]int{1000, 0, 0, 0}), reported("t1")}, []float64{0, 0.011, 0.011}},
		"a subagent without a price":  {[]string{whole, said("m2", "t1", "unheard-of", [4]int{1000, 0, 0, 0}), reported("t1")}, []float64{0, 0.015, 0.015}},
		"asked again without a tool":  {[]string{whole, said("m2", "", opus, [4]int{1000, 0, 0, 0})}, []float64{0, 0.015}},
		"an error, not an answer":     {[]string{strings.Replace(first, `{`, `{"error":"rate_limit",`, 1)}, []float64{0}},
		"a window behind the model's": {[]string{whole, reported("")}, []float64{0, 0.01}},
	} {
		t.Run(name, func(t *testing.T) {
			model := opus
			if strings.Contains(name, "window") {
				model += "[1m]"
			}
			var got []float64
			for _, e := range requests(t, model, c.lines...) {
				got = append(got, math.Round(e.Reported*1e6)/1e6)
				if e.Most < engine.UsualAnswer*25/1e6 {
					t.Errorf("the request costs %v at most", e.Most)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.reported) {
				t.Errorf("told %v, want %v", got, c.reported)
			}
		})
	}
}

// TestOpenRequest: a request costs at most its whole conversation, of which the service has a part in its cache, and the
// usual answer.
func TestOpenRequest(t *testing.T) {
	list := requests(t, "claude-opus-4-8", said("m1", "", "claude-opus-4-8", [4]int{0, 0, 90_000, 10_000}), reported(""))
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	const answer = engine.UsualAnswer * 25 / 1e6
	if got, want := list[0].Most, ownTokens*6.25/1e6+answer; math.Abs(got-want) > 1e-9 {
		t.Errorf("the first: %v, want %v", got, want)
	}
	if got, want := list[1].Most, 0.05+answer; got < want || got > want+0.001 {
		t.Errorf("the second: %v, want %v", got, want)
	}
}

// TestWithoutPrices: of a model whose price is not known only what was set aside is told, once.
func TestWithoutPrices(t *testing.T) {
	e := priced()
	c := e.costs(engine.Request{}, history{})
	c.expect(engine.Request{Limits: engine.Limits{MaxCost: 1, Reserved: 0.25, Spent: 0.9}}, len("Go."))
	c.of("unheard-of")
	if got := c.request(""); math.Abs(got.Most-0.1) > 1e-9 || got.Reported != 0 {
		t.Errorf("%+v", got)
	}
	if list := requests(t, "unheard-of", said("m1", "", "unheard-of", [4]int{1000, 200, 0, 0}), reported("")); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// TestAdded: what a process has added does not include what the session had used before, in whatever way the version reports it.
func TestAdded(t *testing.T) {
	const opus = "claude-opus-4-8" // at 5 and 25 USD
	line := func(cost string, tokens int, more string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","total_cost_usd":%s,"modelUsage":{%q:{"inputTokens":%d,"costUSD":%s}}%s}`, cost, opus, tokens, cost, more)
	}
	past := spent{Cost: 0.05, Models: map[string]consumed{opus: {In: 10_000, Cost: 0.05}}}
	since := fmt.Sprintf(`,"model_usage_since_last_result":{%q:{"inputTokens":2000,"costUSD":0.01},"claude-haiku-4-5":{}}`, opus)
	one := said("m1", "", opus, [4]int{2000, 0, 0, 0})
	for name, c := range map[string]struct {
		past  spent
		lines []string
		want  float64
	}{
		"a new session":                   {spent{}, []string{one, line("0.01", 2000, "")}, 0.01},
		"a resumed one, cumulative":       {past, []string{one, line("0.06", 12_000, "")}, 0.01},
		"a resumed one, by process":       {past, []string{one, line("0.01", 2000, "")}, 0.01},
		"as much again, by process":       {past, []string{said("m1", "", opus, [4]int{10_000, 0, 0, 0}), line("0.05", 10_000, "")}, 0.05},
		"more than before, by process":    {past, []string{said("m1", "", opus, [4]int{30_000, 0, 0, 0}), line("0.15", 30_000, "")}, 0.15},
		"as the command reports it":       {past, []string{one, line("0.5", 100_000, since)}, 0.01},
		"a compaction, cumulative":        {past, []string{line("0.06", 12_000, "")}, 0.01},
		"a model that is no longer named": {past, []string{`{"type":"result","subtype":"success","total_cost_usd":0.06,"modelUsage":{"x":{"inputTokens":2000,"costUSD":0.06}}}`}, 0.06},
		"two results":                     {past, []string{one, line("0.06", 12_000, ""), one, line("0.07", 14_000, "")}, 0.02},
		"stopped at once":                 {past, []string{`{"type":"result","subtype":"error_during_execution","total_cost_usd":0.05,"modelUsage":{"claude-opus-4-8":{"inputTokens":10000,"costUSD":0.05}}}`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			turn, events := resumed(t, c.past, opus, c.lines...)
			booked := 0.0
			for _, e := range events {
				booked += e.Cost
			}
			if math.Abs(turn.result.Cost-c.want) > 1e-9 || math.Abs(booked-c.want) > 1e-9 {
				t.Errorf("the result is %v, the record %v, want %v", turn.result.Cost, booked, c.want)
			}
		})
	}
}

// resumed plays a turn of a session whose earlier processes have used something.
func resumed(t *testing.T, past spent, model string, lines ...string) (*turn, []runlog.Event) {
	t.Helper()
	begin := fmt.Sprintf(`{"type":"system","subtype":"init","session_id":"U","model":%q,"mcp_servers":[{"name":"ollim","status":"connected"}]}`, model)
	return playOn(t, history{spent: past}, begin+"\n"+strings.Join(lines, "\n")+"\n")
}

// TestDoubt: the record has the price by the table of models where the command's differs by more than a tenth.
func TestDoubt(t *testing.T) {
	const opus, haiku = "claude-opus-4-8", "claude-haiku-4-5"
	answer := said("m1", "", opus, [4]int{10_000, 1, 0, 0}) // 0.05 USD and 0.025 for a thousand tokens
	result := func(cost, model string, more string) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","total_cost_usd":%s,"modelUsage":{%q:{"inputTokens":10000,"outputTokens":1000,"costUSD":%s}%s}}`,
			cost, model, cost, more)
	}
	for name, c := range map[string]struct {
		lines []string
		want  float64
	}{
		"the same":                        {[]string{answer, result("0.075", opus, "")}, 0},
		"with its window":                 {[]string{answer, result("0.075", opus+"[1m]", "")}, 0},
		"a tenth less":                    {[]string{answer, result("0.069", opus, "")}, 0},
		"much more":                       {[]string{answer, result("0.375", opus, "")}, 0.075},
		"nothing":                         {[]string{answer, result("0", opus, "")}, 0.075},
		"a model without a price":         {[]string{said("m1", "", "unheard-of", [4]int{10_000, 1, 0, 0}), result("7", "unheard-of", "")}, 0},
		"a model that no event tells of":  {[]string{answer, strings.Replace(result("0.075", opus, `,"`+haiku+`":{"inputTokens":5,"costUSD":3}`), `_usd":0.075`, `_usd":3.075`, 1)}, 0},
		"one that has charged for others": {[]string{answer, result("0.375", haiku, "")}, 0},
	} {
		_, events := resumed(t, spent{}, opus, c.lines...)
		if last := events[len(events)-1]; math.Abs(last.ByTable-c.want) > 1e-9 {
			t.Errorf("%s: %v by the table, want %v", name, last.ByTable, c.want)
		}
	}
}

// TestStopped: a turn that the owner stops while the model thinks is booked at its request and the time since, not at the longest answer.
func TestStopped(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	const thinks = 2 * time.Second // by the engine's clock, which stands still otherwise
	var passed atomic.Int64
	begun := time.Now()
	w.engine.Disk.Now = func() time.Time { return begun.Add(time.Duration(passed.Load())) }
	hold, recorded := make(chan struct{}), make(chan struct{})
	record := sync.OnceFunc(func() { close(recorded) })
	w.heard = func(e runlog.Event) {
		if e.Type == runlog.Request {
			record()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = ctx
	w.api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		select {
		case <-recorded:
			passed.Store(int64(thinks))
			cancel()
		case <-t.Context().Done():
		}
		return anthropicapi.Reply{Hold: hold}
	})
	defer close(hold)
	if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Model: engine.Model{Name: "opus"}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	last := w.events[len(w.events)-1]
	opus := model.Known().Resolve("opus")
	input, _ := opus.Cost(model.Tokens{CacheWrite: ownTokens + 100})
	answer, _ := opus.Cost(model.Tokens{Out: int(thinks.Seconds()) * tokensPerSecond})
	if last.Type != runlog.Request || last.Most <= answer || last.Most > input+answer {
		t.Errorf("booked %+v, want at most %.3f USD for the request, and %.3f for an answer of %s", last, input, answer, thinks)
	}
}
