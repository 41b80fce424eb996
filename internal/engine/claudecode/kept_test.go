package claudecode

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// kept is what the gateway has kept of the turns of a test.
type kept struct {
	mu      sync.Mutex
	bodies  []string
	answers []request.Answer // by request
}

func (k *kept) keep(body []byte) engine.Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.bodies)
	k.bodies, k.answers = append(k.bodies, string(body)), append(k.answers, request.Answer{})
	return engine.Kept{Begun: func() {}, Answered: func(a request.Answer) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.answers[n] = a
	}}
}

// check wants each of so many requests kept as the service got it, with the whole answer and a price. The prices together are booked, in USD.
func (k *kept) check(w *world, requests int, booked float64) {
	w.t.Helper()
	cost, all := 0.0, w.api.Requests()
	if len(all) != requests || len(k.bodies) != requests {
		w.t.Fatalf("%d of %d requests are kept, want %d", len(k.bodies), len(all), requests)
	}
	for i, q := range all {
		a := k.answers[i]
		cost += a.Cost
		if k.bodies[i] != string(q.Raw) || !json.Valid(q.Raw) {
			w.t.Errorf("request %d is not kept as it was sent", i+1)
		}
		if a.Usage == nil || a.Cost <= 0 || a.Model == "" || a.Cut != "" || !strings.Contains(string(a.Body), "message_stop") {
			w.t.Errorf("answer %d: %+v", i+1, a)
		}
	}
	if booked <= 0 || distant(cost, booked) {
		w.t.Errorf("%d requests for %v USD are kept, and %v USD booked", requests, cost, booked)
	}
}

func distant(a, b float64) bool { return a > b*1.1 || b > a*1.1 }

// TestWebSearch: the search of the service is a request of the command's own. It is kept, and its price besides the tokens is counted.
func TestWebSearch(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	w.api.On(anthropicapi.Request.IsSearch, func(q anthropicapi.Request) anthropicapi.Reply {
		if !q.Has("go release") || q.Tools[0].Blocked[0] != "a.example" {
			t.Errorf("%s", q.Raw)
		}
		found := []anthropicapi.Page{{Title: "Downloads", URL: "https://go.dev/dl", Age: "2 days"}}
		return anthropicapi.Reply{Found: found, Text: "Go 1.27 is out.", Usage: anthropicapi.Usage{In: 100, Out: 10}}
	})
	w.ask("WebSearch", map[string]any{"query": "go release", "blocked_domains": []string{"a.example"}})
	w.api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Text: "done", Usage: anthropicapi.Usage{In: 100, Out: 10}}
	})
	var all kept
	r := engine.Request{Input: engine.Input{Prompt: "go"}, Model: engine.Model{Name: canaryModel}}
	r.Run.Sent = all.keep
	result, err := w.run(r, "WebSearch")
	if err != nil {
		t.Fatal(err)
	}
	if text := w.result("WebSearch").Text; !strings.Contains(text, "https://go.dev/dl") || !strings.Contains(text, "Go 1.27 is out.") {
		t.Errorf("the model was told %q", text)
	}
	all.check(w, 3, result.Cost)
	tokens, _ := model.Known().Resolve(canaryModel).Cost(model.Tokens{In: 100, Out: 10})
	if got := all.answers[1].Cost; got < engine.SearchPrice || got > engine.SearchPrice+tokens {
		t.Errorf("the search cost %v USD", got)
	}
}

// TestCompactionIsKept: the requests of a compaction pass the gateway, and are kept and booked like others.
func TestCompactionIsKept(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	var all kept
	r := engine.Request{Input: engine.Input{Prompt: "BEFORE"}, Model: engine.Model{Name: canaryModel}}
	r.Run.Sent = all.keep
	w.ask("Bash", map[string]any{"command": "true", "description": "nothing"}) // the oldest version compacts no fewer messages
	first, err := w.run(r, "Bash(true)")
	if err != nil {
		t.Fatal(err)
	}
	r = engine.Request{Session: engine.Session{ID: first.Session}, Model: r.Model, Run: engine.Run{ID: w.id, Sent: all.keep}}
	r.Scope.Root, r.Scope.Seal = w.root, w.seal
	booked := first.Cost
	if _, err := w.engine.Compact(t.Context(), r, "be short", func(e runlog.Event) error { booked += e.Cost; return nil }); err != nil {
		t.Fatal(err)
	}
	if last := w.api.Requests()[2]; !last.IsCompaction() || !last.Has("BEFORE") {
		t.Errorf("%s", last.Raw)
	}
	all.check(w, 3, booked)
}
