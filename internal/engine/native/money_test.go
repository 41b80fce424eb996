package native_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// limits is how many tokens each answer could have.
func (s *stage) limits() (all []int) {
	for _, q := range s.api.Requests() {
		all = append(all, q.MaxTokens)
	}
	return all
}

// long is an answer that stopped at its limit.
func long(tokens int) anthropicapi.Reply {
	return anthropicapi.Reply{Text: "and so on", StopReason: "max_tokens", Usage: anthropicapi.Usage{In: 10, Out: tokens}}
}

// TestLongAnswer: an answer may have the usual tokens at first, and all that the model can give when it needs them.
func TestLongAnswer(t *testing.T) {
	s := newStage(t)
	s.api.Reply(long(16384), anthropicapi.Reply{Text: "done", Usage: anthropicapi.Usage{In: 10, Out: 20000}})
	s.says(engine.Request{Input: engine.Input{Prompt: "write a book"}, Model: engine.Model{Name: "sonnet"}}, "done")
	if got := s.limits(); !slices.Equal(got, []int{16384, 128000}) {
		t.Errorf("limits of answers: %v", got)
	}
	cost := 0.0
	for _, e := range s.events {
		cost += e.Cost
	}
	if want := (2*10*2 + 36384*10) / 1e6; cost < want-1e-9 || cost > want+1e-9 {
		t.Errorf("booked %v, want %v", cost, want)
	}
}

// TestAnswerWithinTheLimit: an answer is no longer than the run may pay for, and one that needed more fails for that reason.
func TestAnswerWithinTheLimit(t *testing.T) {
	s := newStage(t)
	s.api.Reply(long(5000))
	_, err := s.run(engine.Request{Input: engine.Input{Prompt: "write a book"}, Model: engine.Model{Name: "sonnet"}, Limits: engine.Limits{MaxCost: 0.06}})
	if !errors.Is(err, engine.ErrMaxCost) || !strings.Contains(err.Error(), "exceeds the limit") {
		t.Error(err)
	}
	if got := s.limits(); len(got) != 1 || got[0] < 4000 || got[0] > 6000 {
		t.Errorf("limits of answers: %v", got)
	}
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "write a book"}, Model: engine.Model{Name: "sonnet"}, Limits: engine.Limits{MaxCost: 0.01}}); !errors.Is(err, engine.ErrMaxCost) || len(s.limits()) != 1 {
		t.Errorf("%v, limits of answers: %v", err, s.limits())
	}
}

// TestRaise: before each request the run asks for its price, and what it is given limits the answer.
func TestRaise(t *testing.T) {
	s := newStage(t)
	var asked [][2]float64
	raise := func(_ context.Context, least, most float64) (float64, error) {
		asked = append(asked, [2]float64{least, most})
		return least + 0.01, nil // 1000 tokens more than the least, 1024
	}
	use := anthropicapi.Use("ping_user", nil)
	use.Usage = anthropicapi.Usage{In: 1000, Out: 100} // 0.003 USD
	s.api.Reply(use, anthropicapi.Reply{Text: "done"})
	s.says(engine.Request{Input: engine.Input{Prompt: "x"}, Model: engine.Model{Name: "sonnet"}, Limits: engine.Limits{Spent: 0.5, Raise: raise}}, "done")
	if len(asked) != 2 || asked[0][0] < 0.51 || asked[0][0] > 0.52 || asked[1][0] < asked[0][0]+0.003 || asked[1][1] < asked[1][0]+0.15 {
		t.Errorf("asked for %v", asked)
	}
	if got := s.limits(); !slices.Equal(got, []int{2024, 2024}) {
		t.Errorf("limits of answers: %v", got)
	}
	refuse := func(context.Context, float64, float64) (float64, error) { return 0, engine.ErrMaxCost }
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "x"}, Model: engine.Model{Name: "sonnet"}, Limits: engine.Limits{Raise: refuse}}); !errors.Is(err, engine.ErrMaxCost) || len(s.limits()) != 2 {
		t.Errorf("%v, %d requests", err, len(s.limits()))
	}
}

// TestImpossibleCount: a service that counts what no service can is not believed: the turn costs about what it is worth, and the
// conversation goes on. One that counts more than the window is believed about the money, not about the length.
func TestImpossibleCount(t *testing.T) {
	for _, claim := range []anthropicapi.Usage{
		{In: 1e15, Out: 5}, {In: 5, Out: 1e15}, {In: 5, CacheRead: 9e18, CacheWrite: 9e18}, {In: 9e18, Out: 9e18}, {In: 3e6, Out: 5},
	} {
		s := newStage(t)
		s.api.Reply(anthropicapi.Reply{Text: "one", Usage: claim})
		r := s.says(engine.Request{Input: engine.Input{Prompt: "hi"}, Model: engine.Model{Name: "sonnet"}}, "one")
		if claim.In != 3e6 && (r.Cost <= 0 || r.Cost > 0.01) {
			t.Errorf("%+v: the turn costs %v", claim, r.Cost)
		}
		next := engine.Request{
			Input: engine.Input{Prompt: "on"}, Session: engine.Session{ID: r.Session}, Model: engine.Model{Name: "sonnet"}, Limits: engine.Limits{MaxCost: 5},
		}
		if _, err := s.run(next); err != nil { // after a compaction of the conversation that is said to be longer than the window
			t.Errorf("%+v: the next turn: %v", claim, err)
		}
	}
}

// TestCutAnswerIsAssumed: an answer that broke off before the service told what it used is counted at the price of its question.
func TestCutAnswerIsAssumed(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Fault: apiserver.Cut}, anthropicapi.Reply{Text: "done"})
	s.says(engine.Request{Input: engine.Input{Prompt: strings.Repeat("x", 4000)}, Model: engine.Model{Name: "sonnet"}}, "done")
	assumed := 0.0
	for _, e := range s.events {
		if e.Type == runlog.UsageEvent && e.Usage == nil {
			assumed += e.Cost
		}
	}
	if assumed < 0.002 || assumed > 0.02 {
		t.Errorf("assumed %v", assumed)
	}
}
