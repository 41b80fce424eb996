package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/engine/trialmodel"
	"github.com/ollim/ollim/internal/state/model"
)

// service is a model's API for the canary, on the loopback interface. At the beginning of each turn its model asks for the canary's
// tools. It ends the turn when it has their results.
type service struct {
	trialmodel.Server

	mu     sync.Mutex
	look   func() []string // returns where the command accepts connections
	turn   int
	served map[int][]asked // the requests, by turn
}

// asked is a request of the command, with the parts that the canary checks.
type asked struct {
	Model    string          `json:"model"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`

	raw       []byte
	listening []string
}

func (q asked) tools() (names []string) {
	for _, tool := range q.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// canaryTools returns the command's own tools that the canary offers and uses, sorted.
func canaryTools() []string { return []string{"Bash", "Read"} }

// canaryUsage returns the usage that the service reports for each answer.
func canaryUsage() model.Tokens {
	return model.Tokens{In: 1000, Out: 100, CacheRead: 2000, CacheWrite: 300}
}

func newService(ctx context.Context) (*service, error) {
	s := &service{served: map[int][]asked{}}
	var err error
	s.Server, err = trialmodel.Listen(ctx, http.HandlerFunc(s.serve))
	return s, err
}

// begin begins a turn.
func (s *service) begin(turn int, look func() []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.look = turn, look
}

// asked returns the requests of a turn.
func (s *service) asked(turn int) []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.served[turn])
}

// fault returns what is wrong with a turn; "" if nothing. err is the error that the turn ended with, if any.
func (s *service) fault(turn int, err error) string { return judge(turn, s.asked(turn), err == nil) }

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var q asked
	raw, err := io.ReadAll(io.LimitReader(r.Body, command.MaxLine))
	if err = errors.Join(err, json.Unmarshal(raw, &q)); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q.raw = raw
	s.mu.Lock()
	q.listening = s.look()
	s.served[s.turn] = append(s.served[s.turn], q)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	reply(w, q)
}

// reply streams an answer: text if the request has tool results, otherwise tool uses.
func reply(w io.Writer, q asked) {
	a := trialmodel.Answer{Model: q.Model, Text: "done", Usage: canaryUsage()}
	if !q.answered() {
		a.Uses = []trialmodel.Use{{Tool: "Bash", Input: `{"command":"cat ` + canaryFile + `"}`}, {Tool: "Read", Input: `{"file_path":"` + canaryFile + `"}`}}
	}
	trialmodel.Messages(w, a)
}

// answered reports whether the last message is a tool result.
func (q asked) answered() bool {
	for _, m := range slices.Backward(q.Messages) {
		if m.Role == "user" {
			return slices.ContainsFunc(blocksOf(m.Content), func(b block) bool { return b.Type == "tool_result" })
		}
	}
	return false
}
