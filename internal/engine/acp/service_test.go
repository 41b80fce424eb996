package acp

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// answerUSD is the price of an answer of the service of serve.
const answerUSD = 0.4

// serve gives the agent a service behind a gateway. It returns the keys of the requests.
func (w *world) serve() (asked *[]string) {
	asked = new([]string)
	service := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path+" "+r.Header.Get("X-Api-Key"))
		_, _ = io.WriteString(rw, `{"model":"priced-1","stop_reason":"end_turn","usage":{"input_tokens":30000,"output_tokens":1000}}`)
	}))
	w.t.Cleanup(service.Close)
	table, err := model.Known().With([]string{"priced-1 in=10 out=100"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Models, w.Env = table, append(os.Environ(), "TEST_KEY=the-key", "TEST_BASE_URL="+service.URL)
	w.Profile.Keys, w.Profile.Reads = []string{"TEST_KEY"}, []string{"TEST_SETTINGS"}
	w.Profile.Services = []Service{{Keys: []string{"TEST_KEY"}, Base: "TEST_BASE_URL", Address: "https://x.example", Path: "/v1", Paths: []string{"/messages"}}}
	w.Profile.Env = append(w.Profile.Env, "AGENT_BASE=${base}")
	return asked
}

// booked returns the cost and the usage in the events, and whether a prompt is still open.
func (w *world) booked() (usd float64, used runlog.Usage, open bool) {
	for _, e := range w.events {
		usd += e.Cost
		if e.Usage != nil {
			used = used.Add(*e.Usage)
		}
		if e.Type == runlog.Request || e.Type == runlog.UsageEvent {
			open = e.Type == runlog.Request
		}
	}
	return usd, used, open
}

// TestGateway: the agent has no key, its requests are priced whatever it reports, and the one over the limit is refused.
func TestGateway(t *testing.T) {
	w := newWorld(t)
	asked := w.serve()
	if g := w.Guarantees(""); !g.MaxCost || !g.Key {
		t.Errorf("got %+v", g)
	}
	first, err := w.ask(engine.Request{}, "ask priced-1\nenv TEST_KEY\nenv TEST_BASE_URL\ncost")
	usd, used, _ := w.booked()
	if err != nil || strings.Contains(first.Text, "the-key") || !strings.HasPrefix(first.Text, "200 OKollim-") || strings.Contains(first.Text, "http") {
		t.Errorf("got %+v, %v", first, err)
	}
	if math.Abs(usd-answerUSD) > 1e-9 || used.In != 30_000 || first.Usage != used {
		t.Errorf("%v USD, %+v, want %v", usd, used, answerUSD)
	}
	second, err := w.ask(engine.Request{Limits: engine.Limits{MaxCost: 1, Spent: 0.7, Reserved: 1}}, "ask priced-1\nask priced-1")
	usd, _, open := w.booked()
	if !errors.Is(err, engine.ErrMaxCost) || math.Abs(usd-answerUSD) > 1e-9 || open || len(second.Messages) != 1 {
		t.Errorf("got %+v, %v: %v USD:\n%s", second, err, usd, w.told())
	}
	if got := strings.Join(*asked, "\n"); got != "/v1/messages the-key\n/v1/messages the-key" {
		t.Errorf("the service was asked\n%s", got)
	}
}

// TestCutOff: what an agent that dies has asked for is booked.
func TestCutOff(t *testing.T) {
	w := newWorld(t)
	w.serve()
	_, err := w.ask(engine.Request{}, "ask priced-1\ndie out of luck")
	if usd, _, open := w.booked(); err == nil || math.Abs(usd-answerUSD) > 1e-9 || open {
		t.Errorf("got %v, %v USD:\n%s", err, usd, w.told())
	}
}

// TestStrict: a job's own limit is not left to a service whose requests or whose price ollim does not know.
func TestStrict(t *testing.T) {
	w := newWorld(t)
	asked := w.serve()
	strict := engine.Request{Limits: engine.Limits{MaxCost: 1, Strict: true}}
	if _, err := w.ask(strict, "ask unknown-1"); !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), "the price of the model unknown-1 is unknown") {
		t.Errorf("got %v", err)
	}
	w.Env = append(w.Env, "TEST_SETTINGS=/owner/settings")
	if g := w.Guarantees(""); g.MaxCost || g.Key {
		t.Errorf("got %+v", g)
	}
	if _, err := w.ask(strict, "say x"); !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), "without the gateway of ollim") || len(*asked) > 0 {
		t.Errorf("got %v, asked %v", err, *asked)
	}
	if own, err := w.ask(engine.Request{}, "env TEST_KEY"); err != nil || own.Text != "the-key" {
		t.Errorf("got %+v, %v", own, err)
	}
}

// TestAccess: the model's name says which service is asked.
func TestAccess(t *testing.T) {
	e := &Engine{Env: []string{"A_KEY=a", "B_KEY=b"}, Profile: Profile{Services: []Service{{Name: "a", Keys: []string{"A_KEY"}}, {Name: "b", Keys: []string{"OTHER", "B_KEY"}}}}}
	for model, want := range map[string]string{"": "a", "m": "a", "a/m": "a", "b/m": "b", "c/m": ""} {
		if got, found := e.access(model); got.key != want || found != (want != "") {
			t.Errorf("%q: got %+v", model, got)
		}
	}
}
