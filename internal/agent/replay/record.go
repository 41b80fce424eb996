package replay

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// kept is what the record has besides run.json.
type kept struct {
	book request.Book
	run  string // its id

	exchanges []request.Exchange
	parsed    map[int]provider.Request // requests that were read, by number

	answers  int                     // of the model, as the events have them
	calls    int                     // of tools
	uses     map[string]runlog.Event // uses of tools, by id
	results  map[string]runlog.Event
	verdicts []runlog.Event
	judged   map[string]runlog.Event // the verdicts by the id of the use
	asked    map[string]bool         // uses about which the owner was asked

	session  string         // the session that the run began in
	branch   bool           // it was a branch
	ids      [][]byte       // of the sessions that began, in order; nil for one that has no record
	follow   []runlog.Event // what further messages to the agent came from
	answered []time.Time    // when the run went on with answers of the owner
	models   []string       // models that were asked instead

}

// read reads the record.
func (w *walk) read() (err error) {
	switch {
	case w.record.Private:
		return w.unfit(errPrivate)
	case w.record.Mode == "backtest" || w.record.Mode == "distil":
		return w.unfit(fmt.Errorf("it is a %s, which gives an agent nothing to do", w.record.Mode))
	}
	k := &w.kept
	k.book, k.run = w.r.Asked, w.record.ID
	k.parsed, k.uses, k.results, k.judged, k.asked = map[int]provider.Request{}, map[string]runlog.Event{}, map[string]runlog.Event{}, map[string]runlog.Event{}, map[string]bool{}
	bad := 0
	for e, err := range w.r.Runs.Events(w.record.ID, &bad) {
		if err != nil {
			return w.unfit(err)
		}
		k.note(e)
	}
	if bad > 0 || k.answers < w.record.Requests || k.calls < w.record.ToolCalls {
		return w.unfit(errBroken)
	}
	if k.exchanges, err = w.r.Asked.Exchanges(w.record.ID); err != nil {
		return w.unfit(err)
	}
	w.out.Of = len(k.exchanges)
	return k.checkOnce(w)
}

// checkOnce returns an error if a line of the requests is there twice. A request that was repeated has another time.
func (k *kept) checkOnce(w *walk) error {
	for i := 1; i < len(k.exchanges); i++ {
		if !k.exchanges[i].At.Equal(k.exchanges[i-1].At) {
			continue
		}
		before, _, err := k.book.Read(k.run, i)
		if err != nil {
			continue // compare says so
		}
		if body, _, err := k.book.Read(k.run, i+1); err == nil && bytes.Equal(body, before) {
			return w.unfit(errTwice)
		}
	}
	return nil
}

// note takes what an event says.
func (k *kept) note(e runlog.Event) {
	switch e.Type {
	case runlog.UsageEvent:
		if e.Usage != nil {
			k.answers += max(1, e.Count)
		}
	case runlog.ToolUse:
		k.calls++
		k.uses[e.ToolID] = e
		if e.Tool == "Task" { // its subagent has a session without a record
			k.ids = append(k.ids, nil)
		}
	case runlog.ToolResult:
		k.results[e.ToolID] = e
	case runlog.Verdict:
		k.verdicts, k.judged[e.ToolID] = append(k.verdicts, e), e
	case runlog.Asked:
		k.asked[e.ToolID] = true
	case runlog.Nudge:
		k.follow = append(k.follow, e)
	case runlog.Verified:
		if e.IsError && e.Count > 0 {
			k.follow = append(k.follow, e)
		}
	case runlog.Answered:
		k.follow, k.answered = append(k.follow, e), append(k.answered, e.At)
	case runlog.FellBack:
		k.models = append(k.models, e.Model)
	case runlog.Session, runlog.Compacted:
		if k.session == "" && e.Type == runlog.Session {
			k.session, k.branch = e.Session, e.Parent != "" && e.Parent != e.Session
		}
		id, err := hex.DecodeString(strings.TrimPrefix(e.Session, "n-"))
		if err == nil && len(id) > 0 && !slices.ContainsFunc(k.ids, func(old []byte) bool { return string(old) == string(id) }) {
			k.ids = append(k.ids, id)
		}
	}
}

// parse returns the n-th request.
func (k *kept) parse(n int) (provider.Request, error) {
	if r, known := k.parsed[n]; known {
		return r, nil
	}
	body, _, err := k.book.Read(k.run, n)
	if err != nil {
		return provider.Request{}, err
	}
	r, err := provider.Parse(body)
	if err == nil {
		k.parsed[n] = r
	}
	return r, err
}

var errUnanswered = errors.New("the record has no result of this use")

// result returns the recorded result of a use of a tool: as the first request after the n-th has it, or else the events.
func (k *kept) result(n int, id, eventID string) (engine.ToolResult, error) {
	for n++; n <= len(k.exchanges); n++ {
		sent, err := k.parse(n)
		if err != nil {
			continue
		}
		for _, m := range slices.Backward(sent.Messages) {
			at := slices.IndexFunc(m.Content, func(b transcript.Block) bool { return b.Type == transcript.ToolResult && b.ToolUseID == id })
			if at >= 0 {
				return resultOf(m.Content, at), nil
			}
		}
	}
	if e, known := k.results[eventID]; known {
		return engine.ToolResult{Text: e.Text, IsError: e.IsError}, nil
	}
	return engine.ToolResult{}, errUnanswered
}

// resultOf returns the result in a block, and the files after the last result of a message.
func resultOf(blocks []transcript.Block, at int) engine.ToolResult {
	b := blocks[at]
	out := engine.ToolResult{Text: b.Content, IsError: b.IsError, Source: b.Source}
	rest := blocks[at+1:]
	if slices.ContainsFunc(rest, func(b transcript.Block) bool { return b.Type == transcript.ToolResult }) {
		return out
	}
	for _, b := range rest {
		if b.Source != nil {
			out.More = append(out.More, b.Source)
		}
	}
	return out
}

// kindOf returns the subagent that a use of Task names.
func kindOf(input json.RawMessage) string {
	var in struct {
		Type string `json:"subagent_type"`
	}
	_ = json.Unmarshal(input, &in)
	return in.Type
}

// chain returns a random source that gives sessions their recorded ids.
type chain struct{ ids [][]byte }

func (c *chain) Read(p []byte) (int, error) {
	clear(p)
	if len(c.ids) > 0 {
		copy(p, c.ids[0])
		c.ids = c.ids[1:]
	}
	return len(p), nil
}

var errAnswer = errors.New("not kept")

// answer returns what the service answered to the n-th request.
func (k *kept) answer(n int) (request.Answer, error) {
	a := k.exchanges[n-1].Answer
	if a == nil {
		return request.Answer{}, fmt.Errorf("the answer to request %d: %w", n, errAnswer)
	}
	body, _, err := k.book.ReadAnswer(k.run, n)
	out := *a
	if out.Body = body; err == nil && a.Status == 200 && len(body) == 0 && a.Cut == "" {
		err = errAnswer
	}
	if err != nil {
		return out, fmt.Errorf("the answer to request %d: %w", n, err)
	}
	return out, nil
}
